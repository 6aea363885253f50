"""Events as canal's entries, each with the tag of Messages.messages before it.

    Messages: messages: Entry
    Entry:    header | entryType | storeValue
    Header:   version, logfileName | logfileOffset | serverId | serverenCode | executeTime | sourceType
              | schemaName, tableName | eventLength | eventType | props | gtid

`canal/schema.py` has the numbers of the fields.

What is the same for many events (version and file, which are the first of `names`; the names of a table; what is said
of a transaction) comes as bytes.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_next
from penstock.binlog.kernel import (
    BYTES,
    I64S,
    I64S_2D,
    I64S_2D_IN,
    I64S_IN,
    NONE,
    U8S,
    kernel,
    read_little_endian,
    shared,
)
from penstock.canal.protobuf import encode_number, encode_text, varint_size, write_varint
from penstock.canal.schema import ENUMS, number_of, tag_of

# What `facts` has of each entry, one line each.
ENTRY_TYPE, EVENT_TYPE, OFFSET, SERVER_ID, TIME_MS, LENGTH, ROW_COUNT = 0, 1, 2, 3, 4, 5, 6
NAMES, ABOUT, GTID, STORE, FIRST, LAST, TABLE_ID = 7, 8, 9, 10, 11, 12, 13
FACTS = 14
# The store value: bytes that are ready; rows; BEGIN with the thread that the event names; END with its number.
READY, ROWS, BEGIN, XID = 0, 1, 2, 3
# What `sizes` gets: of the header, the store value, the entry.
HEADER_SIZE, STORE_SIZE, ENTRY_SIZE = 0, 1, 2

# Fields that are the same in every header; the digits of the count follow the tag of its value.
_ENCODING = encode_text(number_of("Header", "serverenCode"), "UTF-8")
_SOURCE = encode_number(number_of("Header", "sourceType"), ENUMS["Type"].index("MYSQL"))
_ROWS_COUNT = encode_text(number_of("Pair", "key"), "rowsCount") + bytes([tag_of("Pair", "value")])
# Tags: numbers when this is imported, constants in a kernel.
_MESSAGE = tag_of("Messages", "messages")
_HEADER, _ENTRY_TYPE, _STORE = (tag_of("Entry", name) for name in ("header", "entryType", "storeValue"))
_OFFSET, _SERVER_ID, _TIME = (tag_of("Header", name) for name in ("logfileOffset", "serverId", "executeTime"))
_LENGTH, _EVENT_TYPE, _PROPS = (tag_of("Header", name) for name in ("eventLength", "eventType", "props"))
_TABLE_ID, _ROW_EVENT_TYPE, _IS_DDL = (tag_of("RowChange", name) for name in ("tableId", "eventType", "isDdl"))
_THREAD, _TRANSACTION = tag_of("TransactionBegin", "threadId"), tag_of("TransactionEnd", "transactionId")


@shared
def _number_field_size(value: Any) -> Any:
    """Return the bytes of a protobuf number field; a zero is left out and takes none."""
    return 1 + varint_size(value) if value else 0


@shared
def _write_number_field(tag: Any, value: Any, out: Any, at: Any) -> Any:
    """Write a protobuf number field unless it is zero, and return where it ends."""
    if not value:
        return at
    out[np.uint64(at)] = tag
    return write_varint(value, out, at + 1)


@shared
def _count_digits(value: Any) -> Any:
    """Return how many decimal digits a number has; it is read as unsigned."""
    rest, count = np.uint64(value), 1
    while rest >= np.uint64(10):
        rest //= np.uint64(10)
        count += 1
    return count


@shared
def _write_digits(value: Any, out: Any, at: Any) -> Any:
    """Write a number in decimal, and return where it ends."""
    count, rest = _count_digits(value), np.uint64(value)
    for k in range(count - 1, -1, -1):
        out[np.uint64(at + k)] = np.uint8(np.uint64(48) + rest % np.uint64(10))
        rest //= np.uint64(10)
    return at + count


@shared
def _write_constant(text: Any, out: Any, at: Any) -> Any:
    """Copy constant bytes, and return where they end."""
    for k in range(len(text)):
        out[np.uint64(at + k)] = text[k]
    return at + len(text)


@shared
def _slice_size(bounds: Any, which: Any) -> Any:
    """Return the size of text number `which`."""
    return bounds[which + 1] - bounds[which]


@shared
def _write_slice(texts: Any, bounds: Any, which: Any, out: Any, at: Any) -> Any:
    """Copy text number `which`, and return where it ends."""
    size = bounds[which + 1] - bounds[which]
    copy_next(out, at, texts, bounds[which], size)
    return at + size


@kernel(NONE(I64S_2D_IN, BYTES, I64S_IN, I64S_IN, I64S_IN, I64S_2D, I64S))
def measure_entries(facts: Any, data: Any, names: Any, abouts: Any, gtids: Any, sizes: Any, ends: Any) -> None:
    """Measure each entry and its parts.

    Reads `facts` (one column per entry) and the events in `data`. Writes the sizes of header, store value and entry to
    sizes[i], and where entry i ends, including its tag, to ends[i].
    """
    written = np.int64(0)
    for i in range(ends.size):
        size = _slice_size(names, 0) + len(_ENCODING) + len(_SOURCE)
        size += (
            _number_field_size(facts[OFFSET, i])
            + _number_field_size(facts[SERVER_ID, i])
            + _number_field_size(facts[TIME_MS, i])
        )
        size += _number_field_size(facts[LENGTH, i]) + _number_field_size(facts[EVENT_TYPE, i])
        size += _slice_size(names, facts[NAMES, i]) + _slice_size(abouts, facts[ABOUT, i])
        size += _slice_size(gtids, facts[GTID, i])
        if facts[ROW_COUNT, i]:
            size += 2 + len(_ROWS_COUNT) + 1 + _count_digits(facts[ROW_COUNT, i])
        first = facts[FIRST, i]
        store = facts[LAST, i] - first
        if facts[STORE, i] == ROWS:
            store += _number_field_size(facts[TABLE_ID, i]) + 4
        elif facts[STORE, i] == BEGIN:
            store = _number_field_size(read_little_endian(data, first, 4))
        elif facts[STORE, i] == XID:
            store = 2 + _count_digits(read_little_endian(data, first, 8))
        sizes[i, HEADER_SIZE], sizes[i, STORE_SIZE] = size, store
        # The entry's type takes two bytes; a store value that is empty is not there.
        whole = 1 + varint_size(size) + size + 2
        if store:
            whole += 1 + varint_size(store) + store
        sizes[i, ENTRY_SIZE] = whole
        written += 1 + varint_size(whole) + whole
        ends[i] = written


@kernel(NONE(I64S_2D_IN, BYTES, BYTES, BYTES, BYTES, I64S_IN, BYTES, I64S_IN, BYTES, I64S_IN, I64S_2D, U8S))
def write_entries(
    facts: Any, data: Any, rows: Any, ready: Any, name_texts: Any, names: Any, about_texts: Any,
    abouts: Any, gtid_texts: Any, gtids: Any, sizes: Any, out: Any,
) -> None:  # fmt: skip
    """Write all entries side by side into `out`, with the sizes that `measure_entries` found."""
    at = np.int64(0)
    for i in range(sizes.shape[0]):
        out[np.uint64(at)] = _MESSAGE
        at = write_varint(sizes[i, ENTRY_SIZE], out, at + 1)
        out[np.uint64(at)] = _HEADER
        at = write_varint(sizes[i, HEADER_SIZE], out, at + 1)
        at = _write_slice(name_texts, names, 0, out, at)
        at = _write_number_field(_OFFSET, facts[OFFSET, i], out, at)
        at = _write_number_field(_SERVER_ID, facts[SERVER_ID, i], out, at)
        at = _write_constant(_ENCODING, out, at)
        at = _write_number_field(_TIME, facts[TIME_MS, i], out, at)
        at = _write_constant(_SOURCE, out, at)
        at = _write_slice(name_texts, names, facts[NAMES, i], out, at)
        at = _write_number_field(_LENGTH, facts[LENGTH, i], out, at)
        at = _write_number_field(_EVENT_TYPE, facts[EVENT_TYPE, i], out, at)
        at = _write_slice(about_texts, abouts, facts[ABOUT, i], out, at)
        if facts[ROW_COUNT, i]:
            digits = _count_digits(facts[ROW_COUNT, i])
            out[np.uint64(at)] = _PROPS
            out[np.uint64(at + 1)] = len(_ROWS_COUNT) + 1 + digits
            at = _write_constant(_ROWS_COUNT, out, at + 2)
            out[np.uint64(at)] = digits
            at = _write_digits(facts[ROW_COUNT, i], out, at + 1)
        at = _write_slice(gtid_texts, gtids, facts[GTID, i], out, at)
        out[np.uint64(at)], out[np.uint64(at + 1)] = _ENTRY_TYPE, facts[ENTRY_TYPE, i]
        at += 2
        if not sizes[i, STORE_SIZE]:
            continue
        out[np.uint64(at)] = _STORE
        at = write_varint(sizes[i, STORE_SIZE], out, at + 1)
        first, last = facts[FIRST, i], facts[LAST, i]
        if facts[STORE, i] == READY:
            copy_next(out, at, ready, first, last - first)
            at += last - first
        elif facts[STORE, i] == ROWS:
            at = _write_number_field(_TABLE_ID, facts[TABLE_ID, i], out, at)
            at = _write_number_field(_ROW_EVENT_TYPE, facts[EVENT_TYPE, i], out, at)
            out[np.uint64(at)], out[np.uint64(at + 1)] = _IS_DDL, 0
            copy_next(out, at + 2, rows, first, last - first)
            at += 2 + last - first
        elif facts[STORE, i] == BEGIN:
            at = _write_number_field(_THREAD, read_little_endian(data, first, 4), out, at)
        else:
            number = read_little_endian(data, first, 8)
            out[np.uint64(at)], out[np.uint64(at + 1)] = _TRANSACTION, _count_digits(number)
            at = _write_digits(number, out, at + 2)
