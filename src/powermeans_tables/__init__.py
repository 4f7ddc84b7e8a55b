"""People's tables: files, spreadsheets and databases as points, and clusters as pages and queries.

`reading` has one register of formats, `preparing` understands columns, and `command` is the
command ``powermeans``. `powermeans` knows these modules only by the entry points that
pyproject.toml lists for them.
"""
