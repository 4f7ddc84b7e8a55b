"""``python -m powermeans`` is the command ``powermeans``."""

from __future__ import annotations

from powermeans.command_line import main

if __name__ == "__main__":
    main()
