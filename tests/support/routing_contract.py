"""What every search index promises about routings and about lists of ids; fixture and invariant as in
`search_contract`, with one shard or several.
"""

import pyarrow as pa
import pytest

from penstock.errors import ConfigurationError
from penstock.search import SearchIndex, WriteReport
from tests.support.search_contract import CHAIR, LAMP, contents, listed, table, write


def listed_documents(page: pa.Table) -> list[tuple[str, int, str | None, str]]:
    """Return the documents of a table as tuples, in the order of their ids."""
    return sorted(tuple(row.values()) for row in page.to_pylist())


class RoutingContract:
    """Inherit, and add the fixture."""

    def test_operations_without_the_routing_column_are_taken(self, index: SearchIndex) -> None:
        assert index.write(table(("1", 1, LAMP), ("", 1, LAMP)).drop_columns(["routing"])).written == 1
        assert listed(index.scan_ids()) == [("1", 1, None)]

    def test_a_routing_is_kept_and_found(self, index: SearchIndex) -> None:
        odd = 'a "b"\\\n,日本'
        assert (
            write(index, ("1", 1, LAMP, "fr"), ("2", 1, CHAIR, odd), ("3", 1, CHAIR, ""), ("4", 1, CHAIR)).written == 4
        )
        assert listed(index.scan_ids()) == [("1", 1, "fr"), ("2", 1, odd), ("3", 1, None), ("4", 1, None)]
        assert (index.get("1", "fr"), index.get("2", odd), index.get("3")) == (LAMP, CHAIR, CHAIR)
        assert write(index, ("1", 2, None, "fr"), ("2", 2, None, odd)) == WriteReport(deleted=2)
        assert listed(index.scan_ids()) == [("3", 1, None), ("4", 1, None)]

    @pytest.mark.parametrize("is_delete_first", [True, False])
    def test_a_changed_routing_is_a_delete_and_a_document(self, index: SearchIndex, is_delete_first: bool) -> None:
        """Two routings may mean the same shard, where both operations meet: the document must stay."""
        keys = [str(row) for row in range(30)]
        write(index, *((key, 5, CHAIR, "old") for key in keys))
        moves = [(key, 6, document, route) for key in keys for document, route in ((None, "old"), (LAMP, f"new{key}"))]
        batch = moves if is_delete_first else moves[::-1]
        for _ in range(2):
            assert write(index, *batch) == WriteReport(written=30, deleted=30)
            assert contents(index) == dict.fromkeys(keys, (6, LAMP))
            assert {row[2] for row in listed(index.scan_ids())} == {f"new{key}" for key in keys}
        assert write(index, *((key, 5, CHAIR, "old") for key in keys)) == WriteReport(stale=30)
        assert contents(index) == dict.fromkeys(keys, (6, LAMP))

    def test_the_empty_routing_is_none_also_when_it_changes(self, index: SearchIndex) -> None:
        write(index, ("1", 5, CHAIR, ""), ("2", 5, CHAIR))
        batch = (("1", 6, LAMP), ("1", 6, None, ""), ("2", 6, None), ("2", 6, None, ""), ("3", 6, None, ""))
        assert write(index, *batch) == WriteReport(written=1, deleted=2)
        assert contents(index) == {"1": (6, LAMP)}

    def test_a_refused_document_with_a_new_routing_leaves_the_delete(self, index: SearchIndex) -> None:
        write(index, ("1", 5, CHAIR, "old"))
        report = write(index, ("1", 6, '{"stock": "many"}', "new"), ("1", 6, None, "old"))
        assert (report.written, report.deleted, report.stale) == (0, 1, 0)
        (rejection,) = report.rejected
        assert (rejection.id, rejection.version, rejection.routing) == ("1", 6, "new")
        assert rejection.document == '{"stock": "many"}'
        assert index.count() == 0

    def test_ids_are_scanned_completely_and_in_pages(self, index: SearchIndex) -> None:
        rows = [(f"k{row}", row, {"sku": f"s{row % 7}", "stock": row % 3}) for row in range(12_000)]
        index.write(table(*rows))  # not refreshed: the scan does it
        pages = list(index.scan_ids())
        assert len(pages) > 1
        assert listed(pages) == sorted((key, version, None) for key, version, _ in rows)
        expected = sorted((key, version, None) for key, version, document in rows if document["sku"] != "s3")
        assert len(expected) > 10_000
        values = [f"s{row}" for row in range(7) if row != 3]
        assert listed(index.find_ids("sku", values)) == expected
        many = [f"x{row}" for row in range(70_000)] + values
        assert listed(index.find_ids("sku", many)) == expected

    def test_documents_are_scanned_as_they_were_written(self, index: SearchIndex) -> None:
        texts = {f"k{row}": f'{{ "price": {row}.500,"sku":"ü\\n{row}" }}' for row in range(2_500)}
        index.write(table(*((key, 7, text, "fr" if key < "k2" else None) for key, text in texts.items())))
        expected = sorted((key, 7, "fr" if key < "k2" else None, text) for key, text in texts.items())
        pages = list(index.scan_documents())
        assert sorted(row for page in pages for row in listed_documents(page)) == expected
        parts = [[row for page in index.scan_documents(part, 3) for row in listed_documents(page)] for part in range(3)]
        assert all(parts)
        assert sorted(row for part in parts for row in part) == expected

    def test_documents_are_read_as_last_written(self, index: SearchIndex) -> None:
        index.write(table(("a", 1, '{"stock": 1}', "fr"), ("b", 1, '{"stock": 2}'), ("gone", 1, '{"stock": 3}')))
        index.write(table(("b", 2, '{"stock":  4.0}'), ("gone", 2, None)))  # nothing is refreshed
        rows = index.read_documents([("a", "fr"), ("b", None), ("gone", None), ("never", None)])
        assert listed_documents(rows) == [("a", 1, "fr", '{"stock": 1}'), ("b", 2, None, '{"stock":  4.0}')]
        assert listed_documents(index.read_documents([])) == []

    def test_ids_are_found_by_the_values_of_a_field(self, index: SearchIndex) -> None:
        index.write(table(("lamp", 3, LAMP, "fr"), ("chair", 4, CHAIR), ("gone", 5, LAMP)))
        index.write(table(("gone", 6, None)))
        lamp, chair = ("lamp", 3, "fr"), ("chair", 4, None)
        for field, values, rows in (
            ("sku", ["LA-1 x"], [lamp]),
            ("sku", ["la-1 x", "LA-1", ""], []),
            ("sku", [], []),
            ("sku", ["CH-1", "LA-1 x", "CH-1"], [chair, lamp]),
            ("brand.country", ["DE", "FR"], [lamp]),
            ("stock", ["7", "-3"], [chair, lamp]),
        ):
            assert listed(index.find_ids(field, values)) == rows

    @pytest.mark.parametrize("field", ["name", "unknown"])
    def test_ids_are_not_found_by_a_field_without_exact_values(self, index: SearchIndex, field: str) -> None:
        with pytest.raises(ConfigurationError, match=field):
            list(index.find_ids(field, ["x"]))
