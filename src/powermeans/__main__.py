"""Run the command ``powermeans`` as ``python -m powermeans``."""

from __future__ import annotations

from powermeans.command_line import main

if __name__ == "__main__":
    main()
