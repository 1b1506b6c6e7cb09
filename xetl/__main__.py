"""``python -m xetl`` is the command ``xetl``."""

import sys


def main() -> int:
    """Entry point of the command; says in a line if it is interrupted."""
    try:
        from xetl.tools.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted: nothing was written; start it again\n")
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
