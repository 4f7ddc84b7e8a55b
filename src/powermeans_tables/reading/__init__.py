"""People's files as tables of Arrow: texts as they are written, and columns of types.

`frames` is the door; a new kind of file is a line there.
"""
