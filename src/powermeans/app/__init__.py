"""What a person uses without Python: the command, and the report on a fit.

It may import all other folders, and none of them imports it.
"""
