"""Snapshots: exact, parallel reads of tables that know which position of the log they correspond to."""
