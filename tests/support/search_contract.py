"""What every search index promises, written once; a test module per product gives it the fixture `index`.

Invariant: `index` is empty, prepared with FIELDS, and nobody else writes to it.
"""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ConfigurationError, SinkError
from penstock.search import DOCUMENT_IDS, DOCUMENTS, OPERATIONS, FieldKind, SearchIndex, WriteReport

FIELDS = {
    "name": FieldKind.TEXT,
    "about": FieldKind.TEXT,
    "sku": FieldKind.KEYWORD,
    "stock": FieldKind.INTEGER,
    "serial": FieldKind.UNSIGNED,
    "price": FieldKind.FLOAT,
    "is_new": FieldKind.BOOLEAN,
    "added": FieldKind.DATE,
    "brand.name": FieldKind.TEXT,
    "brand.country": FieldKind.KEYWORD,
}

LAMP = {
    "name": "Red desk lamp",
    "about": "Shines on your telescope",
    "sku": "LA-1 x",
    "stock": 7,
    "price": 19.5,
    "is_new": True,
    "added": "2024-03-01 10:20:30",
    "brand": [{"name": "Lumière", "country": "FR"}, {"name": "Glow", "country": "DE"}],
    "colours": ["red", "blue"],
    "note": None,
}
CHAIR = {"name": "Red chair", "about": "Sits by the lamp", "sku": "CH-1", "stock": -3, "price": 100, "is_new": False}

# What a search box finds among the two.
SEARCHES: dict[str, set[str]] = {
    "": {"lamp", "chair"},
    "   ": {"lamp", "chair"},
    "red": {"lamp", "chair"},
    "RED Desk": {"lamp"},
    "red telescope": {"lamp"},
    "red sofa": set(),
    "lamp": {"lamp", "chair"},
    "tele": {"lamp"},
    "tele red": set(),
    "red tele": {"lamp"},
    "tele sku:CH-1": set(),
    "glow": {"lamp"},
    "red-desk!": {"lamp"},
    '"desk lamp"': {"lamp"},
    "red ???": {"lamp", "chair"},
    "???": set(),
    "name:lamp": {"lamp"},
    "name:la": {"lamp"},
    "brand.name:glow": {"lamp"},
    "about:red": set(),
    'sku:"LA-1 x"': {"lamp"},
    "sku:LA-1": set(),
    "sku:ch-1": set(),
    "red sku:CH-1": {"chair"},
    "brand.country:DE": {"lamp"},
    "stock:7": {"lamp"},
    "stock:007": {"lamp"},
    "stock:-3": {"chair"},
    "stock:seven": set(),
    "price:19.5": {"lamp"},
    "price:100": {"chair"},
    "is_new:true": {"lamp"},
    "is_new:maybe": set(),
    "added:2024-03-01": {"lamp"},
    "added:2024-03-01T10:20:30": {"lamp"},
    "added:2024-03-02": set(),
    "added:soon": set(),
    "unknown:lamp": set(),
}

ODD_TEXTS = [
    *("\\", '"', "'", ":", "name:", ":x", "*", "~", "^2", "+-&|!(){}[]", "/re(/", "name:*", "%s", "{}", '"a b' * 300),
    *("is_new:", "price:nan", "price:1e400", "added:0000-00-00"),
    *("AND OR NOT", "a OR", "[a TO", "\x00", "\ud800", "🦊", "name:\ud800", "sku:\x00", "\u200b", "stock:1e999999999"),
    *("x" * 5000, "a " * 3000, "name:" + "x" * 200, "stock:" + "9" * 400),
]

Document = Mapping[str, Any] | str | None
Operation = tuple[str, int, Document] | tuple[str, int, Document, str | None]


def table(*operations: Operation) -> pa.Table:
    """Operations (id, version, document and perhaps routing) as an index takes them; a None document deletes."""
    rows = [(*operation, None)[:4] for operation in operations]
    ids, versions, documents, routings = zip(*rows, strict=True) if rows else ((), (), (), ())
    texts = [json.dumps(document) if isinstance(document, Mapping) else document for document in documents]
    columns = {"id": list(ids), "version": list(versions), "document": texts, "routing": list(routings)}
    return pa.table(columns, schema=OPERATIONS)


def write(index: SearchIndex, *operations: Operation) -> WriteReport:
    report = index.write(table(*operations))
    index.refresh()
    return report


def search_ids(index: SearchIndex, text: str, limit: int = 10) -> set[str]:
    return {hit.id for hit in index.search(text, limit)}


def contents(index: SearchIndex) -> dict[str, tuple[int, Any]]:
    rows: Iterable[dict[str, Any]] = index.documents().to_pylist()
    return {row["id"]: (row["version"], json.loads(row["document"])) for row in rows}


def listed(pages: Iterable[pa.Table]) -> list[tuple[str, int, str | None]]:
    """Id, version and routing of all rows of some pages, in order."""
    rows: list[tuple[str, int, str | None]] = []
    for page in pages:
        assert page.schema.equals(DOCUMENT_IDS)
        assert 0 < page.num_rows <= 6000
        rows += [(row["id"], row["version"], row["routing"]) for row in page.to_pylist()]
    return sorted(rows, key=lambda row: (row[0], row[2] or ""))


class SearchIndexContract:
    """Inherit, and add the fixture."""

    def test_a_written_document_is_there_in_every_way(self, index: SearchIndex) -> None:
        assert write(index, ("1", 5, LAMP)) == WriteReport(written=1)
        assert index.get("1") == LAMP
        assert index.count() == 1
        assert contents(index) == {"1": (5, LAMP)}
        (hit,) = index.search("telescope")
        assert (hit.id, hit.document) == ("1", LAMP)
        assert hit.score > 0

    def test_an_empty_index_answers(self, index: SearchIndex) -> None:
        assert index.write(table()) == WriteReport()
        assert index.search("lamp") == []
        assert index.search("") == []
        assert index.get("1") is None
        assert index.count() == 0
        assert index.documents().schema.equals(DOCUMENTS)
        assert index.documents().num_rows == 0

    @pytest.mark.parametrize(("version", "is_taken"), [(4, False), (5, True), (6, True)])
    def test_a_write_is_taken_unless_it_is_older(self, index: SearchIndex, version: int, is_taken: bool) -> None:
        write(index, ("1", 5, LAMP))
        assert write(index, ("1", version, CHAIR)) == WriteReport(written=int(is_taken), stale=int(not is_taken))
        assert contents(index) == {"1": (version, CHAIR) if is_taken else (5, LAMP)}

    @pytest.mark.parametrize(("version", "is_taken"), [(4, False), (5, True), (6, True)])
    def test_a_delete_is_taken_unless_it_is_older(self, index: SearchIndex, version: int, is_taken: bool) -> None:
        write(index, ("1", 5, LAMP))
        assert write(index, ("1", version, None)) == WriteReport(deleted=int(is_taken), stale=int(not is_taken))
        assert index.count() == int(not is_taken)

    @pytest.mark.parametrize("there_before", [True, False])
    @pytest.mark.parametrize(("version", "is_taken"), [(5, False), (6, True), (7, True)])
    def test_a_delete_keeps_its_version(
        self, index: SearchIndex, there_before: bool, version: int, is_taken: bool
    ) -> None:
        if there_before:
            write(index, ("1", 5, LAMP))
        assert write(index, ("1", 6, None)) == WriteReport(deleted=1)
        assert write(index, ("1", version, CHAIR)) == WriteReport(written=int(is_taken), stale=int(not is_taken))
        assert index.get("1") == (CHAIR if is_taken else None)

    def test_what_is_deleted_is_nowhere(self, index: SearchIndex) -> None:
        write(index, ("1", 1, LAMP), ("2", 1, CHAIR))
        write(index, ("1", 2, None))
        assert index.get("1") is None
        assert index.count() == 1
        assert set(contents(index)) == {"2"}
        for text in ("", "telescope", "red", "stock:7"):
            assert "1" not in search_ids(index, text)

    def test_the_highest_version_fits(self, index: SearchIndex) -> None:
        write(index, ("1", 2**63 - 1, LAMP), ("2", 0, LAMP))
        assert {key: version for key, (version, _) in contents(index).items()} == {"1": 2**63 - 1, "2": 0}

    def test_replaying_and_reordering_batches_gives_the_same_index(self, index: SearchIndex) -> None:
        chance = random.Random(7)
        history = [
            (str(chance.randrange(12)), version, None if chance.random() < 0.3 else {"name": f"v{version}"})
            for version in range(1, 150)
        ]
        expected: dict[str, tuple[int, Any]] = {key: (version, document) for key, version, document in history}
        applied: dict[str, int] = {}
        for _ in range(40):
            batch = {key: (version, document) for key, version, document in chance.sample(history, 10)}
            report = index.write(table(*((key, *rest) for key, rest in batch.items())))
            stale = sum(version < applied.get(key, -1) for key, (version, _) in batch.items())
            assert (report.stale, report.rejected) == (stale, ())
            assert report.written + report.deleted + report.stale == len(batch)
            applied |= {key: version for key, (version, _) in batch.items() if version >= applied.get(key, -1)}
        write(index, *((key, *rest) for key, rest in expected.items()))
        assert contents(index) == {key: rest for key, rest in expected.items() if rest[1] is not None}

    @pytest.mark.parametrize(
        "broken",
        [
            pytest.param(table(("1", 1, LAMP), ("1", 2, None)), id="id twice"),
            pytest.param(table(("1", -1, LAMP)), id="negative version"),
            pytest.param(table(("1", 1, LAMP)).drop_columns(["version"]), id="no version"),
            pytest.param(table(("1", 1, LAMP, "")).drop_columns(["id"]), id="no id"),
            pytest.param(pa.table({"id": [1], "version": [1], "document": ["{}"]}), id="number as id"),
            pytest.param(table(("1", 1, LAMP)).set_column(0, "id", pa.nulls(1, pa.string())), id="null id"),
            pytest.param(table(("1", 1, LAMP, "a"), ("1", 2, None, "a")), id="id twice with one routing"),
            pytest.param(table(("1", 1, LAMP, ""), ("1", 2, None)), id="id twice without routing"),
            pytest.param(table(("1", 1, LAMP)).set_column(3, "routing", pa.array([7])), id="number as routing"),
        ],
    )
    def test_a_broken_batch_is_refused_whole(self, index: SearchIndex, broken: pa.Table) -> None:
        with pytest.raises(SinkError):
            index.write(broken)
        index.refresh()
        assert index.count() == 0

    @pytest.mark.parametrize(
        "bad",
        [
            ("", 2, LAMP),
            ("x" * 513, 2, LAMP),
            ("bad", 2, "[1, 2]"),
            ("bad", 2, ""),
            ("bad", 2, "null"),
            ("bad", 2, '{"name": "cut'),
            ("bad", 2, '{"name": "\\ud83e and \\udd8a"}'),
            ("bad", 2, '{"stock": "many"}'),
            ("bad", 2, '{"stock": 9223372036854775808}'),
            ("bad", 2, '{"price": true}'),
            ("bad", 2, '{"is_new": 1}'),
            ("bad", 2, '{"added": "yesterday"}'),
            ("bad", 2, '{"sku": {"a": 1}}'),
        ],
        ids=str,
    )
    def test_a_bad_document_is_rejected_alone(self, index: SearchIndex, bad: Operation) -> None:
        write(index, ("bad", 1, CHAIR))
        report = write(index, ("1", 2, LAMP), bad, ("2", 2, None))
        assert (report.written, report.deleted, report.stale) == (1, 1, 0)
        (rejection,) = report.rejected
        assert (rejection.id, rejection.version, rejection.document, rejection.routing) == (
            bad[0],
            2,
            table(bad).column("document")[0].as_py(),
            None,
        )
        assert rejection.reason
        assert contents(index) == {"1": (2, LAMP), "bad": (1, CHAIR)}

    def test_values_may_be_spelled_as_text_or_be_absent(self, index: SearchIndex) -> None:
        spelled = {
            "stock": "7",
            "price": "19.50",
            "is_new": "true",
            "added": "2024-03-01T10:20:30Z",
            "sku": 5,
            "name": 6,
        }
        assert write(index, ("1", 1, spelled), ("2", 1, dict.fromkeys(FIELDS)), ("3", 1, {})).rejected == ()
        for text in ("stock:7", "price:19.5", "is_new:true", "added:2024-03-01", "sku:5", "6"):
            assert search_ids(index, text) == {"1"}

    @pytest.mark.parametrize(
        "key",
        ["a b", 'say "hi"', "back\\slash", "line\nfeed", "tab\t", "..", "a/b?c=d&e#f", "%2F", "日本", "🦊", "x" * 512],
    )
    def test_ids_are_any_text(self, index: SearchIndex, key: str) -> None:
        write(index, (key, 1, LAMP))
        assert index.get(key) == LAMP
        assert set(contents(index)) == {key} == search_ids(index, "lamp")
        assert write(index, (key, 2, None)) == WriteReport(deleted=1)
        assert index.count() == 0

    def test_unsigned_integers_are_whole_beyond_the_signed_ones(self, index: SearchIndex) -> None:
        rows = [(str(row), 1, {"serial": serial}) for row, serial in enumerate((0, 2**63 - 1, 2**63, 2**64 - 1))]
        assert write(index, *rows) == WriteReport(written=4)
        assert contents(index) == {key: (version, document) for key, version, document in rows}
        for key, _, document in rows:
            assert search_ids(index, f"serial:00{document['serial']}") == {key}
            assert listed(index.find_ids("serial", [str(document["serial"])])) == [(key, 1, None)]
        assert search_ids(index, f"serial:{2**64}") == set()

    def test_documents_may_have_escaped_characters(self, index: SearchIndex) -> None:
        assert write(index, ("1", 1, r'{"name": "\ud83e\udd8a \uD83E\uDD8A \u00e9"}')) == WriteReport(written=1)
        assert contents(index) == {"1": (1, {"name": "🦊 🦊 é"})}

    def test_documents_may_have_line_breaks(self, index: SearchIndex) -> None:
        assert write(index, ("1", 1, "\n" + json.dumps(LAMP, indent=2)), ("2", 1, CHAIR)) == WriteReport(written=2)
        assert contents(index) == {"1": (1, LAMP), "2": (1, CHAIR)}

    def test_many_documents_are_listed_completely(self, index: SearchIndex) -> None:
        rows = [(f"k{row}", row, {"name": f"thing {row}", "stock": row}) for row in range(2500)]
        assert write(index, *rows) == WriteReport(written=2500)
        assert contents(index) == {key: (version, document) for key, version, document in rows}
        assert index.count() == 2500
        assert len(index.search("thing", 2000)) == 2000

    def test_the_search_box(self, index: SearchIndex) -> None:
        write(index, ("lamp", 1, LAMP), ("chair", 1, CHAIR))
        assert {text: search_ids(index, text) for text in SEARCHES} == SEARCHES

    @pytest.mark.parametrize("size", [0, 1])
    def test_no_text_raises(self, index: SearchIndex, size: int) -> None:
        write(index, *[("lamp", 1, LAMP)][:size])
        for text in ODD_TEXTS:
            assert search_ids(index, text) <= {"lamp"}

    def test_limits_bound_the_hits(self, index: SearchIndex) -> None:
        write(index, *((str(row), 1, LAMP) for row in range(5)))
        assert [len(index.search("lamp", limit)) for limit in (0, 1, 5, 10**9)] == [0, 1, 5, 5]

    def test_a_better_match_comes_first(self, index: SearchIndex) -> None:
        write(index, ("2", 1, {"name": "lampshade"}), ("1", 1, {"name": "lamp", "about": "a lamp"}))
        assert [hit.id for hit in index.search("lamp")] == ["1", "2"]

    def test_preparing_again_changes_nothing(self, index: SearchIndex) -> None:
        write(index, ("1", 1, LAMP))
        index.prepare(FIELDS)
        index.prepare({"name": FieldKind.TEXT})
        assert contents(index) == {"1": (1, LAMP)}
        write(index, ("2", 1, CHAIR))
        assert search_ids(index, "sits") == {"2"}

    @pytest.mark.parametrize(
        "fields",
        [
            {"name": FieldKind.KEYWORD},
            {"weight": FieldKind.FLOAT},
            {"_id": FieldKind.TEXT},
            {"a b": FieldKind.TEXT},
            {"a": FieldKind.TEXT, "a.b": FieldKind.TEXT},
        ],
        ids=str,
    )
    def test_other_fields_are_refused(self, index: SearchIndex, fields: dict[str, FieldKind]) -> None:
        with pytest.raises(ConfigurationError, match=next(iter(fields))):
            index.prepare(fields)

    def test_the_load_that_filled_it_is_remembered(self, index: SearchIndex) -> None:
        assert index.read_load_id() == ""
        index.claim_epoch(2)
        index.remember_load("7f")
        index.prepare(FIELDS)
        assert write(index, ("1", 1, LAMP)) == WriteReport(written=1)
        assert index.read_load_id() == "7f"
        index.claim_epoch(3)
        index.remember_load("80")
        assert index.read_load_id() == "80"
        with pytest.raises(SinkError, match="written with epoch 3"):
            index.claim_epoch(2)

    def test_an_epoch_is_remembered_and_never_falls(self, index: SearchIndex) -> None:
        index.claim_epoch(0)
        index.claim_epoch(3)
        index.claim_epoch(3)
        with pytest.raises(SinkError, match=r"written with epoch 3.* epoch 2: .*raise the epoch") as caught:
            index.claim_epoch(2)
        assert not caught.value.transient
        index.claim_epoch(511)
        index.prepare(FIELDS)
        assert write(index, ("1", 1, LAMP)) == WriteReport(written=1)
        assert search_ids(index, "tele stock:7") == {"1"}
