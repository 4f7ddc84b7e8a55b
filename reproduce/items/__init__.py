"""One module for each table, figure or claim of the sources; `reproduce.item.Item` says what."""
