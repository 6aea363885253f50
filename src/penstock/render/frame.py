"""Transactions around lines: where those that have lines begin and end, and a heading for each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.rows.table_changes import transaction_gtids
from penstock.binlog.xa.xid import parse_prepare
from penstock.render import text
from penstock.render.page import ENDS, LineContext, LineRole, PageLines
from penstock.render.times import write_utc_times
from penstock.render.weave import ColumnPiece, FormattedColumn, write_lines


@dataclass(frozen=True, slots=True, eq=False)
class TransactionFrame:
    """Says which lines of a page begin a transaction, and which end one."""

    starts: NDArray[np.bool_]  # lines that are the first of their transaction
    ends: NDArray[np.bool_]  # lines that end one which has others

    @classmethod
    def find_on_page(cls, page: PageLines, before: LineContext) -> "TransactionFrame":
        """Find the transactions of a page; `before` is the context that the line before the page left."""
        transaction = page.transaction
        is_end = np.isin(page.role, ENDS)
        continues = np.concatenate([transaction[:1] == before.transaction, transaction[1:] == transaction[:-1]])
        return cls(page.is_inside & ~continues, is_end & continues)

    def non_commit_ends(self, page: PageLines) -> Iterator[tuple[int, LineRole, str]]:
        """Yield the lines that end a transaction other than by COMMIT, with their role and the id of an XA
        transaction.
        """
        for i in np.flatnonzero(self.ends & (page.role != LineRole.COMMIT)).tolist():
            role, event = LineRole(int(page.role[i])), int(page.event[i])
            yield i, role, "" if role is LineRole.ROLLBACK else parse_prepare(page.block, event)[0]


def place_texts(texts: pa.Array, is_marked: NDArray[np.bool_]) -> ColumnPiece:
    """Return a piece with these texts at the marked lines of a page, in order, and nothing at the others."""
    rows = np.where(is_marked, np.cumsum(is_marked) - 1, len(texts)).astype(np.int64)
    return FormattedColumn(pa.concat_arrays([texts, text.texts_from_list([""])])).pick_rows(rows)


def write_headings(block: Block, events: NDArray[np.int64]) -> pa.Array:
    """Return the line above each transaction of these events: its position, its time and its GTID."""
    rows = np.arange(events.size)
    offset = FormattedColumn(text.write_plain(to_arrow_numbers(block.column("transaction")[events])))
    moment = FormattedColumn(write_utc_times(block.column("commit_us")[events]), "time unknown", after=" UTC")
    gtid = FormattedColumn(text.write_plain(transaction_gtids(block, events)), before="  ")
    pieces = (offset.pick_rows(rows), "  ", moment.pick_rows(rows), gtid.pick_rows(rows))
    return write_lines((f"{block.file}:", *pieces), events.size)
