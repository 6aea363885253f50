"""Rows events of a table → Arrow record batches of changes."""
