"""One column: the table of types, charsets, and the kernels that fill Arrow buffers."""
