"""The command `fewtag`, all of it, in this process."""

import signal
import sys

from . import _fewtag


def main() -> None:
    """Runs the command line; ends the process with the command's exit status."""
    # Ctrl-C ends the command at once, as it ends any program: Python's own handler would wait for Python code to run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_fewtag.command(["fewtag", *sys.argv[1:]]))
