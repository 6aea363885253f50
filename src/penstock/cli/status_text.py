"""A server's status for people: what is wrong first, then a line for each instance and each client."""

from collections.abc import Mapping
from typing import Any

from penstock.cli.output import format_size, table_lines

_NONE = "-"


def status_text(status: Mapping[str, Any]) -> str:
    server = status["server"]
    ports = ", ".join(f"{name} {about['address']}" for name, about in server["ports"].items())
    lines = [f"penstock {server['version']}, up {_span(server['uptime_s'])}, {ports}"]
    lines.append("ready" if status["ready"] else "NOT READY")
    lines += [f"  {name}: {reason}" for name, reason in status["reasons"].items()]
    problems = {name: text for name, text in status["problems"].items() if name not in status["reasons"]}
    lines += [f"  {name}: {text}" for name, text in problems.items()]
    lines += ["", *table_lines([_INSTANCE_HEAD, *(_instance(one, status["time"]) for one in status["instances"])])]
    lines += [f"{one['destination']} {_began(one)}" for one in status["instances"] if _began(one)]
    clients = [(one["destination"], client) for one in status["instances"] for client in one.get("clients", ())]
    if clients:
        lines += ["", *table_lines([_CLIENT_HEAD, *(_client(name, client) for name, client in clients)])]
    lines += [f"{name} waits for {who}" for name, who in _blocked(status)]
    lines += [line for one in status["instances"] for line in _prepared(one, status["time"])]
    return "\n".join(map(_plain, lines))


_INSTANCE_HEAD = ["instance", "state", "for", "position", "lag", "store", "role"]


def _instance(one: Mapping[str, Any], now: float) -> list[str]:
    return [
        one["destination"],
        one["state"],
        _span(max(0.0, now - one["since"])) if "since" in one else _NONE,
        _place(one.get("latest")),
        _lag(one.get("lag")),
        _fill(one.get("store")),
        _role(one),
    ]


_CLIENT_HEAD = ["client", "of", "state", "connected", "cursor", "lag", "waiting", "batches", ""]


def _client(destination: str, client: Mapping[str, Any]) -> list[str]:
    return [
        client["client"],
        destination,
        client["state"],
        _connected(client),
        _place(client["cursor"]),
        _lag(client["lag"]),
        f"{client['waiting_entries']} entries, {format_size(client['waiting_bytes'])}",
        str(client["outstanding"]),
        _remark(client),
    ]


def _began(one: Mapping[str, Any]) -> str:
    """Return a line about an instance that began at the end of the log, because it found no cursor."""
    began: Mapping[str, Any] = one.get("began") or {}
    if began.get("kind") != "end":
        return ""
    return f"began at the end of the log, {_place(began['position'])}: {began['reason']}"


def _connected(client: Mapping[str, Any]) -> str:
    """From where; a client may have several connections."""
    return ", ".join(client.get("addresses", ())) or ("yes" if client.get("connected") else "no")


def _remark(client: Mapping[str, Any]) -> str:
    if client["lost"]:
        return client["lost"]
    if client.get("from_log"):
        return "catching up from the source's log"
    return "holds the oldest entries" if client["holds_oldest"] else ""


def _blocked(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in status["instances"]:
        store: dict[str, Any] = one.get("store") or {}
        if who := store.get("waits_for"):
            found.append((f"capture of {one['destination']}", f"client {', '.join(who)} to ack"))
    return found


def _prepared(one: Mapping[str, Any], now: float) -> list[str]:
    """XA transactions whose rows wait for their XA COMMIT."""
    prepared: dict[str, Any] = one.get("prepared") or {}
    if not prepared.get("count"):
        return []
    oldest = prepared["transactions"][0]
    rows = "" if oldest["rows"] is None else f" with {oldest['rows']} rows"
    several = "XA transaction is" if prepared["count"] == 1 else "XA transactions are"
    what = f"{one['destination']}: {prepared['count']} {several} prepared, the oldest for"
    since = _span(max(0.0, now - prepared["since"]))
    return [f"{what} {since}: {oldest['xid']}{rows}, at {_place(oldest['position'])}"]


def _role(one: Mapping[str, Any]) -> str:
    election = one.get("election")
    if not election:
        return one["role"]
    if election["is_held"]:
        return f"{one['role']}, epoch {election['epoch']}"
    return f"{one['role']}: {election['owner'] or 'nobody'} runs it" if one["role"] == "stands by" else one["role"]


def _place(place: Mapping[str, Any] | None) -> str:
    if not place:
        return _NONE
    return f"{place['file']}:{place['offset']}" + (f" (epoch {place['epoch']})" if place.get("epoch") else "")


def _lag(lag: Mapping[str, Any] | None) -> str:
    if not lag:
        return _NONE
    parts = [_span(lag["seconds"])] if lag["seconds"] is not None else []
    parts += [format_size(lag["bytes"])] if lag["bytes"] is not None else []
    return ", ".join(parts) or "not known"


def _fill(store: Mapping[str, Any] | None) -> str:
    if not store:
        return _NONE
    share = f" of {format_size(store['limit_bytes'])}" if store["limit_bytes"] else ""
    return format_size(store["bytes"]) + share + (f", {store['fill']:.0%} full" if store["fill"] is not None else "")


def _span(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"


def _plain(line: str) -> str:
    """What a server says is not for the terminal to obey."""
    return "".join(one if one.isprintable() else "?" for one in line)
