"""The comparison of an index with the database, for a sync job whose checkpoint is at hand."""

import threading
from contextlib import ExitStack, closing
from functools import partial

from penstock.client import FlightClient
from penstock.document import DOCUMENT_DECODING, DocumentBuilder
from penstock.document.difference_check import DifferenceCheck
from penstock.document.verify import IndexVerifier, VerifyResult
from penstock.errors import TableAlteredError
from penstock.model import TableName
from penstock.search.dead_letters import DeadLetters
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.applied_changes import StreamProgress
from penstock.spark.index_sync import table_filter
from penstock.spark.resumable_load import estimate_documents
from penstock.spark.sync_job import LoadedGraphs, SyncPlan
from penstock.spark.sync_settings import SyncSettings
from penstock.spark.sync_state import SyncState

_APPLIED_S = 60.0


class IndexComparison:
    """Compares one index of a sync job with the database, while the job follows changes.

    result = IndexComparison(settings, plan, SyncState(checkpoint), stopped).compare()
    """

    def __init__(self, settings: SyncSettings, plan: SyncPlan, state: SyncState, stopped: threading.Event) -> None:
        self._settings, self._plan, self._state, self._stopped = settings, plan, state, stopped

    def compare(self) -> VerifyResult:
        """Return what the comparison has found. Tables that are altered meanwhile make it begin again."""
        while True:
            try:
                return self._compare_once()
            except TableAlteredError:
                if self._stopped.is_set():
                    raise

    def _compare_once(self) -> VerifyResult:
        settings, plan, name = self._settings, self._plan, self._plan.spec.index
        with ExitStack() as opened:
            graphs = LoadedGraphs(settings.source, plan.spec, self._state.known_tables(name))
            loaded = graphs.load()
            client = opened.enter_context(closing(FlightClient(settings.server, settings.destination)))
            search = opened.enter_context(closing(plan.target.open(read_only=True)))
            rows = opened.enter_context(
                closing(SourceRows(settings.source, DOCUMENT_DECODING, replica=settings.replica))
            )
            letters = opened.enter_context(DeadLetters.open(self._state.dead_letters, is_created=False))
            builder = DocumentBuilder(loaded.graph, rows, loaded.missing)

            def require_current() -> None:
                if graphs.load().fingerprint != loaded.fingerprint:
                    raise TableAlteredError(f"tables of index '{name}' were altered during the comparison")

            check = DifferenceCheck(
                *(builder, rows, search, self._follow_progress(client, sorted(loaded.graph.tables))),
                require_current=require_current,
                pause=self._stopped.wait,
                explain=partial(letters.explain, name),
            )
            estimated = estimate_documents(settings.source, loaded.graph.root.table.name)
            return IndexVerifier(builder, search, check, self._stopped, estimated_documents=estimated).run()

    def wait_until_current(self) -> bool:
        """Return True when all changes are applied that the log has now; False when told to stop before."""
        graph = LoadedGraphs(self._settings.source, self._plan.spec, self._state.known_tables(self._plan.spec.index))
        tables = sorted(graph.load().graph.tables)
        with closing(FlightClient(self._settings.server, self._settings.destination)) as client:
            changes = self._follow_progress(client, tables)
            end = changes.source_end()
            while not self._stopped.is_set():
                if not changes.wait_applied(end):
                    return True
        return False

    def _follow_progress(self, client: FlightClient, tables: list[TableName]) -> StreamProgress:
        """Return what knows which changes are applied to the index."""
        return StreamProgress(
            *(client, lambda: self._state.applied_to, table_filter(tables)),
            timeout_s=_APPLIED_S,
            stopped=self._stopped,
        )
