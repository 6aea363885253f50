"""A server's status for people: what is wrong first, then a line for each instance and each client."""

from collections.abc import Mapping
from typing import Any

from penstock.cli.output import format_size, table_lines

_NONE = "-"


def format_status(status: Mapping[str, Any]) -> str:
    """Format a server's status: what is wrong first, then a line for each instance and client."""
    server = status["server"]
    ports = ", ".join(f"{name} {port['address']}" for name, port in server["ports"].items())
    lines = [f"penstock {server['version']}, up {_format_span(server['uptime_s'])}, {ports}"]
    lines.append("ready" if status["ready"] else "NOT READY")
    lines += [f"  {name}: {reason}" for name, reason in status["reasons"].items()]
    problems = {name: text for name, text in status["problems"].items() if name not in status["reasons"]}
    lines += [f"  {name}: {text}" for name, text in problems.items()]
    lines += [
        "",
        *table_lines(
            [_INSTANCE_HEAD, *(_instance_cells(instance, status["time"]) for instance in status["instances"])]
        ),
    ]
    lines += [
        f"{instance['destination']} {_describe_start(instance)}"
        for instance in status["instances"]
        if _describe_start(instance)
    ]
    clients = [
        (instance["destination"], client) for instance in status["instances"] for client in instance.get("clients", ())
    ]
    if clients:
        lines += ["", *table_lines([_CLIENT_HEAD, *(_client_cells(name, client) for name, client in clients)])]
    lines += [f"{name} waits for {who}" for name, who in _list_blocked(status)]
    lines += [line for instance in status["instances"] for line in _list_prepared(instance, status["time"])]
    return "\n".join(map(_strip_control, lines))


_INSTANCE_HEAD = ["instance", "state", "for", "position", "lag", "store", "role"]


def _instance_cells(instance: Mapping[str, Any], now: float) -> list[str]:
    """Return the cells of an instance's line."""
    return [
        instance["destination"],
        instance["state"],
        _format_span(max(0.0, now - instance["since"])) if "since" in instance else _NONE,
        _format_position(instance.get("latest")),
        _format_lag(instance.get("lag")),
        _format_fill(instance.get("store")),
        _describe_role(instance),
    ]


_CLIENT_HEAD = ["client", "of", "state", "connected", "cursor", "lag", "waiting", "batches", ""]


def _client_cells(destination: str, client: Mapping[str, Any]) -> list[str]:
    """Return the cells of a client's line."""
    return [
        client["client"],
        destination,
        client["state"],
        _describe_connections(client),
        _format_position(client["cursor"]),
        _format_lag(client["lag"]),
        f"{client['waiting_entries']} entries, {format_size(client['waiting_bytes'])}",
        str(client["outstanding"]),
        _describe_client_state(client),
    ]


def _describe_start(instance: Mapping[str, Any]) -> str:
    """Return a line about an instance that started at the end of the binlog because it found no cursor."""
    began: Mapping[str, Any] = instance.get("began") or {}
    if began.get("kind") != "end":
        return ""
    return f"began at the end of the binlog, {_format_position(began['position'])}: {began['reason']}"


def _describe_connections(client: Mapping[str, Any]) -> str:
    """Return the addresses a client is connected from."""
    return ", ".join(client.get("addresses", ())) or ("yes" if client.get("connected") else "no")


def _describe_client_state(client: Mapping[str, Any]) -> str:
    """Return what is special about a client: that it is lost, evicted or catching up."""
    if client["lost"]:
        return client["lost"]
    if client.get("from_log"):
        return "catching up from the source's log"
    return "holds the oldest entries" if client["holds_oldest"] else ""


def _list_blocked(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the destinations that wait for a client, with the client."""
    waits: list[tuple[str, str]] = []
    for instance in status["instances"]:
        store: dict[str, Any] = instance.get("store") or {}
        if who := store.get("waits_for"):
            waits.append((f"capture of {instance['destination']}", f"client {', '.join(who)} to ack"))
    return waits


def _list_prepared(instance: Mapping[str, Any], now: float) -> list[str]:
    """Return lines about XA transactions whose rows wait for their XA COMMIT."""
    prepared: dict[str, Any] = instance.get("prepared") or {}
    if not prepared.get("count"):
        return []
    oldest = prepared["transactions"][0]
    rows = "" if oldest["rows"] is None else f" with {oldest['rows']} rows"
    noun = "XA transaction is" if prepared["count"] == 1 else "XA transactions are"
    subject = f"{instance['destination']}: {prepared['count']} {noun} prepared, the oldest for"
    since = _format_span(max(0.0, now - prepared["since"]))
    return [f"{subject} {since}: {oldest['xid']}{rows}, at {_format_position(oldest['position'])}"]


def _describe_role(instance: Mapping[str, Any]) -> str:
    """Return what an instance does: running, standby, paused, or why it stopped."""
    election = instance.get("election")
    if not election:
        return instance["role"]
    if election["is_held"]:
        return f"{instance['role']}, epoch {election['epoch']}"
    return (
        f"{instance['role']}: {election['owner'] or 'nobody'} runs it"
        if instance["role"] == "standby"
        else instance["role"]
    )


def _format_position(position: Mapping[str, Any] | None) -> str:
    """Format a position."""
    if not position:
        return _NONE
    return f"{position['file']}:{position['offset']}" + (
        f" (epoch {position['epoch']})" if position.get("epoch") else ""
    )


def _format_lag(lag: Mapping[str, Any] | None) -> str:
    """Format how far something is behind."""
    if not lag:
        return _NONE
    parts = [_format_span(lag["seconds"])] if lag["seconds"] is not None else []
    parts += [format_size(lag["bytes"])] if lag["bytes"] is not None else []
    return ", ".join(parts) or "not known"


def _format_fill(store: Mapping[str, Any] | None) -> str:
    """Format how full a store is."""
    if not store:
        return _NONE
    share = f" of {format_size(store['limit_bytes'])}" if store["limit_bytes"] else ""
    return format_size(store["bytes"]) + share + (f", {store['fill']:.0%} full" if store["fill"] is not None else "")


def _format_span(seconds: float) -> str:
    """Format a number of seconds."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"


def _strip_control(line: str) -> str:
    """Remove control characters: what a server says must not steer the terminal."""
    return "".join(character if character.isprintable() else "?" for character in line)
