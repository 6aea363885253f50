"""Plain-Python twins of the kernels, and a builder that writes logs byte by byte from plain values.

The builder (`event`, `row`, `value`, `log`) follows the servers' format and never asks the code under test. The twins
(`index`, `locate`, `value`, `packet`) say in slow and obvious Python what each kernel must answer.
"""
