"""The metrics of a server for Prometheus: canal's names where the meaning is the same, else `penstock_…`. docs/admin.md
has the table."""

import time
from collections.abc import Mapping
from typing import Any

from penstock.instance import InstanceState
from penstock.server.admin.prometheus import CONTENT_TYPE, Exposition
from penstock.server.canal.traffic import LATENCY_MS, TrafficCounts
from penstock.store import ClientState

__all__ = ["CONTENT_TYPE", "render_metrics"]


def render_metrics(status: Mapping[str, Any], traffic: Mapping[str, TrafficCounts]) -> str:
    """Return all metrics as Prometheus' text, from the data of `/status` and the traffic counters of canal's port."""
    out = Exposition()
    _add_server(out, status)
    for instance in status["instances"]:
        name = instance["destination"]
        _add_state(out, name, instance)
        if "counters" in instance:
            _add_capture(out, name, instance)
        for table, progress in instance.get("snapshots", {}).items():
            _add_snapshot(out, name, table, progress)
        if instance.get("store"):
            _add_store(out, name, instance)
            for client in instance["clients"]:
                _add_client(out, name, client)
    for name, counts in traffic.items():
        _add_traffic(out, name, counts)
    return out.to_text()


def _add_server(out: Exposition, status: Mapping[str, Any]) -> None:
    """Add the metrics of the server process and its ports."""
    server = status["server"]
    out.add("gauge", "penstock_info", "Version of the server.", 1, version=server["version"])
    out.add("gauge", "penstock_uptime_seconds", "Seconds since the server was created.", server["uptime_s"])
    out.add("gauge", "penstock_ready", "1 when the server is ready, as /readyz reports it.", int(status["ready"]))
    out.add(
        "gauge",
        "penstock_config_problems",
        "Number of settings that are invalid, or not applied.",
        len(status["problems"]),
    )
    for port, open_port in server["ports"].items():
        value = open_port["connections"]
        out.add("gauge", "penstock_connections", "Open connections of a port.", value, port=port)
    process = time.process_time()
    out.add("counter", "process_cpu_seconds_total", "CPU time of the server's process.", process)


def _add_state(out: Exposition, name: str, instance: Mapping[str, Any]) -> None:
    """Add the state, readiness and election of one destination."""
    where = {"destination": name}
    mode = "elected" if "election" in instance else "own"
    out.add("gauge", "canal_instance", "1 for each instance of this server.", 1, **where, mode=mode)
    for state in InstanceState:
        value = int(instance["state"] == state.value)
        help_text = "1 for the state that the instance is in."
        out.add("gauge", "penstock_instance_state", help_text, value, **where, state=state.value)
    help_text = "1 when the instance makes progress, is a standby for another server, or was stopped manually."
    out.add("gauge", "penstock_instance_ready", help_text, int(not instance["unready_reason"]), **where)
    if election := instance.get("election"):
        help_text = "1 on the server that was elected to run the destination."
        out.add("gauge", "penstock_election_held", help_text, int(election["is_held"]), **where)
        out.add(
            "gauge",
            "penstock_election_epoch",
            "Epoch of the election that this server has won.",
            election["epoch"],
            **where,
        )


def _add_snapshot(out: Exposition, name: str, table: str, progress: Mapping[str, Any]) -> None:
    """Add how far the snapshot of a table is."""
    where = {"destination": name, "table": table}
    help_text = "How much of a table its snapshot has read, by estimate; 1 when it is complete."
    out.add("gauge", "penstock_snapshot_done_ratio", help_text, progress["percent"] / 100, **where)
    out.add("counter", "penstock_snapshot_rows_total", "Rows that snapshots have read.", progress["rows_read"], **where)
    out.add(
        "counter",
        "penstock_snapshot_chunks_total",
        "Chunks that snapshots have read.",
        progress["chunks_read"],
        **where,
    )


def _add_capture(out: Exposition, name: str, instance: Mapping[str, Any]) -> None:
    """Add the capture counters and the lag of one instance."""
    where, counters = {"destination": name}, instance["counters"]
    out.add("counter", "canal_instance_transactions", "Transactions captured.", counters["transactions"], **where)
    help_text = "Bytes of binlog events that came from the source."
    parser = instance.get("source", "")
    out.add("counter", "canal_instance_received_binlog_bytes", help_text, counters["bytes"], **where, parser=parser)
    help_text = "Milliseconds for which capture waited for room in the store."
    out.add("counter", "canal_instance_sink_blocking_time", help_text, 1e3 * counters["blocked_s"], **where)
    # One thread reads the source's bytes and works on what came, so what takes it from reading is its work.
    busy = sum(counters["seconds"][stage] for stage in ("tables", "filter", "store"))
    help_text = "Milliseconds for which the source's bytes waited for the work on those before them."
    out.add("counter", "canal_instance_publish_blocking_time", help_text, 1e3 * busy, **where, parser=parser)
    help_text = "How the binlog is parsed: in one thread, many events at a time."
    out.add("gauge", "canal_instance_parser_mode", help_text, 1, **where, parallel="false")
    for key in ("blocks", "events", "kept_events", "signs_of_life", "reconnects", "switches"):
        out.add("counter", f"penstock_instance_{key}_total", _COUNTERS[key], counters[key], **where)
    for stage, seconds in counters["seconds"].items():
        out.add(
            "counter",
            "penstock_instance_stage_seconds_total",
            "Seconds that capture spent in each stage.",
            seconds,
            **where,
            stage=stage,
        )
    lag: dict[str, Any] = instance.get("lag") or {}
    seconds = lag.get("seconds")
    help_text = "Milliseconds by which what was captured last is behind the source; 0 when all is captured."
    out.add("gauge", "canal_instance_traffic_delay", help_text, None if seconds is None else 1e3 * seconds, **where)
    out.add(
        "gauge",
        "penstock_instance_lag_seconds",
        "Seconds by which what was captured last is behind the source; 0 when all is captured.",
        seconds,
        **where,
    )
    out.add(
        "gauge",
        "penstock_instance_lag_bytes",
        "Bytes of the source's binlog that are not captured yet, as last seen.",
        lag.get("bytes"),
        **where,
    )
    prepared: dict[str, Any] = instance.get("prepared") or {}
    help_text = "XA transactions whose rows wait for their XA COMMIT."
    out.add("gauge", "penstock_instance_prepared_transactions", help_text, prepared.get("count"), **where)
    since, help_text = (
        prepared.get("since"),
        "Seconds since the oldest XA transaction that is still prepared was prepared.",
    )
    age_s = (max(0.0, time.time() - since) if since else 0.0) if prepared else None
    out.add("gauge", "penstock_instance_prepared_oldest_seconds", help_text, age_s, **where)
    hours = instance.get("retention_hours_left")
    out.add(
        "gauge",
        "penstock_instance_retention_hours",
        "Hours until the source purges binlog that is still needed.",
        hours,
        **where,
    )
    help_text = "Tables whose delivery was halted because their schema is unknown, see /status."
    out.add("gauge", "penstock_instance_stopped_tables", help_text, len(instance.get("stopped_tables", ())), **where)


_PAST_TENSE = {"put": "put", "get": "got", "ack": "acked"}
_COUNTERS = {
    "blocks": "Blocks of the binlog that were received.",
    "events": "Binlog events that were received from the source.",
    "kept_events": "Events that were put into the store.",
    "signs_of_life": "Heartbeats and other signs that the idle source is alive.",
    "reconnects": "Times capture reconnected to the source.",
    "switches": "Times capture switched between the source and its standby.",
}


def _add_store(out: Exposition, name: str, instance: Mapping[str, Any]) -> None:
    """Add the fill level and the sequences of one instance's store."""
    where, store = {"destination": name}, instance["store"]
    subscribed = sum(client["filter"] is not None for client in instance["clients"])
    out.add("gauge", "canal_instance_subscriptions", "Clients that have subscribed.", subscribed, **where)
    help_text = "Sequence of the last entry that was put into the store."
    out.add("counter", "canal_instance_store_produce_seq", help_text, store["put_sequence"], **where)
    help_text = "Sequence of the last entry that all clients have acked."
    out.add("counter", "canal_instance_store_consume_seq", help_text, store["ack_sequence"], **where)
    out.add(
        "counter",
        "canal_instance_store_produce_mem",
        "Bytes that were put into the store.",
        store["put_bytes"],
        **where,
    )
    help_text = "Bytes that all clients have acked."
    out.add("counter", "canal_instance_store_consume_mem", help_text, store["acked_bytes"], **where)
    out.add("counter", "canal_instance_put_rows", "Rows that were put into the store.", store["put_rows"], **where)
    help_text = "Rows that clients got, of all clients together; redelivered rows count again."
    out.add("counter", "canal_instance_get_rows", help_text, store["got_rows"], **where)
    help_text = "Rows that clients have acked, of all clients together."
    out.add("counter", "canal_instance_ack_rows", help_text, store["acked_rows"], **where)
    mode = "MEMSIZE" if store["batch_unit"] == "memory" else "ITEMSIZE"
    size = store["limit_entries"] if store["limit_entries"] is not None else store["limit_bytes"]
    help_text = "1; the label size is the limit in entries, or in bytes where entries have no limit."
    out.add("gauge", "canal_instance_store", help_text, 1, **where, batchMode=mode, size="" if size is None else size)
    clients = [client for client in instance["clients"] if not client["lost"]]
    for action, seconds in (
        ("put", [instance["lag"]["seconds"]]),
        ("get", [client["got_lag_s"] for client in clients]),
        ("ack", [client["lag"]["seconds"] for client in clients]),
    ):
        known = [1e3 * lag_s for lag_s in seconds if lag_s is not None]
        help_text = f"Milliseconds by which what was {_PAST_TENSE[action]} last is behind the source, of the slowest."
        out.add("gauge", f"canal_instance_{action}_delay", help_text, max(known, default=None), **where)
    out.add("gauge", "penstock_store_bytes", "Bytes that the store holds.", store["bytes"], **where)
    out.add("gauge", "penstock_store_limit_bytes", "Bytes that the store may hold.", store["limit_bytes"], **where)
    out.add(
        "gauge",
        "penstock_store_entries",
        "Entries that were put and that not all clients have acked.",
        store["entries"],
        **where,
    )
    help_text = "Fill level of the store: share of its limit in bytes or in entries, of the one that is reached first."
    out.add("gauge", "penstock_store_fill_ratio", help_text, store["fill"], **where)


def _add_client(out: Exposition, name: str, client: Mapping[str, Any]) -> None:
    """Add the lag and the state of one client."""
    where = {"destination": name, "client": client["client"]}
    lag = client["lag"]
    out.add(
        "gauge",
        "penstock_client_lag_seconds",
        "Seconds by which the client's cursor is behind the source.",
        lag["seconds"],
        **where,
    )
    out.add(
        "gauge",
        "penstock_client_lag_bytes",
        "Bytes of the source's binlog after the client's cursor.",
        lag["bytes"],
        **where,
    )
    help_text = "Entries in the store that the client has not acked."
    out.add("gauge", "penstock_client_waiting_entries", help_text, client["waiting_entries"], **where)
    help_text = "Batches that were delivered to the client and not acked."
    out.add("gauge", "penstock_client_outstanding_batches", help_text, client["outstanding"], **where)
    help_text = "1 when the store holds its oldest entries for this client."
    out.add("gauge", "penstock_client_holds_oldest", help_text, int(client["holds_oldest"]), **where)
    help_text = "1 when the client is connected."
    out.add("gauge", "penstock_client_connected", help_text, int(client["connected"]), **where)
    help_text = "1 while the client is served from the source's binlog instead of the store."
    out.add("gauge", "penstock_client_catching_up", help_text, int(client["from_log"]), **where)
    out.add(
        "gauge", "penstock_client_idle_seconds", "Seconds since the client's last request.", client["idle_s"], **where
    )
    for state in ClientState:
        value = int(client["state"] == state.value)
        out.add(
            "gauge",
            "penstock_client_state",
            "1 for the state that the client is in.",
            value,
            **where,
            state=state.value,
        )


def _add_traffic(out: Exposition, name: str, counts: TrafficCounts) -> None:
    """Add the packets, errors and latencies of canal's port for one destination."""
    where = {"destination": name}
    for kind, count in sorted(counts.packets.items()):
        help_text = "Packets of canal's clients, by type."
        out.add("counter", "canal_instance_client_packets", help_text, count, **where, packetType=kind)
    for code, count in sorted(counts.errors.items()):
        help_text = "Packets that were answered with an error, by its code."
        out.add("counter", "canal_instance_client_request_error", help_text, count, **where, errorCode=code)
    if not name:
        return
    out.add(
        "counter",
        "canal_instance_client_bytes",
        "Bytes of batches that were sent to canal's clients.",
        counts.sent_bytes,
        **where,
    )
    help_text = "Gets that were answered with an empty batch."
    out.add("counter", "canal_instance_client_empty_batches", help_text, counts.empty_batches, **where)
    help_text = "Milliseconds until a packet was answered; a get may wait for entries."
    out.add_histogram(
        "canal_instance_client_request_latency", help_text, LATENCY_MS, counts.latencies, counts.latency_ms, **where
    )
