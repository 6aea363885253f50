"""The changes of one table as CSV: a line per row image, the table's columns first, then where it is from.

Texts are in double quotes, so that an empty text differs from NULL, which is nothing at all. Bytes are base64.
"""

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import numbers
from penstock.binlog.events.block import Block
from penstock.inspect.changes import Changes, Kind, gtids
from penstock.inspect.statement import Statement
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import Dialect, vector_texts
from penstock.render.page import LineFormat, values
from penstock.render.times import iso_text
from penstock.render.weave import Chosen, Line, Written, weave

ABOUT = ("_change_type", "_seq", "_offset", "_commit_timestamp", "_gtid", "_file")
_ESCAPES = text.Escapes.of({'"': '""'})


class CsvValues(Dialect):
    null = ""

    def text(self, array: pa.Array) -> Written:
        return Written(text.escaped(array, _ESCAPES), self.null, '"', '"')

    def binary(self, array: pa.Array) -> Written:
        return Written(text.base64ed(array), self.null)

    def moment(self, array: pa.Array, column: Column) -> Written:  # noqa: ARG002 - needs no quotes
        return Written(text.plain(array), self.null)

    def vector(self, array: pa.Array) -> Written:
        return Written(text.escaped(vector_texts(array), _ESCAPES), self.null, '"[', ']"')


_VALUES = CsvValues()


class CsvLines(LineFormat):
    """Of one version of one table; `columns` are those to show."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._block: Block | None = None
        self._abouts = Written(text.of_list([]))

    def begin(self) -> str:
        return ",".join(map(_name, (*self._columns, *ABOUT))) + "\n"

    def changes(self, changes: Changes) -> Line:
        every = np.arange(len(changes))
        about: list[str | Chosen] = [
            Written(text.plain(numbers(changes.sequence))).at(every),
            ",",
            Written(text.plain(numbers(changes.offset))).at(every),
            self._event_about(changes.block).at(changes.event),
        ]
        sides = [(changes.before, changes.first), (changes.after, changes.last)]
        kinds = ["update_preimage", "update_postimage"] if changes.kind is Kind.UPDATE else [changes.kind.value] * 2
        pieces: list[str | Chosen] = []
        for kind, (columns, rows) in zip(kinds, sides, strict=True):
            if columns:
                by_name = {column.name: column for column in columns}
                for name in self._columns:
                    if name in by_name:
                        pieces.append(values(changes, _VALUES, by_name[name], rows))
                    pieces.append(",")
                pieces += [f"{kind},", *about]
        return pieces

    def _event_about(self, block: Block) -> Written:
        """When and where each event of a block is."""
        if self._block is not block:
            every = np.arange(len(block))
            gtid = Written(gtids(block, every).cast(text.TEXT), ",", ",")
            line = (
                ",",
                Written(iso_text(block.column("commit_us"))).at(every),
                gtid.at(every),
                f",{_name(block.file)}\n",
            )
            self._block, self._abouts = block, Written(weave(line, len(block)))
        return self._abouts

    def statement(self, block: Block, statement: Statement) -> str:  # noqa: ARG002 - rows only
        return ""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\n\r') else name
