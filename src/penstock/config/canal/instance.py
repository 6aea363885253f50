"""The settings of an instance that depend on several of canal's properties."""

import os
from datetime import UTC, datetime
from pathlib import Path

from penstock.config.canal.rules import PropertyReader, parse_host_and_port, parse_milliseconds, parse_whole
from penstock.config.filter_settings import DEFAULT_KINDS
from penstock.config.time_zone import LOCAL
from penstock.errors import ConfigurationError

_I = "canal.instance."
_OWN = "penstock."
_META = {"memory-instance.xml": "memory", "file-instance.xml": "file", "default-instance.xml": "period-mixed"}
_TLS = {
    "DISABLED": "disabled",
    "PREFERRED": "preferred",
    "REQUIRED": "required",
    "VERIFY_CA": "verify-ca",
    "VERIFY_IDENTITY": "verify-identity",
}
_DROPPED_BY = {
    "filter.query.dcl": ("dcl",),  # nobody gets these in any case: canal's false asks for nothing
    "filter.query.dml": ("query",),
    "filter.query.ddl": ("ddl",),
    "filter.dml.insert": ("insert",),
    "filter.dml.update": ("update",),
    "filter.dml.delete": ("delete",),
    "filter.rows": ("insert", "update", "delete"),
}
_RING = 16384
_UNIT = 1024
_MIN_MEMORY = 1 << 16
_FIRST_OFFSET = 4
_CONF_DIR = "../conf"  # as canal's files come


def set_instance(reader: PropertyReader, folder: Path) -> None:
    """Set the instance settings that several properties decide together, and canal's defaults."""
    _set_source(reader)
    _set_standby(reader)
    _set_start(reader)
    _set_filter(reader)
    _set_store(reader)
    _set_meta(reader, folder)
    reader.set("canal.values", "canal")
    reader.set("canal.waits_for", "batch")
    reader.set("canal.time_zone", LOCAL)
    reader.set("canal.gtids", reader.read_flag(f"{_I}gtidon"))
    if reader.read_flag("canal.auto.reset.latest.pos.mode"):
        reader.set("on_purged", "latest")


def _set_source(reader: PropertyReader) -> None:
    """Set the source from canal's master.address, dbUsername and dbPassword."""
    address = reader.read_converted(f"{_I}master.address", lambda text: parse_host_and_port(text, 3306))
    if address is None:
        raise ConfigurationError(f"{_I}master.address says no source")
    host, port = address
    reader.set("source.host", host)
    reader.set("source.port", port)
    reader.set("source.user", reader.read_given(f"{_I}dbUsername", "canal"))
    reader.set("source.password", reader.read_given(f"{_I}dbPassword", "canal"))
    _set_tls(reader, "master", "source.tls")


def _set_tls(reader: PropertyReader, side: str, setting: str) -> None:
    """Set the TLS mode of the source or the standby from canal's sslMode."""
    key = f"{_I}{side}.sslMode"
    mode = reader.read_text(key)
    if mode is None:
        return
    if mode.upper() not in _TLS:
        raise ConfigurationError(f"{key}: it is one of {', '.join(_TLS)}")
    reader.set(setting, _TLS[mode.upper()])


def _set_standby(reader: PropertyReader) -> None:
    """Set the standby from canal's standby.address; canal only uses it when its health checks are enabled."""
    address = reader.read_converted(f"{_I}standby.address", lambda text: parse_host_and_port(text, 3306))
    if address is None:
        return
    if not (reader.read_flag(f"{_I}detecting.enable") and reader.read_flag(f"{_I}detecting.heartbeatHaEnable")):
        why = "canal switches to it only with detecting.enable and detecting.heartbeatHaEnable"
        reader.ignore(f"{_I}standby.address", why)
        return
    host, port = address
    reader.set("standby.host", host)
    reader.set("standby.port", port)
    _set_tls(reader, "standby", "standby.tls")


def _set_start(reader: PropertyReader) -> None:
    """Set the start position from canal's GTID, journal name and position, or timestamp."""
    gtid, journal = reader.read_text(f"{_I}master.gtid"), reader.read_text(f"{_I}master.journal.name")
    position = reader.read_converted(f"{_I}master.position", parse_whole)
    timestamp = reader.read_converted(f"{_I}master.timestamp", parse_whole)
    if gtid is not None and reader.read_flag(f"{_I}gtidon"):
        reader.set("start", gtid)
    elif journal is not None and (position or not timestamp):
        reader.set("start", f"{journal}:{position or _FIRST_OFFSET}")
    elif timestamp:
        try:
            moment = datetime.fromtimestamp(timestamp / 1000, UTC)
        except (OverflowError, OSError, ValueError):
            raise ConfigurationError(f"{_I}master.timestamp: it is milliseconds since 1970") from None
        reader.set("start", moment.isoformat(timespec="milliseconds"))
    if gtid is not None and not reader.read_flag(f"{_I}gtidon"):
        reader.ignore(f"{_I}master.gtid", "only with gtidon")


def _set_filter(reader: PropertyReader) -> None:
    """Set table, column and kind filters from canal's filter properties."""
    if allow := reader.read_text(f"{_I}filter.regex"):
        reader.set("filter.allow", [allow])
    if f"{_I}filter.black.regex" in reader.values:
        deny = reader.read_text(f"{_I}filter.black.regex")
        reader.set("filter.deny", [deny] if deny else [])
    columns = {"keep": reader.read_text(f"{_I}filter.field"), "drop": reader.read_text(f"{_I}filter.black.field")}
    if any(columns.values()):
        reader.set("filter.columns", {name: text for name, text in columns.items() if text})
    dropped = {kind for key, kinds in _DROPPED_BY.items() if reader.read_flag(_I + key) for kind in kinds}
    if dropped:
        reader.set("filter.kinds", [kind for kind in DEFAULT_KINDS if kind not in dropped])


def _set_store(reader: PropertyReader) -> None:
    """Set the size of the store and of batches from canal's memory buffer properties."""
    slots = reader.read_converted(f"{_I}memory.buffer.size", parse_whole) or _RING
    unit = reader.read_converted(f"{_I}memory.buffer.memunit", parse_whole) or _UNIT
    mode = (reader.read_text(f"{_I}memory.batch.mode") or "MEMSIZE").upper()
    if mode not in {"MEMSIZE", "ITEMSIZE"}:
        raise ConfigurationError(f"{_I}memory.batch.mode: it is MEMSIZE or ITEMSIZE")
    kind = reader.read_text(f"{_OWN}store.kind") or "memory"
    if kind == "memory":
        reader.set("store.slots", slots)
    reader.set("canal.unit", "memory" if mode == "MEMSIZE" else "items")
    reader.set("canal.unit_bytes", unit)
    if mode == "MEMSIZE" and kind != "file" and reader.read_text(f"{_OWN}store.memory") is None:
        reader.set("store.memory", max(slots * unit, _MIN_MEMORY))
    if reader.read_text(f"{_OWN}store.slow_clients") is None:
        # Clients of canal do not expect to wait for one another, and its store is small.
        reader.set("store.slow_clients", "catch_up")


def _set_meta(reader: PropertyReader, folder: Path) -> None:
    """Set where cursors are persisted from the name of canal's Spring file."""
    key = f"{_I}global.spring.xml"
    xml = (reader.read_text(key) or "file-instance.xml").rpartition("/")[2]
    if xml not in _META:
        raise ConfigurationError(
            f"{key}: {xml} is not read, only {', '.join(_META)}: write the instance as YAML for anything else"
        )
    kind = _META[xml]
    reader.set("meta.kind", kind)
    if kind != "memory":
        reader.set("data_dir", find_data_dir(reader, folder), "canal.file.data.dir")
        period = "canal.file.flush.period" if kind == "file" else "canal.zookeeper.flush.period"
        period_s = reader.read_converted(period, parse_milliseconds)
        if period_s is not None:
            reader.set("meta.period_s", period_s)
    if kind == "period-mixed":
        reader.set("zookeeper", find_zookeeper(reader) or "127.0.0.1:2181", "canal.zkServers")


def find_data_dir(reader: PropertyReader, folder: Path) -> Path:
    """Return the folder of the cursors. `folder` is the conf folder, absolute."""
    _check_conf_dir(reader, folder)
    text = reader.read_text("canal.file.data.dir")
    return folder if text is None or text == _CONF_DIR else _resolve_canal_path(text, folder)


def _resolve_canal_path(text: str, folder: Path) -> Path:
    """Return an absolute path: canal runs in the folder `bin` beside its `conf`, and its paths are relative to that."""
    return Path(os.path.normpath(folder.parent / "bin" / text))


def _check_conf_dir(reader: PropertyReader, folder: Path) -> None:
    """Raise ConfigurationError when `canal.conf.dir` names another existing folder: canal has instances and cursors
    there, and starting without them would lose changes."""
    text = reader.read_text("canal.conf.dir")
    if text is None or text == _CONF_DIR:
        return
    named = _resolve_canal_path(text, folder)
    if named.is_dir() and named.resolve() != folder.resolve():
        raise ConfigurationError(
            f"canal.conf.dir names {named}, and {folder} is served: canal has instances and cursors in the first; serve"
            " that one, or take canal.conf.dir out"
        )


def find_zookeeper(reader: PropertyReader) -> str | None:
    """Return the ZooKeeper servers, or None. Raises ConfigurationError for several clusters."""
    text = reader.read_text("canal.zkServers")
    if text is not None and ";" in text:
        raise ConfigurationError("canal.zkServers: several clusters (;) are not known, only one")
    return text
