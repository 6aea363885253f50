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
from penstock.render.page import ENDS, LineContext, Page, Role
from penstock.render.times import utc_text
from penstock.render.weave import Chosen, Written, weave


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    starts: NDArray[np.bool_]  # lines that are the first of their transaction
    ends: NDArray[np.bool_]  # lines that end one which has others

    @classmethod
    def of(cls, page: Page, before: LineContext) -> "Frame":
        """Find them in a page; `before` is what the line before the page left."""
        transaction = page.transaction
        is_end = np.isin(page.role, ENDS)
        goes_on = np.concatenate([transaction[:1] == before.transaction, transaction[1:] == transaction[:-1]])
        return cls(page.is_inside & ~goes_on, is_end & goes_on)

    def unusual_ends(self, page: Page) -> Iterator[tuple[int, Role, str]]:
        """Lines that end a transaction otherwise than by COMMIT, and the id of an XA transaction."""
        for i in np.flatnonzero(self.ends & (page.role != Role.COMMIT)).tolist():
            role, event = Role(int(page.role[i])), int(page.event[i])
            yield i, role, "" if role is Role.ROLLBACK else parse_prepare(page.block, event)[0]


def placed(texts: pa.Array, places: NDArray[np.bool_]) -> Chosen:
    """Texts in their order at these places of a page, nothing at the others."""
    rows = np.where(places, np.cumsum(places) - 1, len(texts)).astype(np.int64)
    return Written(pa.concat_arrays([texts, text.of_list([""])])).at(rows)


def heading(block: Block, events: NDArray[np.int64]) -> pa.Array:
    """Return the line above each transaction of these events: its position, its time and its GTID."""
    all_of_them = np.arange(events.size)
    place = Written(text.plain(to_arrow_numbers(block.column("transaction")[events])))
    moment = Written(utc_text(block.column("commit_us")[events]), "time unknown", after=" UTC")
    gtid = Written(text.plain(transaction_gtids(block, events)), before="  ")
    pieces = (place.at(all_of_them), "  ", moment.at(all_of_them), gtid.at(all_of_them))
    return weave((f"{block.file}:", *pieces), events.size)
