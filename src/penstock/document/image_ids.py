"""Ids and routings of documents from the row images of the log: by column, and one by one only where a text needs it.

Invariant: an id is what `document_id` gives for the key, and a routing what `routing_text` gives for the value.
"""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.document.document_id import MAX_ID_BYTES, document_id, key_text
from penstock.document.sql_text import Key, value_from_json
from penstock.model import Column
from penstock.render.json_members import JsonMember
from penstock.render.text import TEXT, replace_byte

_AS_BYTES = {Family.BYTES, Family.UUID, Family.INET4, Family.INET6}  # base64 in an image
_DATE_CHARACTERS = 10
_NULL = ord("n")


def read_key(columns: Sequence[Column], members: Sequence[JsonMember], image: int) -> Key:
    """Return the key that one image has."""
    return tuple(
        value_from_json(column, json.loads(member.slice_value(image)))  # type: ignore[misc] - no key is NULL
        for column, member in zip(columns, members, strict=True)
    )


def write_ids(columns: Sequence[Column], members: Sequence[JsonMember]) -> pa.Array:
    """Return the id of each image, whose key is in these members."""
    parts = [_write_plain(column, member) for column, member in zip(columns, members, strict=True)]
    needs_care = np.any([is_special for _, is_special in parts], axis=0)
    if len(parts) == 1:
        ((texts, _),) = parts
        ids = texts
        needs_care |= _mask(pc.or_(pc.equal(texts, ""), pc.starts_with(texts, "%")))
    else:
        escaped = [pc.replace_substring(pc.replace_substring(text, "%", "%25"), ":", "%3A") for text, _ in parts]
        ids = pc.binary_join_element_wise(*escaped, pa.scalar(":", TEXT))
    needs_care |= _mask(pc.greater(pc.binary_length(ids), MAX_ID_BYTES))
    images = np.flatnonzero(needs_care)
    return _replace(ids, images, [document_id(read_key(columns, members, image)) for image in images.tolist()])


def write_routings(column: Column, member: JsonMember) -> pa.Array:
    """Return the routing of each image; null where the column is null or empty."""
    is_null = member.first_bytes == _NULL
    texts, needs_care = _write_plain(column, member)
    images = np.flatnonzero(needs_care & ~is_null)
    values = [key_text(value) for image in images.tolist() for value in read_key([column], [member], image)]
    routings = _replace(texts, images, values)
    has_none = pc.or_(pa.array(is_null), pc.fill_null(pc.equal(routings, ""), True))
    return pc.if_else(has_none, pa.scalar(None, TEXT), routings)


def _write_plain(column: Column, member: JsonMember) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the text of each value of a key's column, and which of them need more than their quotes removed."""
    family = kernel_family_of(column)[0]
    texts = member.without_quotes().to_texts()
    if family in _AS_BYTES:
        return texts, np.ones(len(member), np.bool_)
    if family in (Family.DATETIME, Family.TIMESTAMP):
        texts = replace_byte(pc.utf8_rtrim(texts, "Z"), _DATE_CHARACTERS, " ")
    return texts, _mask(pc.match_substring(texts, "\\"))


def _replace(texts: pa.Array, rows: NDArray[np.int64], values: Sequence[str]) -> pa.Array:
    """Return texts with others in these rows."""
    if not rows.size:
        return texts
    chosen = np.arange(len(texts))
    chosen[rows] = len(texts) + np.arange(rows.size)
    return pa.concat_arrays([texts, pa.array(values, TEXT)]).take(pa.array(chosen))


def _mask(booleans: pa.Array) -> NDArray[np.bool_]:
    """Return booleans as a mask."""
    return booleans.to_numpy(zero_copy_only=False).astype(np.bool_)
