"""The actions of Arrow Flight. Arguments and results are JSON; positions are {epoch, file, offset} and, where they are
known, the GTIDs before them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from penstock.errors import MetaError, ProtocolError
from penstock.instance import Instance
from penstock.instance.batch_plan import BatchLimit
from penstock.model import TableName
from penstock.server.flight.request import (
    FlightRequest,
    read_chunk,
    read_client,
    read_key,
    read_number,
    read_text,
    read_texts,
    resolve_position,
    resolve_start,
)
from penstock.server.flight.stream_format import check_captured, describe_tables

_MAX_WAIT_MS = 10_000
_MAX_CHUNKS = 1000
_READER = re.compile(r"[A-Za-z0-9_-]{1,64}")

Arguments = Mapping[str, Any]
Results = Iterator[bytes]


def run_action(name: str, instance: Instance, arguments: Arguments) -> Results:
    """Run the Arrow Flight action `name` for an instance, the capture pipeline of one destination, and return its
    results as bytes."""
    known = ACTIONS.get(name)
    if known is None:
        raise ProtocolError(f"there is no action '{name[:50]}'; there is {', '.join(ACTIONS)}")
    return known[0](instance, arguments)


def _describe_tables(instance: Instance, arguments: Arguments) -> Results:
    """Return the Arrow schemas of tables, as Arrow IPC."""
    tables = [TableName.parse(name) for name in read_texts(arguments, "tables")]
    return iter([schema.serialize().to_pybytes() for schema in describe_tables(instance, tables)])


def _list_positions(instance: Instance, arguments: Arguments) -> Results:  # noqa: ARG001
    """Return the range of the log that the store has, and the cursor, filter and outstanding batches of each client."""
    clients, store = instance.clients, instance.store
    cursors, filters = clients.cursors(), clients.subscriptions()
    by_client = {
        number: {
            "cursor": cursors[number].to_json() if number in cursors else None,
            "filter": filters.get(number),
            "outstanding": clients.outstanding(number) if number in filters else [],
        }
        for number in sorted({*cursors, *filters})
    }
    yield _json({"first": store.first.to_json(), "latest": store.latest.to_json(), "clients": by_client})


def _find_oldest_position(instance: Instance, arguments: Arguments) -> Results:  # noqa: ARG001
    """Return the position where the source's log begins."""
    yield _json({"oldest": instance.oldest_position().to_json()})


def _plan_batch_end(instance: Instance, arguments: Arguments) -> Results:
    """Return the position where a batch from `start` should end, and release what lies before `acked`, which is `start`
    unless the caller has already looked at a part of its batch. Spark plans its micro-batches with this."""
    wait_ms = min(read_number(arguments, "wait_ms", 0), _MAX_WAIT_MS)
    max_bytes = read_number(arguments, "max_bytes", least=1)
    max_rows = read_number(arguments, "max_rows", least=1) if arguments.get("max_rows") is not None else None
    per_update = read_number(arguments, "rows_per_update", 2, least=1)
    request = FlightRequest.from_json({key: arguments[key] for key in ("tables", "filter") if key in arguments})
    start = resolve_position(arguments.get("start"), instance)
    acked = resolve_position(arguments["acked"], instance) if arguments.get("acked") is not None else start
    reader = _read_reader(arguments)
    instance.ack(min(acked, start), reader)
    counts_statements = arguments.get("statements") is True
    limit = BatchLimit(max_bytes, max_rows, per_update, request.table_predicate, counts_statements)
    skip_bytes = read_number(arguments, "skip_bytes", 0)
    plan = instance.plan_batch(start, limit, wait_ms / 1000, reader, skip_bytes=skip_bytes)
    yield _json({"end": plan.end.to_json(), "has_rows": plan.has_rows, "is_store_full": instance.store.is_full})


def _plan_chunks(instance: Instance, arguments: Arguments) -> Results:
    """Return the limits of the next chunks of a table behind a key, and the columns that it is cut by."""
    table = TableName.parse(read_text(arguments, "table"))
    check_captured(instance, table)
    plan = instance.snapshots.plan(
        table,
        read_key(arguments.get("after")),
        rows_before=read_number(arguments, "rows_before", 0),
        count=min(read_number(arguments, "count", 1, least=1), _MAX_CHUNKS),
        rows=read_number(arguments, "rows", 1 << 62, least=1),
    )
    yield _json(
        {
            "chunks": [{"until": chunk.until, "rows": chunk.estimated_rows} for chunk in plan.chunks],
            "key": plan.key,
            "key_description": plan.key_description,
            "estimated_rows": plan.estimated_rows,
        }
    )


def _find_keys_inside(instance: Instance, arguments: Arguments) -> Results:
    """Return which keys of a table lie in the range of a chunk, as the source orders them."""
    from penstock.snapshot.chunks import Chunk  # noqa: PLC0415 - brings kernels that few need

    table, keys = TableName.parse(read_text(arguments, "table")), arguments.get("keys")
    check_captured(instance, table)
    if not isinstance(keys, list):
        raise ProtocolError("keys is a list of keys")
    texts = [list(read_key(key) or ()) for key in cast("list[Any]", keys)]
    chunk = Chunk(*read_chunk(arguments.get("chunk")))
    yield _json({"inside": instance.snapshots.find_inside(table, texts, chunk)})


def _control_snapshots(instance: Instance, arguments: Arguments) -> Results:
    """Pause or resume snapshots, or let a table be read again; return how far they are."""
    match read_text(arguments, "do", "status"):
        case "status":
            pass
        case "pause":
            instance.snapshots.pause()
        case "resume":
            instance.snapshots.resume()
        case "again":
            table = TableName.parse(read_text(arguments, "table"))
            check_captured(instance, table)
            instance.snapshots.request_resnapshot(table)
        case other:
            raise ProtocolError(f"snapshots can status, pause, resume or again, not {other[:50]!r}")
    yield _json(instance.snapshots.report())


def _resolve_start(instance: Instance, arguments: Arguments) -> Results:
    """Return the position that a text such as `latest`, `gtid:…` or `time:…` means now."""
    yield _json({"position": instance.resolve_start(read_text(arguments, "start")).to_json()})


def _find_log_end(instance: Instance, arguments: Arguments) -> Results:
    """Return where the source's log ends now, and up to where it is captured; with a `position`, also how many bytes
    of the log are behind it. Who only shows the end, and asks often, says `for_display`: the source is asked over a
    connection that is used again."""
    source_log = instance.source_log
    answer: dict[str, Any] = {"captured": instance.store.latest.to_json()}
    if arguments.get("position") is not None:
        end, answer["bytes_behind"] = source_log.measure_behind(resolve_position(arguments["position"], instance))
    else:
        end = source_log.end_for_display() if arguments.get("for_display") is True else source_log.end()
    yield _json({"end": end.to_json(), **answer})


def _find_log_identity(instance: Instance, arguments: Arguments) -> Results:
    """Return what tells the log file of a position from another file of the same name."""
    yield _json(
        {"identity": instance.source_log.file_identity_at(resolve_position(arguments.get("position"), instance))}
    )


def _find_last_statement(instance: Instance, arguments: Arguments) -> Results:
    """Return the last statement before a position that changed a table, or one of its columns, and its position;
    nothing if there is none."""
    table = TableName.parse(read_text(arguments, "table"))
    position = resolve_position(arguments.get("position"), instance)
    change = instance.components.tables.last_change_of(table, position, read_text(arguments, "column", ""))
    yield _json({} if change is None else {"position": change.position.to_json(), "statement": change.text})


def _list_column_rules(instance: Instance, arguments: Arguments) -> Results:  # noqa: ARG001
    """Return the settings that choose which columns of which tables are captured."""
    yield _json({"columns": [rule.model_dump(mode="json") for rule in instance.settings.filter.columns]})


def _report_status(instance: Instance, arguments: Arguments) -> Results:  # noqa: ARG001
    """Return the status of the instance, as `/status` shows it."""
    yield _json(instance.status())


def _subscribe_client(instance: Instance, arguments: Arguments) -> Results:
    """Subscribe a client, and return the position at which it resumes."""
    start = resolve_start(arguments["start"], instance) if arguments.get("start") is not None else None
    if start is not None and start.position is not None:
        instance.source_log.check_reached(start.position, instance.store.latest)
    client = read_client(arguments)
    position = instance.clients.subscribe(client, read_text(arguments, "filter", ""), start)
    instance.clients.mark_absent(client)  # until it opens a stream
    yield _json({"position": position.to_json()})


def _unsubscribe_client(instance: Instance, arguments: Arguments) -> Results:
    """End the subscription of a client; its cursor stays."""
    instance.clients.unsubscribe(read_client(arguments))
    yield _json({})


def _ack_batches(instance: Instance, arguments: Arguments) -> Results:
    """Ack a client's batch and all before it. Without a client, `end` is a hint that the caller needs nothing before
    it."""
    if "client" not in arguments:
        instance.ack(resolve_position(arguments.get("end"), instance), _read_reader(arguments))
    else:
        client, batch = read_client(arguments), read_number(arguments, "batch")
        outstanding = instance.clients.outstanding(client)
        if batch not in outstanding:
            raise MetaError(f"client {client} has no batch {batch}: it was acked, or rolled back")
        for batch_id in outstanding[: outstanding.index(batch) + 1]:
            instance.clients.ack(client, batch_id)
    yield _json({})


def _renew_reader(instance: Instance, arguments: Arguments) -> Results:
    """Keep the cursor of a reader by position, and return for how many seconds."""
    yield _json({"kept_s": instance.renew_reader(_read_reader(arguments))})


def _roll_back_client(instance: Instance, arguments: Arguments) -> Results:
    """Let a client's outstanding batches be redelivered."""
    instance.clients.rollback(read_client(arguments), read_number(arguments, "batch") if "batch" in arguments else None)
    yield _json({})


def _read_reader(arguments: Arguments) -> str:
    """Return the name that a reader by position gives itself; empty for one that shares a cursor with others."""
    reader = read_text(arguments, "reader", "")
    if reader and not _READER.fullmatch(reader):
        raise ProtocolError(f"not the name of a reader: {reader[:50]!r}; it has up to 64 letters, digits, - and _")
    return reader


def _json(answer: Any) -> bytes:
    return json.dumps(answer).encode()


ACTIONS: dict[str, tuple[Callable[[Instance, Arguments], Results], str]] = {
    "describe": (_describe_tables, "{destination, tables}: return the schema of each table, as Arrow IPC"),
    "positions": (
        _list_positions,
        "{destination}: return the range that the store has, and the cursors of the clients",
    ),
    "oldest": (_find_oldest_position, "{destination}: return the position where the source's log begins"),
    "status": (_report_status, "{destination}: return the state, lag and counters of the instance"),
    "subscribe": (
        _subscribe_client,
        "{destination, client, filter, start}: subscribe; resume at the cursor, or at start without one",
    ),
    "unsubscribe": (_unsubscribe_client, "{destination, client}: end the subscription; the cursor stays"),
    "ack": (
        _ack_batches,
        "{destination, client, batch}: ack it and all before; without a client, {destination, end, reader}",
    ),
    "renew": (
        _renew_reader,
        "{destination, reader}: keep the cursor of a reader in the middle of a long batch; return for how many seconds",
    ),
    "rollback": (_roll_back_client, "{destination, client}: redeliver what was not acked"),
    "latest": (
        _plan_batch_end,
        "{destination, start, acked, max_bytes, max_rows, skip_bytes, tables, filter, wait_ms, reader}: plan a batch",
    ),
    "resolve": (
        _resolve_start,
        "{destination, start}: return the position that earliest, latest, gtid:… or time:… means now",
    ),
    "identity": (_find_log_identity, "{destination, position}: return the identity of the log file of a position"),
    "statement": (
        _find_last_statement,
        "{destination, table, column, position}: return the last statement before a position that changed them",
    ),
    "chunks": (
        _plan_chunks,
        "{destination, table, after, count, rows}: return the limits of the next chunks of a table behind a key",
    ),
    "inside": (
        _find_keys_inside,
        "{destination, table, keys, chunk}: return which keys lie in the range of a chunk, as the source orders them",
    ),
    "snapshots": (
        _control_snapshots,
        "{destination, do, table}: status, pause or resume of snapshots, or again of a table",
    ),
    "columns": (_list_column_rules, "{destination}: return which columns of which tables are captured"),
    "end": (
        _find_log_end,
        "{destination, position, for_display}: return the end of the source's log, and how far a position is behind it",
    ),
}
