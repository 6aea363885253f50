"""All that can be said of an instance while it runs, as plain data: where it is, for whom it keeps what, who waits for
whom. Nobody is asked for it: it is what the instance knows already."""

import time
from typing import Any

from penstock.config import StoreSettings
from penstock.instance.clients import Clients
from penstock.instance.cursors import Extent
from penstock.instance.instance import Instance
from penstock.instance.running import Running
from penstock.instance.state import InstanceState
from penstock.model import Position
from penstock.source import Seen
from penstock.store.census import Census, CountedClient

_MOST_BATCHES = 20  # of one client, that are named
_STEPS = 10


def report(instance: Instance, now: float | None = None) -> dict[str, Any]:
    """What `status` says, and its lag, its clients and its store."""
    now = time.time() if now is None else now
    about = instance.status()
    silent_s = instance.counters.silent_s
    about["silent_s"] = None if silent_s is None else round(silent_s, 3)
    about["history"] = [
        {"state": step.state.value, "reason": step.reason, "since": step.since}
        for step in instance.states.history[-_STEPS:]
    ]
    about |= {"lag": None, "store": None, "prepared": None, "clients": []}
    if instance.state is InstanceState.STOPPED or "latest" not in about:
        return about
    parts, behind_s = instance.parts, about["behind_s"]
    census = parts.store.census()
    is_blocked = instance.state is InstanceState.BLOCKED
    about["lag"] = {"seconds": behind_s, "bytes": _capture_lag(parts, census.latest, behind_s)}
    about["prepared"] = parts.prepared.report()
    about["store"] = _store(instance.settings.store, census, is_blocked=is_blocked) | {
        "put_rows": instance.counters.kept_rows,
        "got_rows": parts.clients.rows.got,
        "acked_rows": parts.clients.rows.acked,
        "batch_unit": instance.settings.canal.unit,
    }
    about["clients"] = _clients(parts, census, behind_s, now)
    return about


def _store(settings: StoreSettings, census: Census, *, is_blocked: bool) -> dict[str, Any]:
    limit = settings.limit if settings.kind == "file" else settings.memory
    held = census.put - census.acked
    fills = [census.held_bytes / limit] if limit else []
    fills += [held / settings.slots] if settings.slots else []
    return {
        "kind": settings.kind,
        "bytes": census.held_bytes,
        "limit_bytes": None if limit is None else int(limit),
        "entries": held,
        "limit_entries": settings.slots,
        "fill": round(max(fills), 4) if fills else None,
        "put_sequence": census.put,
        "ack_sequence": census.acked,
        "put_bytes": census.put_bytes,
        "acked_bytes": census.acked_bytes,
        "problem": census.problem,
        "held_for": census.holders,
        "waits_for": census.holders if is_blocked and not census.problem else [],
    }


def _clients(parts: Running, census: Census, behind_s: float | None, now: float) -> list[dict[str, Any]]:
    filters, cursors = parts.clients.subscriptions(), parts.clients.cursors()
    addresses = parts.clients.addresses()
    found: list[dict[str, Any]] = []
    for counted in census.clients:
        number = int(counted.name) if counted.name.isdecimal() else None
        cursor = counted.acked if number is None else cursors.get(number, counted.acked)
        found.append(
            {
                "client": counted.name,
                "filter": None if number is None else filters.get(number),
                "state": counted.state.value,
                "connected": counted.is_connected,
                "addresses": [] if number is None else addresses.get(number, []),
                "cursor": _place(cursor),
                "got": _place(counted.got),
                "lag": _client_lag(parts, cursor, census.latest, behind_s, now),
                "got_lag_s": _lag_s(counted.got, census.latest, behind_s, now),
                **_held(counted),
                **_batches(parts.clients, number),
            }
        )
    return found


def _held(counted: CountedClient) -> dict[str, Any]:
    return {
        "waiting_entries": counted.waiting_entries,
        "waiting_bytes": counted.waiting_bytes,
        "holds_oldest": counted.is_holding,
        "from_log": counted.from_log,
        "idle_s": round(counted.idle_s, 3),
        "lost": counted.lost,
    }


def _batches(clients: Clients, number: int | None) -> dict[str, Any]:
    several = {} if number is None else clients.batches(number)
    named = list(several.items())[:_MOST_BATCHES]
    return {
        "outstanding": len(several),
        "batches": [{"id": key, "start": _place(one.start), "end": _place(one.end)} for key, one in named],
    }


def _place(position: Position) -> dict[str, Any]:
    return position.to_json() | {"timestamp": position.timestamp}


def _capture_lag(parts: Running, latest: Position, behind_s: float | None) -> int | None:
    """Of the source's log; as it was seen last, which may be seconds ago."""
    if behind_s == 0:
        return 0
    seen = parts.watchdog.seen
    if seen is None or latest.epoch != parts.log.epoch:
        return None
    end = Position(seen.end.file, seen.end.offset, epoch=latest.epoch)
    return _between(seen, latest, end)


def _client_lag(
    parts: Running, cursor: Position, latest: Position, behind_s: float | None, now: float
) -> dict[str, float | int | None]:
    """Behind the source: what it has not acked, and what is not captured yet."""
    to_come = _capture_lag(parts, latest, behind_s)
    behind = _between(parts.watchdog.seen, cursor, latest)
    total = None if to_come is None or behind is None else to_come + behind
    return {"seconds": _lag_s(cursor, latest, behind_s, now), "bytes": total}


def _lag_s(place: Position, latest: Position, behind_s: float | None, now: float) -> float | None:
    if place >= latest:
        return behind_s
    return round(max(0.0, now - place.timestamp), 3) if place.timestamp else None


def _between(seen: Seen | None, start: Position, end: Position) -> int | None:
    """Bytes of the log; None when that cannot be told from what was seen of it."""
    if start >= end:
        return 0
    if start.epoch != end.epoch:
        return None
    if start.file == end.file:
        return end.offset - start.offset
    if seen is None or not {start.file, end.file} <= seen.sizes.keys():
        return None
    return Extent(seen.oldest, seen.end, seen.sizes).bytes_between(start, end)
