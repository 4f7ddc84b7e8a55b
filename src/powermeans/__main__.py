"""Run the command ``powermeans``, also as ``python -m powermeans``."""

import signal

# Until `main` listens, Ctrl-C ends the command at once: Python would show what it imported.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from powermeans_tables.command import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
