"""What Spark's workers open is bound to the term of their driver."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import cloudpickle

from penstock.coordinate import Fence, LeaseFile, LeasePublisher
from penstock.errors import FencedError
from penstock.search import FieldKind
from penstock.search.writer_term import WriterTerm
from penstock.spark.index_target import IndexTarget


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "index"], ids=["search server", "embedded"])
def test_a_worker_writes_only_while_its_driver_has_the_lease(tmp_path: Path, address: str) -> None:
    lease = tmp_path / "term-3.lease"
    term = WriterTerm("orders", 3, LeaseFile(lease).require)
    target = IndexTarget(address if "://" in address else str(tmp_path / address), "orders")
    target, sent = cloudpickle.loads(cloudpickle.dumps((target, term)))
    assert sent == replace(term, require=sent.require)
    with LeasePublisher(lease, Fence(3, "/epoch", 0)):
        sent.require()
    index = target.open(sent)
    with pytest.raises(FencedError, match="term-3: the driver has ended or has lost its lease"):
        index.prepare({"name": FieldKind.TEXT})
    index.close()
