"""Every table, figure and claim of the sources, from one command: `python -m reproduce NAME`."""
