"""The loop that follows a source's log into the store, and everything it decides: where to resume, whether a log is
still the same one, what to do about changes that are gone, and which schema a table has."""
