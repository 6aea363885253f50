"""Bytes of the log → index → Arrow columns. No Python object per event, row or value.

Nothing is imported here: the kernels bring numba, which takes a second to load, and processes that only plan or
describe (Spark starts several) do without. `events.file`, `events.reader` and `rows.changes` are the ways in.
"""
