"""What is measured, under canal's names where it is the same, else under our own. docs/admin.md has the table."""

import time
from collections.abc import Mapping
from typing import Any

from penstock.instance import InstanceState
from penstock.server.admin.prometheus import CONTENT_TYPE, Exposition
from penstock.server.canal.traffic import LATENCY_MS, TrafficCounts
from penstock.store import ClientState

__all__ = ["CONTENT_TYPE", "render"]


def render(status: Mapping[str, Any], traffic: Mapping[str, TrafficCounts]) -> str:
    """Of what `/status` says, and of what went over canal's port."""
    out = Exposition()
    _server(out, status)
    for one in status["instances"]:
        name = one["destination"]
        _state(out, name, one)
        if "counters" in one:
            _capture(out, name, one)
        if one.get("store"):
            _store(out, name, one)
            for client in one["clients"]:
                _client(out, name, client)
    for name, counted in traffic.items():
        _traffic(out, name, counted)
    return out.text()


def _server(out: Exposition, status: Mapping[str, Any]) -> None:
    server = status["server"]
    out.add("gauge", "penstock_info", "The version that runs.", 1, version=server["version"])
    out.add("gauge", "penstock_uptime_seconds", "Since the server was made.", server["uptime_s"])
    out.add("gauge", "penstock_ready", "1 when /readyz says so.", int(status["ready"]))
    out.add("gauge", "penstock_config_problems", "Settings that are wrong, or not followed.", len(status["problems"]))
    for port, about in server["ports"].items():
        value = about["connections"]
        out.add("gauge", "penstock_connections", "Open connections of a port.", value, port=port)
    process = time.process_time()
    out.add("counter", "process_cpu_seconds_total", "CPU time of the server's process.", process)


def _state(out: Exposition, name: str, one: Mapping[str, Any]) -> None:
    where = {"destination": name}
    mode = "elected" if "election" in one else "own"
    out.add("gauge", "canal_instance", "There is such an instance.", 1, **where, mode=mode)
    for state in InstanceState:
        value = int(one["state"] == state.value)
        about = "1 for the state that the instance is in."
        out.add("gauge", "penstock_instance_state", about, value, **where, state=state.value)
    about = "1 when it gets on, stands by for another server, or rests by hand."
    out.add("gauge", "penstock_instance_ready", about, int(not one["unready_reason"]), **where)
    if election := one.get("election"):
        about = "1 on the server that was elected to run it."
        out.add("gauge", "penstock_election_held", about, int(election["is_held"]), **where)
        out.add("gauge", "penstock_election_epoch", "Of the election that was won.", election["epoch"], **where)


def _capture(out: Exposition, name: str, one: Mapping[str, Any]) -> None:
    where, counters = {"destination": name}, one["counters"]
    out.add("counter", "canal_instance_transactions", "Transactions captured.", counters["transactions"], **where)
    about = "Bytes of events that came from the source."
    parser = one.get("source", "")
    out.add("counter", "canal_instance_received_binlog_bytes", about, counters["bytes"], **where, parser=parser)
    about = "Milliseconds for which capture waited for room in the store."
    out.add("counter", "canal_instance_sink_blocking_time", about, 1e3 * counters["blocked_s"], **where)
    # One thread reads the source's bytes and works on what came, so what takes it from reading is its work.
    busy = sum(counters["seconds"][stage] for stage in ("tables", "filter", "store"))
    about = "Milliseconds for which the source's bytes waited for the work on those before them."
    out.add("counter", "canal_instance_publish_blocking_time", about, 1e3 * busy, **where, parser=parser)
    about = "How the log is parsed: in one thread, many events at a time."
    out.add("gauge", "canal_instance_parser_mode", about, 1, **where, parallel="false")
    for key in ("blocks", "events", "kept_events", "signs_of_life", "reconnects", "switches"):
        out.add("counter", f"penstock_instance_{key}_total", _COUNTERS[key], counters[key], **where)
    for stage, seconds in counters["seconds"].items():
        out.add(
            "counter", "penstock_instance_stage_seconds_total", "By stage of capture.", seconds, **where, stage=stage
        )
    lag: dict[str, Any] = one.get("lag") or {}
    seconds = lag.get("seconds")
    about = "Milliseconds by which what was captured last is behind the source; 0 when all is captured."
    out.add("gauge", "canal_instance_traffic_delay", about, None if seconds is None else 1e3 * seconds, **where)
    out.add("gauge", "penstock_instance_lag_seconds", "The same in seconds.", seconds, **where)
    out.add("gauge", "penstock_instance_lag_bytes", "Of the source's log, as last seen.", lag.get("bytes"), **where)
    prepared: dict[str, Any] = one.get("prepared") or {}
    about = "XA transactions whose rows wait for their XA COMMIT."
    out.add("gauge", "penstock_instance_prepared_transactions", about, prepared.get("count"), **where)
    since, about = prepared.get("since"), "How long the oldest of them has been prepared."
    age_s = (max(0.0, time.time() - since) if since else 0.0) if prepared else None
    out.add("gauge", "penstock_instance_prepared_oldest_seconds", about, age_s, **where)
    hours = one.get("retention_hours_left")
    out.add("gauge", "penstock_instance_retention_hours", "The source keeps what is needed so long.", hours, **where)
    about = "Tables that are not captured any more, see /status."
    out.add("gauge", "penstock_instance_stopped_tables", about, len(one.get("stopped_tables", ())), **where)


_DONE = {"put": "put", "get": "got", "ack": "acked"}
_COUNTERS = {
    "blocks": "Pieces of the log that came.",
    "events": "Events that came.",
    "kept_events": "Events that went into the store.",
    "signs_of_life": "Times the source said that it has nothing.",
    "reconnects": "Times the connection to the source was made anew.",
    "switches": "Times another source was taken.",
}


def _store(out: Exposition, name: str, one: Mapping[str, Any]) -> None:
    where, store = {"destination": name}, one["store"]
    subscribed = sum(client["filter"] is not None for client in one["clients"])
    out.add("gauge", "canal_instance_subscriptions", "Clients that have subscribed.", subscribed, **where)
    about = "Sequence of the last entry that was put."
    out.add("counter", "canal_instance_store_produce_seq", about, store["put_sequence"], **where)
    about = "Sequence of the last entry that all clients have acked."
    out.add("counter", "canal_instance_store_consume_seq", about, store["ack_sequence"], **where)
    out.add("counter", "canal_instance_store_produce_mem", "Bytes that were put.", store["put_bytes"], **where)
    about = "Bytes that all clients have acked."
    out.add("counter", "canal_instance_store_consume_mem", about, store["acked_bytes"], **where)
    out.add("counter", "canal_instance_put_rows", "Rows that were put.", store["put_rows"], **where)
    about = "Rows that clients got, of all clients together; what comes again counts again."
    out.add("counter", "canal_instance_get_rows", about, store["got_rows"], **where)
    about = "Rows that clients have acked, of all clients together."
    out.add("counter", "canal_instance_ack_rows", about, store["acked_rows"], **where)
    mode = "MEMSIZE" if store["batch_unit"] == "memory" else "ITEMSIZE"
    size = store["limit_entries"] if store["limit_entries"] is not None else store["limit_bytes"]
    about = "1; its size is that in entries, or in bytes where the entries have no limit."
    out.add("gauge", "canal_instance_store", about, 1, **where, batchMode=mode, size="" if size is None else size)
    clients = [client for client in one["clients"] if not client["lost"]]
    for what, seconds in (
        ("put", [one["lag"]["seconds"]]),
        ("get", [client["got_lag_s"] for client in clients]),
        ("ack", [client["lag"]["seconds"] for client in clients]),
    ):
        known = [1e3 * found for found in seconds if found is not None]
        about = f"Milliseconds behind the source of what was {_DONE[what]} last, by the slowest."
        out.add("gauge", f"canal_instance_{what}_delay", about, max(known, default=None), **where)
    out.add("gauge", "penstock_store_bytes", "That the store holds.", store["bytes"], **where)
    out.add("gauge", "penstock_store_limit_bytes", "That it may hold.", store["limit_bytes"], **where)
    out.add("gauge", "penstock_store_entries", "Put, and not acked by all.", store["entries"], **where)
    about = "Share of the limit that is reached first."
    out.add("gauge", "penstock_store_fill_ratio", about, store["fill"], **where)


def _client(out: Exposition, name: str, client: Mapping[str, Any]) -> None:
    where = {"destination": name, "client": client["client"]}
    lag = client["lag"]
    out.add("gauge", "penstock_client_lag_seconds", "Behind the source.", lag["seconds"], **where)
    out.add("gauge", "penstock_client_lag_bytes", "Of the source's log.", lag["bytes"], **where)
    about = "Entries in the store that it has not acked."
    out.add("gauge", "penstock_client_waiting_entries", about, client["waiting_entries"], **where)
    about = "Batches that it got and has not acked."
    out.add("gauge", "penstock_client_outstanding_batches", about, client["outstanding"], **where)
    about = "1 when the store's oldest entries are kept for it."
    out.add("gauge", "penstock_client_holds_oldest", about, int(client["holds_oldest"]), **where)
    about = "1 when it is connected."
    out.add("gauge", "penstock_client_connected", about, int(client["connected"]), **where)
    about = "1 while it is served from the source's log, and the store keeps nothing for it."
    out.add("gauge", "penstock_client_catching_up", about, int(client["from_log"]), **where)
    out.add("gauge", "penstock_client_idle_seconds", "Since it asked for something.", client["idle_s"], **where)
    for state in ClientState:
        value = int(client["state"] == state.value)
        out.add("gauge", "penstock_client_state", "1 for the state it is in.", value, **where, state=state.value)


def _traffic(out: Exposition, name: str, counted: TrafficCounts) -> None:
    where = {"destination": name}
    for kind, count in sorted(counted.packets.items()):
        about = "Packets of canal's clients, by type."
        out.add("counter", "canal_instance_client_packets", about, count, **where, packetType=kind)
    for code, count in sorted(counted.errors.items()):
        about = "Packets that were answered with an error, by its code."
        out.add("counter", "canal_instance_client_request_error", about, count, **where, errorCode=code)
    if not name:
        return
    out.add("counter", "canal_instance_client_bytes", "Bytes of batches sent.", counted.sent_bytes, **where)
    about = "Gets that were answered with nothing."
    out.add("counter", "canal_instance_client_empty_batches", about, counted.empty_batches, **where)
    about = "Milliseconds until a packet was answered; a get may wait for entries."
    out.histogram(
        "canal_instance_client_request_latency", about, LATENCY_MS, counted.latencies, counted.latency_ms, **where
    )
