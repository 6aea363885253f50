"""The Arrow type of `_partial`: operations on JSON documents, in the order in which they are applied."""

import pyarrow as pa

PARTIAL = pa.list_(pa.struct([pa.field(name, pa.string()) for name in ("column", "op", "path", "value")]))
