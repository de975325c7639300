"""``mh4`` and ``python -m mh4``."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends the program without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mh4.cli import main as run

    run()


if __name__ == "__main__":
    main()
