"""The search beyond one descent.

`search` decides where a search looks and makes its starts, `moves` lists what improves them,
`effort` says how much may be done, and `over_k` also looks for the number of centers. All moves
share a `Search` of `state`. It counts work in distances and looks at no clock, so a fit without a
time limit gives the same bits on every machine.
"""
