"""`penstock sync` from a real MariaDB into OpenSearch and into an embedded index: how soon, how far, how fast.

Everything shares one machine: the database, `penstock serve`, `penstock sync` with its Spark, the search server, the
writer and the reader. Documents are products with three joins (a store, a category, an array of reviews) and items
without a join. Indexes refresh every 100 ms; OpenSearch has a heap of 512 MB and no limits on its compiler.

Latency is that of 200 changes of single products a second, each in a transaction of its own, from before COMMIT was
sent to when the first search that finds the change has returned. Fan-out is one change of a store, from before its
commit until a search finds all its products by the new value; the first of several, in which Spark's workers start, is
shown beside the median of the others. Changes per second are those of a backlog: all rows of a table are changed as
fast as the database can, in transactions of 1,000 rows, and the time counts from before the first until a search finds
them all; here, too, the first of several is shown beside the median of the others, because what is done for the first
time is compiled and imported in it, on the same cores. Beside them is how many of the same documents the search server
takes when all it gets is bulk requests that were built before. It has the cores for itself then, which no sync on the
same machine can have. CPU is in percent of one core; `others` is what ran on the machine besides.
"""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._index_bulk import measure_bulk
from benchmarks._index_latency import Latency, measure_latency
from benchmarks._index_probe import EmbeddedProbe, HttpProbe, SearchProbe
from benchmarks._index_shop import FANOUT, ITEMS, PRODUCTS, create_tables, mark_all, move_store, write_spec
from benchmarks._index_sync import SyncProcess, syncing
from benchmarks._index_writer import CHANGES_PER_S
from benchmarks._report import print_figures, print_table
from benchmarks._scale import is_tiny, scaled
from benchmarks._server_run import Running, connection_of, scratch, serving_instance
from benchmarks._services import fetch_services
from penstock.testing import DatabaseServer
from tests.services import SERVICES

FANOUTS = scaled(4, 2)
BACKLOGS = scaled(4, 1)
# What the figures are to be on two cores that have nothing else to do.
GOALS = {"latency_p50_ms": 400, "latency_p99_ms": 1000, "embedded_latency_p50_ms": 150, "fanout_10k_s": 5}
_TIMEOUT_S = 180
_EMBEDDED_MARKS, _MARKS, _BACKLOG_MARK = 1_000_000, 2_000_000, 3_000_000
# Not those of the tests, which limit the compiler.
_JAVA_OPTIONS = ("-XX:-UsePerfData",)


class Benchmark:
    """One run: a database, its server, and the figures of the indexes that follow it."""

    def __init__(self, source: DatabaseServer, server: Running, folder: Path) -> None:
        self._source, self._server, self._folder = source, server, folder
        self.figures = dict[str, float]()
        self._latencies = list[list[str]]()
        self._fanouts = list[list[str]]()
        self._rates = list[list[str]]()
        self._peaks = list[list[str]]()

    def embedded(self) -> None:
        """Follow the database into an embedded index."""
        say(f"embedded index: first load of {PRODUCTS:,} products")
        specs, index = [write_spec("product", self._folder)], self._folder / "index"
        with (
            ExitStack() as stack,
            syncing(self._source, self._server, specs, str(index), self._folder / "embedded") as sync,
        ):
            probe = EmbeddedProbe(index)
            stack.callback(probe.close)
            self._measure_latency("embedded", sync, probe, _EMBEDDED_MARKS, {})
            self._measure_fanout("embedded", sync, probe)
            self._note_memory("embedded", sync)

    def opensearch(self) -> None:
        """Follow the database into OpenSearch; then see what OpenSearch can do without it."""
        say("starting OpenSearch")
        service: Any = SERVICES["opensearch"]
        search = service.server(self._folder / "opensearch", java_options=_JAVA_OPTIONS)
        with ExitStack() as stack:
            stack.callback(search.kill)
            search.start()
            say(f"OpenSearch: first load of {PRODUCTS:,} products and {ITEMS:,} items")
            specs = [write_spec(name, self._folder) for name in ("product", "item")]
            probes = {name: HttpProbe(search.url, name) for name in ("product", "item")}
            for probe in probes.values():
                stack.callback(probe.close)
            with syncing(self._source, self._server, specs, search.url, self._folder / "sync") as sync:
                self._measure_latency("OpenSearch", sync, probes["product"], _MARKS, {"search": search.pid})
                self._measure_fanout("OpenSearch", sync, probes["product"])
                single = self._measure_backlog(sync, probes["item"], "item", ITEMS)
                joined = self._measure_backlog(sync, probes["product"], "product", PRODUCTS)
                self._note_memory("OpenSearch", sync)
            for name, index, rates in (("single", "item", single), ("joined", "product", joined)):
                say(f"OpenSearch alone: bulk requests of the documents of '{index}'")
                self._note_rate(name, rates, measure_bulk(search.url, index))

    def _measure_latency(
        self, name: str, sync: SyncProcess, probe: SearchProbe, first_mark: int, processes: dict[str, int]
    ) -> None:
        """Time single changes; the first search finds none, and the CPU of all that takes part is noted."""
        say(f"{name}: {CHANGES_PER_S} changes a second, each searched for")
        everybody = {"source": self._source.pid or 0, "serve": self._server.pid, "sync": sync.pid, **processes}
        latency = measure_latency(self._source, sync, probe, first_mark, everybody)
        prefix = "" if name == "OpenSearch" else f"{name}_"
        self.figures[f"{prefix}latency_p50_ms"] = round(latency.p50_ms, 1)
        self.figures[f"{prefix}latency_p99_ms"] = round(latency.p99_ms, 1)
        self.figures[f"{prefix}others_cpu_percent"] = round(latency.cpu_percent["others"])
        self._latencies.append([name, *_describe(latency)])

    def _measure_fanout(self, name: str, sync: SyncProcess, probe: SearchProbe) -> None:
        """Time changes of a store until all its products are found by its new city."""
        times = list[float]()
        for number in range(FANOUTS):
            say(f"{name}: change {number + 1} of {FANOUTS} of a store with {FANOUT:,} products")
            city = f"{name} {number}"
            began = time.perf_counter()
            move_store(self._source, city)
            sync.wait(
                lambda city=city: probe.count("store.city", city) == FANOUT, _TIMEOUT_S, "one store, all products"
            )
            times.append(time.perf_counter() - began)
        prefix = "" if name == "OpenSearch" else f"{name}_"
        self.figures[f"{prefix}fanout_10k_s"] = round(median(times[1:]), 2)
        self.figures[f"{prefix}fanout_10k_first_s"] = round(times[0], 2)
        self._fanouts.append([name, f"{times[0]:.2f}", f"{median(times[1:]):.2f}", _load()])

    def _measure_backlog(self, sync: SyncProcess, probe: SearchProbe, table: str, rows: int) -> list[float]:
        """Return how many changes a second are searchable when all rows of a table are changed at once, for each of
        several times."""
        rates = list[float]()
        for number in range(BACKLOGS):
            say(f"OpenSearch: {rows:,} changes of '{table}' as fast as they can be written, {number + 1} of {BACKLOGS}")
            mark = _BACKLOG_MARK + number
            began = time.perf_counter()
            mark_all(self._source, table, rows, mark)
            sync.wait(lambda mark=mark: probe.count("mark", str(mark)) == rows, _TIMEOUT_S, f"a backlog of '{table}'")
            rates.append(rows / (time.perf_counter() - began))
        return rates

    def _note_rate(self, name: str, rates: list[float], bulk_rate: float) -> None:
        """Note how fast documents of one kind were followed, beside the bulk rate of the search server."""
        rate = median(rates[1:] or rates)
        self.figures[f"changes_per_s_{name}"] = round(rate)
        self.figures[f"changes_per_s_{name}_first"] = round(rates[0])
        self.figures[f"bulk_documents_per_s_{name}"] = round(bulk_rate)
        self.figures[f"ratio_bulk_{name}"] = round(rate / bulk_rate, 2)
        documents = "one table" if name == "single" else "three joins"
        figures = [f"{rates[0]:,.0f}", f"{rate:,.0f}", f"{bulk_rate:,.0f}", f"{rate / bulk_rate:.2f}"]
        self._rates.append([documents, *figures, _load()])

    def _note_memory(self, name: str, sync: SyncProcess) -> None:
        """Note how much memory a sync has had at most."""
        peaks = sync.peaks_mib()
        prefix = "" if name == "OpenSearch" else f"{name}_"
        self.figures[f"{prefix}driver_peak_mib"] = round(peaks["driver"])
        self.figures[f"{prefix}sync_peak_mib"] = round(peaks["all"])
        self._peaks.append([name, *(f"{peaks[part]:,.0f}" for part in ("driver", "jvm", "all"))])

    def report(self) -> None:
        """Print the tables, and the goals beside what was reached."""
        parts = ("source", "serve", "sync", "search", "writer", "reader", "others")
        heads = ["index", "p50 ms", "p99 ms", "most ms", "changes", "per s", "searches/s", *parts, "load"]
        print_table("commit to searchable, and CPU % meanwhile", heads, self._latencies)
        heads = ["index", "first s", "median s", "load"]
        print_table(f"one change of a store, {FANOUT:,} products", heads, self._fanouts)
        heads = ["document", "first changes/s", "median changes/s", "bulk documents/s", "ratio", "load"]
        print_table("a backlog into OpenSearch, beside bulk requests alone", heads, self._rates)
        print_table("peak memory of sync, MiB", ["index", "driver", "its JVM", "all processes"], self._peaks)
        lines = [
            [name, f"{self.figures[name]:,g}", f"{goal:,g}", "reached" if self.figures[name] < goal else "MISSED"]
            for name, goal in GOALS.items()
        ]
        title = "goals, which a tiny run says nothing about" if is_tiny() else "goals"
        print_table(title, ["figure", "measured", "below", ""], lines)


def _describe(latency: Latency) -> list[str]:
    """Return a line of the table of latencies."""
    times = [f"{value:,.0f}" for value in (latency.p50_ms, latency.p99_ms, latency.most_ms)]
    paces = [f"{latency.changes:,}", f"{latency.changes_per_s:.0f}", f"{latency.searches_per_s:.0f}"]
    parts = ("source", "serve", "sync", "search", "writer", "reader", "others")
    shares = [f"{latency.cpu_percent[part]:.0f}" if part in latency.cpu_percent else "" for part in parts]
    return [*times, *paces, *shares, _load()]


def _load() -> str:
    """Return the machine's load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def main() -> None:
    before = round(os.getloadavg()[0], 1)
    fetch_services("mariadb", "opensearch")
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        service: Any = SERVICES["mariadb"]
        source = service.server(folder / "source", options={"innodb_buffer_pool_size": "512M"})
        stack.callback(source.kill)
        source.start()
        say(f"writing {PRODUCTS:,} products and {ITEMS:,} items")
        create_tables(source)
        (folder / "serve").mkdir()
        server = stack.enter_context(serving_instance({"source": connection_of(source)}, folder / "serve"))
        run = Benchmark(source, server, folder)
        run.embedded()
        run.opensearch()
        run.report()
        print_figures("index", {**run.figures, "load_before": before, "load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
