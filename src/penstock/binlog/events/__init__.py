"""The log's framing: bytes of a file or a socket → indexed blocks of whole events."""
