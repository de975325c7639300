"""``python -m mh4``."""

from mh4.cli import main

main()
