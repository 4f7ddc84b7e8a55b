"""The border: whatever a user passes is checked here, once, and nowhere else.

It imports the mathematics and the divergences. Inside the package points are finite, of one dtype
and in one order, and no function asks again.
"""
