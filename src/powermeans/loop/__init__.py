"""The only loop: anneal a rule, sweep, update, stop, take down the history, and search.

It imports the mathematics and the protocol of rows, and knows points only through that.
"""
