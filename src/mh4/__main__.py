"""``python -m mh4``."""

from .cli import main

main()
