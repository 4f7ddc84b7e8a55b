"""People's files as tables of Arrow. `formats` has a line for each kind of file."""
