"""Measurements, each beside a limit or a peer in the same run. `python -m benchmarks [NAME]` runs all, or that one.

A benchmark is a module with `main()`: it prints a table for people and, as its last line, one JSON object.
"""
