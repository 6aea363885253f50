"""Opens the components of an instance, at the position that `StartFinder` finds."""

from collections.abc import Callable

from penstock.capture.begin import log_start
from penstock.capture.capture import Capture
from penstock.capture.context import CaptureContext, Repair
from penstock.capture.counters import CaptureCounters
from penstock.capture.position_resolver import check_start
from penstock.capture.schema_import import open_tables_since
from penstock.capture.state import StateTracker
from penstock.capture.watchdog import Watchdog
from penstock.config import InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import make_tree_private
from penstock.errors import ConfigurationError, PenstockError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.instance.assembly import open_meta_stores, open_prepared_transactions, open_store
from penstock.instance.clients import Clients
from penstock.instance.components import Components, run_all_steps
from penstock.instance.start_finder import StartFinder, continue_schemas
from penstock.meta import PersistentMetaManager
from penstock.model import Position
from penstock.source import open_source


def open_components(
    settings: InstanceSettings,
    states: StateTracker,
    counters: CaptureCounters,
    *,
    jitter: Callable[[], float],
    repair: Repair | None,
    on_fenced: Callable[[PenstockError], None],
    fence: Fence | None = None,
) -> Components:
    """Open all components of an instance at the position where it resumes. Only the meta manager's thread runs yet. If
    one cannot be opened, those before it are closed again."""
    reachable = check_startable(settings, can_repair=repair is not None)
    if settings.data_dir is not None:
        make_tree_private(settings.data_dir / settings.destination)
    meta_stores = open_meta_stores(settings, fence)
    opened: list[Callable[[], None]] = [meta_stores.close]
    try:
        if isinstance(meta_stores.meta, PersistentMetaManager):
            meta_stores.meta.on_fenced = on_fenced
        meta_stores.meta.start()
        finder = StartFinder(settings, meta_stores, reachable)
        source_log = finder.log
        store = open_store(settings, finder.start, source_log)
        opened.append(store.stop)
        begin = finder.prepare_store(store)
        endpoint = lambda: source_log.source.endpoint  # noqa: E731
        clients = Clients(store, meta_stores.meta, source=endpoint, check_cursor=finder.check_cursor)
        clients.rows.is_counting = counters.kept_rows is not None
        clients.start()
        known_from = finder.oldest if settings.schema_from == "earliest" else store.latest
        tables = open_tables_since(settings, source_log.source, known_from, store.latest)
        opened.append(tables.close)
        finder.prepare_schemas(tables, store.latest)
        block_filter = BlockFilter(settings.filter)
    except BaseException:
        run_all_steps(settings.destination, *opened)
        raise
    log_start(settings, begin)
    source_log.complete = tables.complete
    prepared = source_log.prepared = open_prepared_transactions(settings, source_log)
    stages = (("tables", tables.follow), ("filter", block_filter.apply))

    def on_jump(before: Position | None, position: Position) -> None:
        continue_schemas(tables, source_log, before, position, settings)
        prepared.switch_to(before, position if before is not None else None)

    components = CaptureContext(
        settings, source_log, finder.identity, store, states, counters, prepared, stages, on_jump
    )
    capture = Capture(components, jitter=jitter, repair=repair)
    bounds = (lambda: store.acked), (lambda: store.latest)
    watchdog = Watchdog(settings, source_log, *bounds, capture.mark_source_dead, tables.compact)
    return Components(meta_stores, source_log, store, clients, tables, block_filter, prepared, capture, watchdog, begin)


def check_startable(settings: InstanceSettings, *, can_repair: bool = False) -> set[str]:
    """Return the addresses of the sources that can be captured. Raises whatever would keep the instance from starting.
    Nothing is opened, so a running instance need not be stopped for it."""
    check_start(settings.start)  # also where cursors count and `start` is not used
    if settings.on_purged == "repair" and not can_repair:
        raise ConfigurationError(
            f"on_purged: repair of '{settings.destination}' has nothing that could repair: a program that runs the"
            " Instance itself can pass a function for it; here write stop or latest"
        )
    return _find_reachable_sources(settings)


def _find_reachable_sources(settings: InstanceSettings) -> set[str]:
    """Return the addresses of the sources that can be captured. When none can, raises the error of the first."""
    reachable: set[str] = set()
    problem: PenstockError | None = None
    for source in settings.sources:
        try:
            open_source(source, settings.destination).check(is_standby=source is settings.standby)
            reachable.add(source.address)
        except SourceConnectionError as error:
            problem = problem or error
    if problem is not None and not reachable:
        raise problem
    return reachable
