"""The HTML report on a fit, with warnings about the data and code that repeats the fit.

It imports what is below `app`, and the command imports it.
"""
