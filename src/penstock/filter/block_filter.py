"""The filter of one stream of blocks: what is not wanted is removed before anything is decoded or stored.

What is kept is exact: the rows and statements that are wanted, with the events that frame them. A block with any match
keeps all its transaction boundaries, so that positions and GTIDs advance; a block without a match shrinks to its last
boundary. A boundary that is kept only for its position has the entry OTHER. The begin of a transaction is passed on
only when something of it is wanted: until then its first events are held back, also from one block to the next; and so
are last events that mean something only together with what follows them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.block_flags import OTHER_MAPS, STATEMENTS, scan_flags
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.events.query import are_statements, body_at
from penstock.config import FilterSettings
from penstock.filter.kinds import are_annotations, are_loaded_files, are_xa_statements
from penstock.filter.rules import FilterRules
from penstock.filter.secrets import mask_secrets_in_block
from penstock.model import Column, TableSchema

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _OpenTransaction:
    """The state of a transaction that continues in the next block: whether its begin was delivered, and what is held
    back."""

    begin: tuple[int, str, int]  # epoch, file, offset of its first event
    is_shown: bool  # something of it was kept
    held: Block | None = None  # events of it that are kept as soon as something is that they belong to

    @property
    def is_plain(self) -> bool:
        """Return whether the transaction was delivered so far and nothing of it is held back."""
        return self.is_shown and self.held is None


@dataclass(frozen=True, slots=True)
class _BlockParts:
    """Masks of a block's events, by what the filter rules decide about them."""

    wanted: Mask  # content that passes
    unwanted: Mask  # what goes, whatever else its transaction has
    hidden: Mask  # marks that go, or if they are boundaries are kept for their position only
    statements: Mask  # that mean something by themselves


class BlockFilter:
    r"""Removes the events of a stream of blocks that its filter settings exclude. `apply` takes the blocks in their
    order; `reload` may be called by any thread.

        block_filter = BlockFilter(FilterSettings(allow=(r"shop\..*",)))
        block = block_filter.apply(block)
    """

    def __init__(self, settings: FilterSettings) -> None:
        self._rules = FilterRules(settings)
        self._open: _OpenTransaction | None = None

    def reload(self, settings: FilterSettings) -> None:
        """Use other settings from the next block on. Wrong settings raise, and change nothing."""
        self._rules = FilterRules(settings)

    def columns_to_show(self, table: TableSchema) -> tuple[Column, ...]:
        """Return the columns of a table to deliver. Raises ConfigurationError where a column of the key would be
        missing."""
        return self._rules.columns.columns_to_show(table)

    def apply(self, block: Block) -> Block:
        """Return the part of a block that passes the filter: the block itself if all of it does; it may be empty."""
        rules, before = self._rules, self._open_transaction_of(block)
        if not len(block):
            return block
        if before is not None and before.held is not None:
            # What was held is judged again, with what comes after it: rows say whether their statement may be seen.
            block = replace(block.prepend(before.held), executed=block.executed_before(0))
        is_open = not block.column("boundary")[-1]
        is_plain = (before is None or before.is_plain) and not (is_open and _ends_with_annotation(block))
        if is_plain and _passes_whole(block, rules):
            self._open = _OpenTransaction(_transaction_key(block, -1), True) if is_open else None
            return block
        parts = _classify_events(block, rules)
        if is_plain and not (parts.unwanted | parts.hidden).any():
            self._open = _OpenTransaction(_transaction_key(block, -1), True) if is_open else None
            return mask_secrets_in_block(block, parts.statements)
        return self._remove_unwanted(block, parts, before, is_open=is_open)

    def _open_transaction_of(self, block: Block) -> _OpenTransaction | None:
        """Return the transaction that was open before the block. One whose begin was not seen counts as delivered."""
        if not len(block) or block.column("transaction")[0] == block.column("position")[0]:
            return None
        begin = _transaction_key(block, 0)
        return self._open if self._open is not None and self._open.begin == begin else _OpenTransaction(begin, True)

    def _remove_unwanted(
        self, block: Block, parts: _BlockParts, before: _OpenTransaction | None, *, is_open: bool
    ) -> Block:
        """Return a block without its unwanted events and without transactions of which nothing is wanted."""
        transaction, boundary = block.column("transaction"), block.column("boundary").view(np.bool_)
        starts = np.flatnonzero(np.concatenate([[True], transaction[1:] != transaction[:-1]]))
        group = np.repeat(np.arange(starts.size), np.diff(np.append(starts, len(block))))
        is_shown = np.logical_or.reduceat(parts.wanted, starts)
        if before is not None:
            is_shown[0] |= before.is_shown
        stays = ~parts.unwanted & ~(parts.hidden & ~boundary)
        keep = stays & is_shown[group]
        waiting = (
            _select_held_back(block, stays & (group == group[-1]), is_shown=is_shown[-1])
            if is_open
            else np.empty(0, int)
        )
        keep[waiting] = False
        if keep.any():
            keep |= boundary
            executed = block.executed_before(0)
        else:
            last = block.boundaries[-1:]
            keep[last] = True
            executed = block.executed_before(int(last[0]) if last.size else 0)
        self._open = None
        if is_open:
            self._open = _OpenTransaction(
                _transaction_key(block, -1), bool(is_shown[-1]), block.take(waiting) if waiting.size else None
            )
        events = np.flatnonzero(keep)
        if not events.size:
            return block.slice(0, 0).with_tables({})
        kept = block.take(events)
        position_only = (boundary & (~is_shown[group] | parts.unwanted | parts.hidden))[events]
        if position_only.any():
            kept = kept.with_columns(entry=np.where(position_only, np.uint8(Entry.OTHER), kept.column("entry")))
        kept = mask_secrets_in_block(kept, (parts.statements & ~parts.unwanted)[events])
        return replace(_drop_unused_tables(kept), executed=executed)


def _passes_whole(block: Block, rules: FilterRules) -> bool:
    """Return whether the whole block passes, as far as can be told without looking at each event: it has rows of wanted
    tables only, and no statements."""
    if not rules.passes_all_rows or rules.excluded_ids(block.tables):
        return False
    return not scan_flags(block) & (STATEMENTS if rules.passes_all_tables else STATEMENTS | OTHER_MAPS)


def _ends_with_annotation(block: Block) -> bool:
    """Return whether the last annotation has no rows in this block: whether it passes depends on rows of the next
    one."""
    notes = np.flatnonzero(are_annotations(block))
    if not notes.size:
        return False
    behind = slice(int(notes[-1]) + 1, None)
    tables = (block.column("entry")[behind] == Entry.ROWS) | (block.column("kind")[behind] == EventType.TABLE_MAP)
    return not tables.any()


def _transaction_key(block: Block, event: int) -> tuple[int, str, int]:
    """Return what identifies the transaction of an event: epoch, file, and where it begins."""
    return block.epoch, block.file, int(block.column("transaction")[event])


def _select_held_back(block: Block, stays: Mask, *, is_shown: bool) -> NDArray[np.intp]:
    """Return the events to hold back of a transaction that continues: everything, or if its begin was delivered, what
    comes after its last event that means something."""
    events = np.flatnonzero(stays)
    means = np.flatnonzero(block.column("entry")[events])
    return events[means[-1] + 1 :] if is_shown and means.size else events


def _drop_unused_tables(block: Block) -> Block:
    """Return the block with only the table maps that its rows use."""
    used = {*block.column("table_id")[block.column("entry") == Entry.ROWS].tolist()}
    return block.with_tables({number: body for number, body in block.tables.items() if number in used})


def _classify_events(block: Block, rules: FilterRules) -> _BlockParts:
    """Return masks of the events that the rules want, exclude, or deliver only with others."""
    entry, kind, table_id = (block.column(name) for name in ("entry", "kind", "table_id"))
    are_rows, are_maps = entry == Entry.ROWS, kind == EventType.TABLE_MAP
    is_denied = np.isin(table_id, rules.excluded_ids(_all_table_maps(block, are_maps)))
    rows = are_rows & ~is_denied & rules.rows_kinds[kind]
    statements, files, xa = are_statements(block), are_loaded_files(block), are_xa_statements(block)
    wanted = (
        rows | rules.passing_statements(block, statements) | (xa & (entry == Entry.DDL)) | (kind == EventType.INCIDENT)
    )
    if "query" in rules.kinds and rules.passes_all_tables:  # of which table they are, only a later statement says
        wanted |= files
    unwanted = (are_rows | statements | files) & ~wanted
    unwanted |= are_maps & (is_denied | (not rules.rows_kinds.any()))
    notes = are_annotations(block)
    if notes.any():
        unwanted |= notes & ~_annotations_of_wanted_rows(
            block, notes, rows | (are_maps & ~unwanted), are_rows | are_maps, rules
        )
    marks = (entry == Entry.BEGIN) | (entry == Entry.END)
    hidden = marks & ~xa if "transaction" not in rules.kinds else np.zeros(len(block), np.bool_)
    return _BlockParts(wanted, unwanted, hidden, statements)


def _all_table_maps(block: Block, are_maps: Mask) -> dict[int, bytes]:
    """Return the table maps of the block, including those that only a later block has rows for."""
    tables = dict(block.tables)
    ids = block.column("table_id")
    there, first = np.unique(ids[are_maps], return_index=True)
    for number, at in zip(there.tolist(), np.flatnonzero(are_maps)[first].tolist(), strict=True):
        if number not in tables:
            tables[number] = body_at(block, at)
    return tables


def _annotations_of_wanted_rows(block: Block, notes: Mask, wanted: Mask, tables: Mask, rules: FilterRules) -> Mask:
    """Return a mask of the annotations whose rows are wanted, or come in a later block."""
    if "query" not in rules.kinds:
        return np.zeros(len(block), np.bool_)
    transaction = block.column("transaction")
    part = np.cumsum(notes | np.concatenate([[False], transaction[1:] != transaction[:-1]]))
    has_wanted = np.bincount(part, wanted, part[-1] + 1) > 0
    has_any = np.bincount(part, tables, part[-1] + 1) > 0
    return (has_wanted | ~has_any)[part]
