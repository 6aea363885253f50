"""A shop whose indexes are followed in a thread while it is changed, so that they can be verified meanwhile."""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from penstock.client import FlightClient
from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentSync, LocalWriter, load_spec
from penstock.document.difference_check import DifferenceCheck
from penstock.document.document_sample import DocumentSample
from penstock.document.verify import IndexVerifier, VerifyResult
from penstock.model import LogRequirement, Position, Sequence
from penstock.search import OPERATIONS, SearchIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.spark.applied_changes import find_requirement
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import source_of
from tests.support.document_stream import DocumentStream
from tests.support.shop import spec_texts

DEADLINE_S = 60.0


class VerifiedShop:
    """Indexes of a shop that a thread keeps equal to it, and their verifiers."""

    def __init__(self, source: SourceSettings, address: str, streams: Mapping[str, DocumentStream]) -> None:
        self._source, self.streams = source, streams
        self._client = FlightClient(address)
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, name="follow-shop")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(DEADLINE_S)
        self._client.close()
        if self._failure is not None:
            raise self._failure

    def _follow(self) -> None:
        try:
            while not self._stopping.is_set():
                for stream in self.streams.values():
                    stream.follow()
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self._failure = error

    def source_end(self) -> Position:
        """Return where the log of the database ends."""
        return self._client.source_end()

    def find_requirement(self) -> LogRequirement:
        """Return what the database must have executed to be the captured one."""
        return find_requirement(self._client)

    def verify(
        self, name: str, *, repair: bool = False, share: float | None = None, is_small: bool = False
    ) -> VerifyResult:
        """Compare one index with the database, or a share of it."""
        stream = self.streams[name]
        with closing(SourceRows(self._source, DOCUMENT_DECODING)) as rows:
            loaded = LoadedGraphs(self._source, stream.sync.graph.spec).load()
            builder = DocumentBuilder(loaded.graph, rows, loaded.missing)
            changes = StreamProgress(self, stream)
            sample = (
                None
                if share is None
                else DocumentSample.of(share, loaded.graph, rows, documents=0 if is_small else None)
            )
            check = DifferenceCheck(builder, rows, stream.index, changes)
            verifier = IndexVerifier(builder, stream.index, check, sample=sample)
            return verifier.run(repair=repair)

    def check_alive(self) -> None:
        """Raise what stopped the thread that follows."""
        if self._failure is not None:
            raise self._failure


@dataclass
class StreamProgress:
    """How far one stream is."""

    shop: VerifiedShop
    stream: DocumentStream

    def source_end(self) -> Position:
        """Return where the log of the database ends."""
        return self.shop.source_end()

    def find_requirement(self) -> LogRequirement:
        """Return what the database must have executed."""
        return self.shop.find_requirement()

    def wait_applied(self, position: Position) -> str:
        """Wait until the stream has passed a position."""

        def has_passed() -> bool:
            self.shop.check_alive()
            return self.stream.start >= position

        poll_until(has_passed, DEADLINE_S)
        return ""


@contextmanager
def open_shop(
    server: DatabaseServer, database: str, folder: Path, open_index: Callable[[str], SearchIndex], names: set[str]
) -> Iterator[VerifiedShop]:
    """Load some indexes of a shop, and follow it while the block runs."""
    source = source_of(server)
    with ExitStack() as opened:
        with closing(connect(source)) as connection:
            start = current_position(connection, source)
        flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source, start=str(start))))
        opened.callback(flight.stop)
        flight.start()
        rows = opened.enter_context(closing(SourceRows(source, DOCUMENT_DECODING)))
        streams: dict[str, DocumentStream] = {}
        for name, text in spec_texts(database).items():
            if name not in names:
                continue
            (folder / f"{name}.yml").write_text(text, encoding="utf-8")
            index = opened.enter_context(closing(open_index(name)))
            sync = DocumentSync(
                LoadedGraphs(source, load_spec(folder / f"{name}.yml")).load,
                rows,
                index,
                lambda builder, index=index: LocalWriter(builder, rows, index),
            )
            sync.prepare_index()
            sync.load_all(int(Sequence.from_position(start)))
            streams[name] = DocumentStream(sync, index, flight.address, start)
        yield opened.enter_context(VerifiedShop(source, flight.address, streams))


@dataclass(frozen=True)
class Damage:
    """A document that somebody changed behind our back: what `verify` must call it, and the version that it has."""

    kind: str
    version: int


def plant_damage(index: SearchIndex, count: int, pick: random.Random, foreign_ids: list[str]) -> dict[str, Damage]:
    """Delete, change, move and add documents, with versions that the index takes, and return what was done."""
    index.refresh()
    table = next(iter(index.scan_documents()))
    rows = pick.sample(table.to_pylist(), min(count, table.num_rows))
    damages: dict[str, Damage] = {}
    operations: list[tuple[str, int, str | None, str | None]] = []
    for number, row in enumerate(rows):
        name, version, routing = row["id"], row["version"], row["routing"]
        document = json.loads(row["document"])
        if number % 4 == 0:
            damages[name] = Damage("missing", version)
            operations.append((name, version, None, routing))
            continue
        damages[name] = Damage("stale", version)
        if number % 4 == 1 and routing is not None:
            operations += [(name, version, None, routing), (name, version, row["document"], f"{routing}0")]
        else:
            operations.append((name, version, json.dumps(_change(document, is_deep=number % 4 == 2)), routing))
    for name in foreign_ids:
        damages[name] = Damage("extra", 1)
        operations.append((name, 1, json.dumps({"somebody": "else"}), None))
    names, versions, documents, routings = zip(*operations, strict=True)
    columns = {"id": names, "version": versions, "document": documents, "routing": routings}
    report = index.write(pa.table([pa.array(columns[part.name], part.type) for part in OPERATIONS], schema=OPERATIONS))
    assert not report.rejected
    index.refresh()
    return damages


def _change(document: dict[str, Any], *, is_deep: bool) -> dict[str, Any]:
    """Return a document with another value, in a joined part if there is one."""
    for value in document.values() if is_deep else ():
        part = value[0] if isinstance(value, list) and value else value
        if isinstance(part, dict) and part:
            name = next(iter(part))
            part[name] = None if part[name] is not None else 1
            return document
    name = next(name for name, value in document.items() if not isinstance(value, list | dict))
    document[name] = None if document[name] is not None else 1
    return document
