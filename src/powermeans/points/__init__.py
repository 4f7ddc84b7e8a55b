"""Where points are, behind one protocol: one file for each kind, and checks of what users pass.

A sweep over points gives sums that add. Points know the mathematics and the divergences, never the
loop that sweeps over them.
"""
