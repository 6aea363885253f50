"""All that can be said of an instance while it runs, as plain data: where it is, for whom it keeps what, who waits for
whom. Nobody is asked for it: it is what the instance knows already."""

import time
from typing import Any

from penstock.capture.state import InstanceState
from penstock.config import StoreSettings
from penstock.instance.clients import Clients
from penstock.instance.components import Components
from penstock.instance.cursors import LogExtent
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.source import LogInventory
from penstock.store.stats import ClientStats, StoreStats

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
    components, behind_s = instance.components, about["behind_s"]
    stats = components.store.stats()
    is_blocked = instance.state is InstanceState.BLOCKED
    about["lag"] = {"seconds": behind_s, "bytes": _capture_lag(components, stats.latest, behind_s)}
    about["prepared"] = components.prepared.report()
    about["store"] = _store(instance.settings.store, stats, is_blocked=is_blocked) | {
        "put_rows": instance.counters.kept_rows,
        "got_rows": components.clients.rows.got,
        "acked_rows": components.clients.rows.acked,
        "batch_unit": instance.settings.canal.unit,
    }
    about["clients"] = _clients(components, stats, behind_s, now)
    return about


def _store(settings: StoreSettings, stats: StoreStats, *, is_blocked: bool) -> dict[str, Any]:
    limit = settings.limit if settings.kind == "file" else settings.memory
    held = stats.put - stats.acked
    fills = [stats.stored_bytes / limit] if limit else []
    fills += [held / settings.slots] if settings.slots else []
    return {
        "kind": settings.kind,
        "bytes": stats.stored_bytes,
        "limit_bytes": None if limit is None else int(limit),
        "entries": held,
        "limit_entries": settings.slots,
        "fill": round(max(fills), 4) if fills else None,
        "put_sequence": stats.put,
        "ack_sequence": stats.acked,
        "put_bytes": stats.put_bytes,
        "acked_bytes": stats.acked_bytes,
        "problem": stats.problem,
        "held_for": stats.holders,
        "waits_for": stats.holders if is_blocked and not stats.problem else [],
    }


def _clients(components: Components, stats: StoreStats, behind_s: float | None, now: float) -> list[dict[str, Any]]:
    filters, cursors = components.clients.subscriptions(), components.clients.cursors()
    addresses = components.clients.addresses()
    found: list[dict[str, Any]] = []
    for counted in stats.clients:
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
                "lag": _client_lag(components, cursor, stats.latest, behind_s, now),
                "got_lag_s": _lag_s(counted.got, stats.latest, behind_s, now),
                **_held(counted),
                **_batches(components.clients, number),
            }
        )
    return found


def _held(counted: ClientStats) -> dict[str, Any]:
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


def _capture_lag(components: Components, latest: Position, behind_s: float | None) -> int | None:
    """Of the source's log; as it was seen last, which may be seconds ago."""
    if behind_s == 0:
        return 0
    inventory = components.watchdog.inventory
    if inventory is None or latest.epoch != components.log.epoch:
        return None
    end = Position(inventory.end.file, inventory.end.offset, epoch=latest.epoch)
    return _between(inventory, latest, end)


def _client_lag(
    components: Components, cursor: Position, latest: Position, behind_s: float | None, now: float
) -> dict[str, float | int | None]:
    """Behind the source: what it has not acked, and what is not captured yet."""
    to_come = _capture_lag(components, latest, behind_s)
    behind = _between(components.watchdog.inventory, cursor, latest)
    total = None if to_come is None or behind is None else to_come + behind
    return {"seconds": _lag_s(cursor, latest, behind_s, now), "bytes": total}


def _lag_s(place: Position, latest: Position, behind_s: float | None, now: float) -> float | None:
    if place >= latest:
        return behind_s
    return round(max(0.0, now - place.timestamp), 3) if place.timestamp else None


def _between(inventory: LogInventory | None, start: Position, end: Position) -> int | None:
    """Bytes of the log; None when that cannot be told from its last inventory."""
    if start >= end:
        return 0
    if start.epoch != end.epoch:
        return None
    if start.file == end.file:
        return end.offset - start.offset
    if inventory is None or not {start.file, end.file} <= inventory.sizes.keys():
        return None
    return LogExtent(inventory.oldest, inventory.end, inventory.sizes).bytes_between(start, end)
