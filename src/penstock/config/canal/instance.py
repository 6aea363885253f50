"""The settings of an instance that several of canal's properties decide together."""

import os
from datetime import UTC, datetime
from pathlib import Path

from penstock.config.canal.rules import PropertyReader, host_and_port, milliseconds, whole
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
_LEAST_MEMORY = 1 << 16
_FIRST_OFFSET = 4
_CONF_DIR = "../conf"  # as canal's files come


def fill_instance(reader: PropertyReader, folder: Path) -> None:
    _source(reader)
    _standby(reader)
    _start(reader)
    _filter(reader)
    _store(reader)
    _meta(reader, folder)
    reader.put("canal.values", "canal")
    reader.put("canal.waits_for", "batch")
    reader.put("canal.time_zone", LOCAL)
    reader.put("canal.gtids", reader.flag(f"{_I}gtidon"))
    if reader.flag("canal.auto.reset.latest.pos.mode"):
        reader.put("on_purged", "latest")


def _source(reader: PropertyReader) -> None:
    address = reader.converted(f"{_I}master.address", lambda text: host_and_port(text, 3306))
    if address is None:
        raise ConfigurationError(f"{_I}master.address says no source")
    host, port = address
    reader.put("source.host", host)
    reader.put("source.port", port)
    reader.put("source.user", reader.given(f"{_I}dbUsername", "canal"))
    reader.put("source.password", reader.given(f"{_I}dbPassword", "canal"))
    _tls(reader, "master", "source.tls")


def _tls(reader: PropertyReader, side: str, setting: str) -> None:
    key = f"{_I}{side}.sslMode"
    mode = reader.text(key)
    if mode is None:
        return
    if mode.upper() not in _TLS:
        raise ConfigurationError(f"{key}: it is one of {', '.join(_TLS)}")
    reader.put(setting, _TLS[mode.upper()])


def _standby(reader: PropertyReader) -> None:
    address = reader.converted(f"{_I}standby.address", lambda text: host_and_port(text, 3306))
    if address is None:
        return
    if not (reader.flag(f"{_I}detecting.enable") and reader.flag(f"{_I}detecting.heartbeatHaEnable")):
        why = "canal switches to it only with detecting.enable and detecting.heartbeatHaEnable"
        reader.ignore(f"{_I}standby.address", why)
        return
    host, port = address
    reader.put("standby.host", host)
    reader.put("standby.port", port)
    _tls(reader, "standby", "standby.tls")


def _start(reader: PropertyReader) -> None:
    gtid, journal = reader.text(f"{_I}master.gtid"), reader.text(f"{_I}master.journal.name")
    position = reader.converted(f"{_I}master.position", whole)
    timestamp = reader.converted(f"{_I}master.timestamp", whole)
    if gtid is not None and reader.flag(f"{_I}gtidon"):
        reader.put("start", gtid)
    elif journal is not None and (position or not timestamp):
        reader.put("start", f"{journal}:{position or _FIRST_OFFSET}")
    elif timestamp:
        try:
            moment = datetime.fromtimestamp(timestamp / 1000, UTC)
        except (OverflowError, OSError, ValueError):
            raise ConfigurationError(f"{_I}master.timestamp: it is milliseconds since 1970") from None
        reader.put("start", moment.isoformat(timespec="milliseconds"))
    if gtid is not None and not reader.flag(f"{_I}gtidon"):
        reader.ignore(f"{_I}master.gtid", "only with gtidon")


def _filter(reader: PropertyReader) -> None:
    if allow := reader.text(f"{_I}filter.regex"):
        reader.put("filter.allow", [allow])
    if f"{_I}filter.black.regex" in reader.values:
        deny = reader.text(f"{_I}filter.black.regex")
        reader.put("filter.deny", [deny] if deny else [])
    columns = {"keep": reader.text(f"{_I}filter.field"), "drop": reader.text(f"{_I}filter.black.field")}
    if any(columns.values()):
        reader.put("filter.columns", {name: text for name, text in columns.items() if text})
    dropped = {kind for key, kinds in _DROPPED_BY.items() if reader.flag(_I + key) for kind in kinds}
    if dropped:
        reader.put("filter.kinds", [kind for kind in DEFAULT_KINDS if kind not in dropped])


def _store(reader: PropertyReader) -> None:
    slots = reader.converted(f"{_I}memory.buffer.size", whole) or _RING
    unit = reader.converted(f"{_I}memory.buffer.memunit", whole) or _UNIT
    mode = (reader.text(f"{_I}memory.batch.mode") or "MEMSIZE").upper()
    if mode not in {"MEMSIZE", "ITEMSIZE"}:
        raise ConfigurationError(f"{_I}memory.batch.mode: it is MEMSIZE or ITEMSIZE")
    kind = reader.text(f"{_OWN}store.kind") or "memory"
    if kind == "memory":
        reader.put("store.slots", slots)
    reader.put("canal.unit", "memory" if mode == "MEMSIZE" else "items")
    reader.put("canal.unit_bytes", unit)
    if mode == "MEMSIZE" and kind != "file" and reader.text(f"{_OWN}store.memory") is None:
        reader.put("store.memory", max(slots * unit, _LEAST_MEMORY))
    if reader.text(f"{_OWN}store.slow_clients") is None:
        # Clients of canal do not expect to wait for one another, and its store is small.
        reader.put("store.slow_clients", "catch_up")


def _meta(reader: PropertyReader, folder: Path) -> None:
    key = f"{_I}global.spring.xml"
    xml = (reader.text(key) or "file-instance.xml").rpartition("/")[2]
    if xml not in _META:
        raise ConfigurationError(
            f"{key}: {xml} is not read, only {', '.join(_META)}: write the instance as YAML for anything else"
        )
    kind = _META[xml]
    reader.put("meta.kind", kind)
    if kind != "memory":
        reader.put("data_dir", data_dir(reader, folder), "canal.file.data.dir")
        period = "canal.file.flush.period" if kind == "file" else "canal.zookeeper.flush.period"
        period_s = reader.converted(period, milliseconds)
        if period_s is not None:
            reader.put("meta.period_s", period_s)
    if kind == "period-mixed":
        reader.put("zookeeper", zookeeper(reader) or "127.0.0.1:2181", "canal.zkServers")


def data_dir(reader: PropertyReader, folder: Path) -> Path:
    """Return the folder of the cursors. `folder` is the conf folder, absolute."""
    _check_conf_dir(reader, folder)
    text = reader.text("canal.file.data.dir")
    return folder if text is None or text == _CONF_DIR else _from_bin(text, folder)


def _from_bin(text: str, folder: Path) -> Path:
    """canal runs in the folder `bin` beside its `conf`, and paths are relative to that."""
    return Path(os.path.normpath(folder.parent / "bin" / text))


def _check_conf_dir(reader: PropertyReader, folder: Path) -> None:
    """`${canal.conf.dir}` is the folder that is served. A file that was copied here may name another one, but if that
    one exists, canal has its instances and cursors there, and to begin without them would lose changes."""
    text = reader.text("canal.conf.dir")
    if text is None or text == _CONF_DIR:
        return
    named = _from_bin(text, folder)
    if named.is_dir() and named.resolve() != folder.resolve():
        raise ConfigurationError(
            f"canal.conf.dir names {named}, and {folder} is served: canal has instances and cursors in the first; serve"
            " that one, or take canal.conf.dir out"
        )


def zookeeper(reader: PropertyReader) -> str | None:
    text = reader.text("canal.zkServers")
    if text is not None and ";" in text:
        raise ConfigurationError("canal.zkServers: several clusters (;) are not known, only one")
    return text
