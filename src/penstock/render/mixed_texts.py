"""The texts of all fields of rows of many tables, in one buffer."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.rows.mixed import MixedRows
from penstock.render import text


@dataclass(slots=True)
class FieldTextBuffer:
    """The texts of all fields in one buffer: the text of field f is data[starts[f]:ends[f]].

    `add` the texts of each kind, then `joined` is the buffer.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    _pieces: list[NDArray[np.uint8]]
    _done: int = 0

    @classmethod
    def for_rows(cls, rows: MixedRows) -> "FieldTextBuffer":
        """Return an empty buffer for the fields of these rows."""
        fields = rows.offsets.size
        return cls(np.empty(fields, np.int64), np.empty(fields, np.int64), [])

    def add(self, first: int, texts: pa.Array) -> None:
        """Add the texts of the fields from `first` on."""
        data, bounds = text.get_bytes(texts)
        start, stop, shift = int(bounds[0]), int(bounds[-1]), self._done - int(bounds[0])
        np.add(bounds[:-1], shift, out=self.starts[first : first + len(texts)])
        np.add(bounds[1:], shift, out=self.ends[first : first + len(texts)])
        self._pieces.append(data[start:stop])
        self._done += stop - start

    @property
    def joined(self) -> NDArray[np.uint8]:
        """Return all texts as one array."""
        return np.concatenate(self._pieces) if self._pieces else np.empty(0, np.uint8)
