"""A shop of nine tables, eight kinds of documents made of them, a random writer, and what an index must hold at rest.

Nothing here uses `penstock.document`: the oracle is plain SQL and Python, so that both cannot be wrong in the same way.

    create_shop(server, "shop")
    with ShopWriter(server, "shop", seed=1).working() as writer: ...
    expected = expected_documents(server, "shop")          # {index name: {document id: document}}
    assert not compare(expected["orders"], documents)      # (id, JSON text) of an index
"""

from tests.support.shop.compare import Differences, compare
from tests.support.shop.oracle import expected_documents
from tests.support.shop.reader import read_documents
from tests.support.shop.schema import TABLES, ShopSize, create_shop, drop_shop
from tests.support.shop.specs import FROM_LOG, INDEXES, spec_texts
from tests.support.shop.writer import ShopWriter

__all__ = [
    "FROM_LOG",
    "INDEXES",
    "TABLES",
    "Differences",
    "ShopSize",
    "ShopWriter",
    "compare",
    "create_shop",
    "drop_shop",
    "expected_documents",
    "read_documents",
    "spec_texts",
]
