"""Importing canal's own configuration files: every property is honoured, refused with a reason, or reported."""
