"""`penstock index build`, `verify` and `--repair` of a million documents: how fast, beside bulk requests alone.

Everything shares one machine: the database, `penstock serve`, the build with its Spark, and the search server.
Documents are products with three joins (a store, a category, an array of two reviews), so that a document is made of
five rows.

Documents per second are those of the load alone, from when the build says that it begins until it says that all are
written, searchable, and have their settings back. Beside them is how many of the same documents the search server takes
when all it gets is bulk requests that were built before, into an index with the same mapping, without refreshes and
replicas, over one connection or two, whichever is faster. It has the cores for itself then, which no build on the same
machine can have. `verify` compares an index that is equal; its rows are those that it reads from the database. Repairs
per second are counted over what a repair takes longer than a comparison of the same documents. Memory is that of all
processes of the build, for all documents and for a fifth of them.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._build_bulk import damage_documents, measure_fresh_bulk
from benchmarks._build_process import IndexCommand, running_command
from benchmarks._index_shop import write_spec
from benchmarks._report import print_figures, print_table
from benchmarks._scale import is_tiny, scaled
from benchmarks._server_run import Running, connection_of, scratch, serving_instance
from benchmarks._services import fetch_services
from penstock.testing import DatabaseServer
from tests.services import SERVICES

DOCUMENTS = scaled(1_000_000, 2_000)
FEW = DOCUMENTS // 5
EMBEDDED = scaled(100_000, 500)
DAMAGED = scaled(20_000, 100)
ROWS_PER_DOCUMENT = 5
GOALS = {"full_sync_ratio_bulk": 0.8, "verify_rows_per_s": 100_000}
_JAVA_OPTIONS = ("-XX:-UsePerfData",)
_STORES, _CATEGORIES = 100, 20
_TABLES = (
    "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE shop.store (id INT PRIMARY KEY, name VARCHAR(40), city VARCHAR(40))",
    "CREATE TABLE shop.category (id INT PRIMARY KEY, name VARCHAR(40))",
    """CREATE TABLE shop.product (id INT PRIMARY KEY, name VARCHAR(60), description VARCHAR(200), price DECIMAL(10,2),
       quantity INT, mark BIGINT, store_id INT, category_id INT, KEY (store_id), KEY (category_id))""",
    "CREATE TABLE shop.review (id INT PRIMARY KEY, product_id INT, stars INT, author VARCHAR(40), KEY (product_id))",
    f"INSERT INTO shop.store SELECT seq, CONCAT('store ', seq), CONCAT('city ', seq) FROM shop.seq_1_to_{_STORES}",
    f"INSERT INTO shop.category SELECT seq, CONCAT('category ', seq) FROM shop.seq_1_to_{_CATEGORIES}",
    f"""INSERT INTO shop.product SELECT seq, CONCAT('product number ', seq),
        CONCAT(REPEAT('a kettle of copper, ', 1 + seq % 5), seq), seq / 7, seq % 100, 0, 1 + seq % {_STORES},
        1 + seq % {_CATEGORIES} FROM shop.seq_1_to_{DOCUMENTS}""",
    f"""INSERT INTO shop.review SELECT seq, 1 + (seq - 1) DIV 2, 1 + seq % 5, CONCAT('reader ', seq % 1000)
        FROM shop.seq_1_to_{2 * DOCUMENTS}""",
)


class Benchmark:
    """One run: a database, its server, and the figures of the indexes that are built from it."""

    def __init__(self, source: DatabaseServer, server: Running, folder: Path) -> None:
        self._source, self._server, self._folder = source, server, folder
        self.figures = dict[str, float]()
        self._lines = list[list[str]]()

    def opensearch(self) -> None:
        """Build, compare and repair an index of OpenSearch; then see what OpenSearch can do without it."""
        say("starting OpenSearch")
        service: Any = SERVICES["opensearch"]
        search = service.server(self._folder / "opensearch", java_options=_JAVA_OPTIONS)
        with ExitStack() as stack:
            stack.callback(search.kill)
            search.start()
            few = self._write_spec("few", f"id <= {FEW}")
            _, _, peak_few = self._build(few, search.url, "few", FEW)
            spec = self._write_spec("all", "")
            rate, compared, peak = self._build(spec, search.url, "all", DOCUMENTS)
            self.figures |= {"documents_per_s": round(rate), "build_verify_documents_per_s": round(compared)}
            self.figures |= {"peak_mib": round(peak), "peak_fifth_mib": round(peak_few)}
            self._verify(spec, search.url)
            say("OpenSearch alone: bulk requests of the same documents")
            bulk = measure_fresh_bulk(search.url, "products-all")
            self.figures |= {"bulk_documents_per_s": round(bulk), "full_sync_ratio_bulk": round(rate / bulk, 2)}
            self._note("bulk requests alone", DOCUMENTS, bulk)

    def embedded(self) -> None:
        """Build an embedded index."""
        spec = self._write_spec("embedded", f"id <= {EMBEDDED}")
        rate, _, peak = self._build(spec, str(self._folder / "index"), "embedded", EMBEDDED)
        self.figures |= {"embedded_documents_per_s": round(rate), "embedded_peak_mib": round(peak)}

    def _write_spec(self, name: str, where: str) -> Path:
        """Write a spec of the documents of products, or of some, with an alias of its own."""
        path = self._folder / f"{name}.yml"
        text = write_spec("product", self._folder).read_text(encoding="utf-8")
        text = text.replace("index: product", f"index: product-{name}\nalias: products-{name}")
        text = text.replace("  fields: [name, description", f"  where: {where}\n  fields: [name, description", 1)
        path.write_text(text if where else text.replace("  where: \n", ""), encoding="utf-8")
        return path

    def _build(self, spec: Path, index: str, name: str, documents: int) -> tuple[float, float, float]:
        """Build an index; return documents per second of the load and of the comparison, and the peak memory."""
        say(f"building an index of {documents:,} documents at {name}")
        (self._folder / name).mkdir()
        build: IndexCommand
        words = ("build", "--checkpoint", str(self._folder / name / "checkpoint"))
        with running_command(self._source, self._server, spec, index, *words) as build:
            began = build.wait_for("first load of index")
            loaded = build.wait_for("loaded ")
            equal = build.wait_for("equal to the database")
            build.wait_for("leads to")
        rate, compared = documents / (loaded - began), documents / (equal - loaded)
        self._note(f"load ({name})", documents, rate)
        self._note(f"comparison before the swap ({name})", documents, compared)
        return rate, compared, build.peak_mib

    def _verify(self, spec: Path, index: str) -> None:
        """Compare an index that is equal, then one that is damaged, which is repaired."""
        say("comparing the whole index")
        options = (self._source, self._server, spec, index)
        with running_command(*options, "verify", "--settle", "1") as verify:
            equal = verify.read_result()
        if not equal["equal"]:
            raise RuntimeError(f"the index is not equal: {equal}")
        rate = equal["documents"] / equal["seconds"]
        self.figures |= {"verify_documents_per_s": round(rate), "verify_rows_per_s": round(rate * ROWS_PER_DOCUMENT)}
        self._note("verify, equal", equal["documents"], rate)
        say(f"damaging and repairing {DAMAGED:,} documents")
        damage_documents(index, "products-all", DAMAGED)
        with running_command(*options, "verify", "--repair", "--settle", "1") as repair:
            repaired = repair.read_result()
        if repaired["repaired"] != DAMAGED:
            raise RuntimeError(f"not all damage was repaired: {repaired}")
        took = max(repaired["seconds"] - equal["seconds"], 0.1)
        self.figures["repair_documents_per_s"] = round(DAMAGED / took)
        self._note("repair", DAMAGED, DAMAGED / took)

    def _note(self, what: str, documents: int, rate: float) -> None:
        self._lines.append([what, f"{documents:,}", f"{rate:,.0f}", f"{os.getloadavg()[0]:.1f}"])

    def report(self) -> None:
        """Print the tables, and the goals beside what was reached."""
        print_table("documents of five rows", ["work", "documents", "documents/s", "load"], self._lines)
        memory = [["a fifth", f"{self.figures['peak_fifth_mib']:,}"], ["all", f"{self.figures['peak_mib']:,}"]]
        print_table("peak memory of all processes of the build", ["documents", "MiB"], memory)
        lines = [
            [name, f"{self.figures[name]:,g}", f"{goal:,g}", "reached" if self.figures[name] >= goal else "MISSED"]
            for name, goal in GOALS.items()
        ]
        title = "goals, which a tiny run says nothing about" if is_tiny() else "goals"
        print_table(title, ["figure", "measured", "at least", ""], lines)


def main() -> None:
    before = round(os.getloadavg()[0], 1)
    fetch_services("mariadb", "opensearch")
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        service: Any = SERVICES["mariadb"]
        source = service.server(folder / "source", options={"innodb_buffer_pool_size": "1G"})
        stack.callback(source.kill)
        source.start()
        say(f"writing {DOCUMENTS:,} products with two reviews each")
        with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in _TABLES:
                cursor.execute(statement)
        (folder / "serve").mkdir()
        server = stack.enter_context(serving_instance({"source": connection_of(source)}, folder / "serve"))
        run = Benchmark(source, server, folder)
        if not is_tiny():
            run.embedded()
        run.opensearch()
        run.report()
        print_figures("build", {**run.figures, "load_before": before, "load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
