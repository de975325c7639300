"""``mh4`` and ``python -m mh4``."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C before and after it, during imports and at exit, shows no traceback either."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mh4.cli import main as run

    try:
        run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
