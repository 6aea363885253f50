"""The proof of the demo: does the index equal the database? And damage to the index, which the proof must find."""

import json
import random
import threading
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.config import SourceSettings
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentSpec
from penstock.document.difference_check import AppliedChanges, DifferenceCheck
from penstock.document.verify import IndexVerifier
from penstock.search import OPERATIONS, SearchIndex
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.sync_job import LoadedGraphs

_SHOWN = 10


class IndexProof:
    """Compares the index of the demo with its database, damages it, and repairs it.

    proof = IndexProof(source, spec, index, changes)
    proof.verify(repair=False)["equal"]
    """

    def __init__(self, source: SourceSettings, spec: DocumentSpec, index: SearchIndex, changes: AppliedChanges) -> None:
        self._source, self._spec, self._index, self._changes = source, spec, index, changes
        self._one_at_a_time = threading.Lock()

    def verify(self, *, repair: bool) -> dict[str, Any]:
        """Compare all documents, and return what the page shows of it; with `repair`, write what differs."""
        with self._one_at_a_time, closing(SourceRows(self._source, DOCUMENT_DECODING)) as rows:
            loaded = LoadedGraphs(self._source, self._spec).load()
            builder = DocumentBuilder(loaded.graph, rows, loaded.missing)
            check = DifferenceCheck(builder, rows, self._index, self._changes)
            result = IndexVerifier(builder, self._index, check).run(repair=repair)
        return {
            "equal": result.is_equal,
            "documents": result.documents,
            "differences": [str(difference) for difference in result.differences[:_SHOWN]],
            "counts": result.counts,
            "unsettled": result.unsettled_reason if result.unsettled else "",
            "repaired": result.repaired,
        }

    def damage(self) -> dict[str, Any]:
        """Delete a document, change one and add one, behind the back of sync; return what was done."""
        with self._one_at_a_time:
            rows = next(iter(self._index.scan_documents())).to_pylist()
            gone, changed = random.sample(rows, 2)
            document = json.loads(changed["document"]) | {"state": "lost"}
            operations = [
                (gone["id"], gone["version"], None, gone["routing"]),
                (changed["id"], changed["version"], json.dumps(document), changed["routing"]),
                ("999999999", 1, json.dumps(document | {"number": "A-nobody"}), None),
            ]
            columns = dict(zip(("id", "version", "document", "routing"), zip(*operations, strict=True), strict=True))
            self._index.write(
                pa.table([pa.array(columns[part.name], part.type) for part in OPERATIONS], schema=OPERATIONS)
            )
        number = json.loads(gone["document"])["number"]
        return {
            "text": f"order {number} was deleted from the index, {document['number']} has another state there, and"
            " A-nobody was added; the database knows nothing of it"
        }
