"""The full status of a running instance as plain data: positions, lag, store, clients. It is what the instance knows
already; the source is not asked."""

import time
from typing import Any

from penstock.capture.state import InstanceState
from penstock.config import StoreSettings
from penstock.instance.clients import Clients
from penstock.instance.components import Components
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.source import LogInventory
from penstock.store.stats import ClientStats, StoreStats

_MAX_BATCHES = 20  # of one client, shown in the status
_MAX_HISTORY = 10


def report_instance(instance: Instance, now: float | None = None) -> dict[str, Any]:
    """Return the status of an instance together with its lag, its store and its clients, as `/status` shows them."""
    now = time.time() if now is None else now
    status = instance.status()
    silent_s = instance.counters.silent_s
    status["silent_s"] = None if silent_s is None else round(silent_s, 3)
    status["history"] = [
        {"state": change.state.value, "reason": change.reason, "since": change.since}
        for change in instance.states.history[-_MAX_HISTORY:]
    ]
    status |= {"lag": None, "store": None, "prepared": None, "clients": [], "snapshots": _report_snapshots(instance)}
    if instance.state is InstanceState.STOPPED or "latest" not in status:
        return status
    components, behind_s = instance.components, status["behind_s"]
    stats = components.store.stats()
    is_blocked = instance.state is InstanceState.BLOCKED
    status["lag"] = {"seconds": behind_s, "bytes": _capture_lag_bytes(components, stats.latest, behind_s)}
    status["prepared"] = components.prepared.report()
    status["store"] = _report_store(instance.settings.store, stats, is_blocked=is_blocked) | {
        "put_rows": instance.counters.kept_rows,
        "got_rows": components.clients.rows.got,
        "acked_rows": components.clients.rows.acked,
        "batch_unit": instance.settings.canal.unit,
    }
    status["clients"] = _report_clients(components, stats, behind_s, now)
    return status


def _report_snapshots(instance: Instance) -> dict[str, Any]:
    """Return how far the snapshots of tables are, by table; nothing for an instance that no query has asked for one."""
    snapshots = vars(instance).get("snapshots")  # what reads them is made when it is first needed
    return {} if snapshots is None else snapshots.progress()


def _report_store(settings: StoreSettings, stats: StoreStats, *, is_blocked: bool) -> dict[str, Any]:
    """Return how full the store is, and for which clients it holds the oldest entries."""
    limit = settings.limit if settings.kind == "file" else settings.memory
    entries = stats.put - stats.acked
    fills = [stats.stored_bytes / limit] if limit else []
    fills += [entries / settings.slots] if settings.slots else []
    return {
        "kind": settings.kind,
        "bytes": stats.stored_bytes,
        "limit_bytes": None if limit is None else int(limit),
        "entries": entries,
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


def _report_clients(
    components: Components, stats: StoreStats, behind_s: float | None, now: float
) -> list[dict[str, Any]]:
    """Return position, lag and outstanding batches of each client."""
    filters, cursors = components.clients.subscriptions(), components.clients.cursors()
    addresses = components.clients.addresses()
    clients: list[dict[str, Any]] = []
    for client in stats.clients:
        number = int(client.name) if client.name.isdecimal() else None
        cursor = client.acked if number is None else cursors.get(number, client.acked)
        clients.append(
            {
                "client": client.name,
                "filter": None if number is None else filters.get(number),
                "state": client.state.value,
                "connected": client.is_connected,
                "addresses": [] if number is None else addresses.get(number, []),
                "cursor": _position_to_json(cursor),
                "got": _position_to_json(client.got),
                "lag": _client_lag(components, cursor, stats.latest, behind_s, now),
                "got_lag_s": _lag_s(client.got, stats.latest, behind_s, now),
                **_report_waiting(client),
                **_report_batches(components.clients, number),
            }
        )
    return clients


def _report_waiting(client: ClientStats) -> dict[str, Any]:
    """Return how much a client has not acked yet, and whether it holds the oldest entries of the store."""
    return {
        "waiting_entries": client.waiting_entries,
        "waiting_bytes": client.waiting_bytes,
        "holds_oldest": client.is_holding,
        "from_log": client.from_log,
        "idle_s": round(client.idle_s, 3),
        "lost": client.lost,
    }


def _report_batches(clients: Clients, number: int | None) -> dict[str, Any]:
    """Return the number of a client's outstanding batches, and the ranges of the first of them."""
    outstanding = {} if number is None else clients.batches(number)
    shown = list(outstanding.items())[:_MAX_BATCHES]
    return {
        "outstanding": len(outstanding),
        "batches": [
            {"id": batch_id, "start": _position_to_json(batch.start), "end": _position_to_json(batch.end)}
            for batch_id, batch in shown
        ],
    }


def _position_to_json(position: Position) -> dict[str, Any]:
    return position.to_json() | {"timestamp": position.timestamp}


def _capture_lag_bytes(components: Components, latest: Position, behind_s: float | None) -> int | None:
    """Return how many bytes of the source's log are not captured yet, as of the watchdog's last look, which may be
    seconds ago."""
    if behind_s == 0:
        return 0
    inventory = components.watchdog.inventory
    if inventory is None or latest.epoch != components.log.epoch:
        return None
    end = Position(inventory.end.file, inventory.end.offset, epoch=latest.epoch)
    return _bytes_between(inventory, latest, end)


def _client_lag(
    components: Components, cursor: Position, latest: Position, behind_s: float | None, now: float
) -> dict[str, float | int | None]:
    """Return how far a client is behind the source: what it has not acked, plus what is not captured yet."""
    uncaptured = _capture_lag_bytes(components, latest, behind_s)
    behind = _bytes_between(components.watchdog.inventory, cursor, latest)
    total = None if uncaptured is None or behind is None else uncaptured + behind
    return {"seconds": _lag_s(cursor, latest, behind_s, now), "bytes": total}


def _lag_s(position: Position, latest: Position, behind_s: float | None, now: float) -> float | None:
    """Return how many seconds a position is behind the source; None when unknown."""
    if position >= latest:
        return behind_s
    return round(max(0.0, now - position.timestamp), 3) if position.timestamp else None


def _bytes_between(inventory: LogInventory | None, start: Position, end: Position) -> int | None:
    """Return the bytes of the log between two positions; None when they are not known from the last inventory."""
    if start >= end:
        return 0
    if start.epoch != end.epoch:
        return None
    if start.file == end.file:
        return end.offset - start.offset
    if inventory is None or not {start.file, end.file} <= inventory.sizes.keys():
        return None
    return inventory.bytes_between(start, end)
