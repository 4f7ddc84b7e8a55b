"""The only loop: anneal a rule, sweep, update, stop, take down the history, and search.

It knows points only through the protocol of rows. It imports the protocol and the mathematics.
"""
