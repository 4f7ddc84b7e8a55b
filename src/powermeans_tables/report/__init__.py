"""The HTML report on a fit, with code that repeats it. It imports what is below `command`."""
