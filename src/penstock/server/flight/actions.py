"""What can be asked of an instance beside its changes. Requests and answers are JSON; positions are
{epoch, file, offset} and, where they are known, the GTIDs before them."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.errors import MetaError, ProtocolError
from penstock.instance import Instance
from penstock.instance.batch_plan import BatchLimit
from penstock.model import TableName
from penstock.server.flight.request import FlightRequest, client_of, number_of, place_of, start_of, text_of, texts_of
from penstock.server.flight.shape import describe

_LONGEST_WAIT_MS = 10_000

Given = Mapping[str, Any]
Answers = Iterator[bytes]


def run(name: str, instance: Instance, given: Given) -> Answers:
    known = ACTIONS.get(name)
    if known is None:
        raise ProtocolError(f"there is no action '{name[:50]}'; there is {', '.join(ACTIONS)}")
    return known[0](instance, given)


def _describe(instance: Instance, given: Given) -> Answers:
    tables = [TableName.parse(name) for name in texts_of(given, "tables")]
    return iter([schema.serialize().to_pybytes() for schema in describe(instance, tables)])


def _positions(instance: Instance, given: Given) -> Answers:  # noqa: ARG001
    clients, store = instance.clients, instance.store
    cursors, filters = clients.cursors(), clients.subscriptions()
    about = {
        number: {
            "cursor": cursors[number].to_json() if number in cursors else None,
            "filter": filters.get(number),
            "outstanding": clients.outstanding(number) if number in filters else [],
        }
        for number in sorted({*cursors, *filters})
    }
    yield _json({"first": store.first.to_json(), "latest": store.latest.to_json(), "clients": about})


def _oldest(instance: Instance, given: Given) -> Answers:  # noqa: ARG001
    yield _json({"oldest": instance.oldest().to_json()})


def _latest(instance: Instance, given: Given) -> Answers:
    wait_ms = min(number_of(given, "wait_ms", 0), _LONGEST_WAIT_MS)
    max_bytes = number_of(given, "max_bytes", least=1)
    max_rows = number_of(given, "max_rows", least=1) if given.get("max_rows") is not None else None
    per_update = number_of(given, "rows_per_update", 2, least=1)
    request = FlightRequest.of({key: given[key] for key in ("tables", "filter") if key in given})
    start = place_of(given.get("start"), instance)
    instance.ack(start)
    limit = BatchLimit(max_bytes, max_rows, per_update, request.wanted)
    yield _json({"end": instance.plan_batch(start, limit, wait_ms / 1000).to_json()})


def _resolve(instance: Instance, given: Given) -> Answers:
    yield _json({"position": instance.resolve(text_of(given, "start")).to_json()})


def _end(instance: Instance, given: Given) -> Answers:  # noqa: ARG001
    yield _json({"end": instance.source_log.end().to_json(), "captured": instance.store.latest.to_json()})


def _identity(instance: Instance, given: Given) -> Answers:
    yield _json({"identity": instance.source_log.file_identity_at(place_of(given.get("position"), instance))})


def _statement(instance: Instance, given: Given) -> Answers:
    table = TableName.parse(text_of(given, "table"))
    change = instance.components.tables.last_change_of(table, place_of(given.get("position"), instance))
    yield _json({} if change is None else {"position": change.position.to_json(), "statement": change.text})


def _columns(instance: Instance, given: Given) -> Answers:  # noqa: ARG001
    yield _json({"columns": [one.model_dump(mode="json") for one in instance.settings.filter.columns]})


def _status(instance: Instance, given: Given) -> Answers:  # noqa: ARG001
    yield _json(instance.status())


def _subscribe(instance: Instance, given: Given) -> Answers:
    start = start_of(given["start"], instance) if given.get("start") is not None else None
    if start is not None and start.position is not None:
        instance.source_log.check_reached(start.position, instance.store.latest)
    client = client_of(given)
    place = instance.clients.subscribe(client, text_of(given, "filter", ""), start)
    instance.clients.mark_absent(client)  # until it opens a stream
    yield _json({"position": place.to_json()})


def _unsubscribe(instance: Instance, given: Given) -> Answers:
    instance.clients.unsubscribe(client_of(given))
    yield _json({})


def _ack(instance: Instance, given: Given) -> Answers:
    """Of a client, a batch and those before it; of others a hint that what lies before is not needed any more."""
    if "client" not in given:
        instance.ack(place_of(given.get("end"), instance))
    else:
        client, batch = client_of(given), number_of(given, "batch")
        waiting = instance.clients.outstanding(client)
        if batch not in waiting:
            raise MetaError(f"client {client} has no batch {batch}: it was acked, or rolled back")
        for one in waiting[: waiting.index(batch) + 1]:
            instance.clients.ack(client, one)
    yield _json({})


def _rollback(instance: Instance, given: Given) -> Answers:
    instance.clients.rollback(client_of(given), number_of(given, "batch") if "batch" in given else None)
    yield _json({})


def _json(answer: Any) -> bytes:
    return json.dumps(answer).encode()


ACTIONS: dict[str, tuple[Callable[[Instance, Given], Answers], str]] = {
    "describe": (_describe, "{destination, tables}: the schema of each, as Arrow IPC"),
    "positions": (_positions, "{destination}: what the store has, and the cursors of its clients"),
    "oldest": (_oldest, "{destination}: where the source's log begins"),
    "status": (_status, "{destination}: state, lag, counters"),
    "subscribe": (_subscribe, "{destination, client, filter, start}: from its cursor on, or there if it is new"),
    "unsubscribe": (_unsubscribe, "{destination, client}: nothing is kept for it, but its cursor"),
    "ack": (_ack, "{destination, client, batch}: that and all before; or {destination, end} of one without a client"),
    "rollback": (_rollback, "{destination, client}: what was not acked comes again"),
    "latest": (
        _latest,
        "{destination, start, max_bytes, max_rows, tables, filter, wait_ms}: where a batch from start on should end",
    ),
    "resolve": (_resolve, "{destination, start}: the position that earliest, latest, gtid:… or time:… means now"),
    "identity": (_identity, "{destination, position}: what tells the log file of a position from others of its name"),
    "statement": (_statement, "{destination, table, position}: the last statement before there that changed a table"),
    "columns": (_columns, "{destination}: which columns of which tables the instance shows"),
    "end": (_end, "{destination}: where the source's log ends now, and how far it is captured"),
}
