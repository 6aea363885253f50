"""The settings of a server that depend on several of canal's properties."""

from pathlib import Path

from penstock.config.canal.instance import find_data_dir, find_zookeeper
from penstock.config.canal.rules import PropertyReader, parse_seconds, parse_whole
from penstock.config.canal.server_keys import OWN_TOKENS
from penstock.config.destination_list import expand_destinations
from penstock.errors import ConfigurationError

_ANY = "0.0.0.0"  # noqa: S104 - where canal listens when its file does not say
_CANAL_PORT, _METRICS_PORT = 11111, 11112
_SCAN_S = 5
_METRICS, _INTERVAL = "canal.metrics.pull.port", "canal.auto.scan.interval"


def set_server(reader: PropertyReader, folder: Path) -> tuple[str, ...]:
    """Set the server settings that several properties decide together; return the destinations that are named."""
    _set_canal(reader)
    _set_metrics(reader)
    _set_tokens(reader)
    _set_admin(reader)
    _set_manager(reader)
    reader.set("data_dir", find_data_dir(reader, folder), "canal.file.data.dir")
    reader.set("zookeeper", find_zookeeper(reader), "canal.zkServers")
    is_scanning = reader.read_flag("canal.auto.scan", True)
    scan_s = reader.read_converted(_INTERVAL, parse_seconds)
    reader.set("scan_s", (_SCAN_S if scan_s is None else scan_s) if is_scanning else 0, "canal.auto.scan", _INTERVAL)
    listed = _read_destinations(reader)
    if not is_scanning:
        reader.set("destinations", listed, "canal.destinations", "canal.destinations.expr")
    return listed


def _set_canal(reader: PropertyReader) -> None:
    """Set address, port and login of canal's protocol."""
    port = reader.read_converted("canal.port", parse_whole)
    port = _CANAL_PORT if port is None else port
    host = reader.read_text("canal.ip") or _ANY
    reader.set("canal.host", host, "canal.ip")
    reader.set("canal.port", None if reader.read_flag("canal.withoutNetty") else port, "canal.port")
    password = reader.read_text("canal.passwd")
    if password is not None:
        reader.set("canal.password_hash", password, "canal.passwd")
    elif reader.read_text("canal.user") is None:
        # As canal is: its clients do not all have a password to come with.
        reader.set("canal.allow_anonymous", True)
    if registered := reader.read_text("canal.register.ip") or reader.read_text("canal.ip"):
        reader.set("running.address", f"{registered}:{port}", "canal.register.ip", "canal.ip")


def _set_metrics(reader: PropertyReader) -> None:
    """Set the HTTP port from canal's metrics port."""
    port = reader.read_converted(_METRICS, parse_whole)
    port = _METRICS_PORT if port is None else port
    reader.set("admin.port", port if port > 0 else None, _METRICS)
    if "admin.host" not in reader.set_by:
        reader.ignore(
            _METRICS,
            "as for its address: on loopback only, another one is penstock.admin.host, with penstock.admin.token",
        )


def _set_tokens(reader: PropertyReader) -> None:
    """Set the tokens of Arrow Flight: `penstock.flight.tokens.NAME` is the token of a caller of that name."""
    tokens = {
        key.removeprefix(OWN_TOKENS): reader.read_text(key) for key in reader.values if key.startswith(OWN_TOKENS)
    }
    if tokens := {name: token for name, token in tokens.items() if token is not None}:
        reader.set("flight.tokens", tokens, *(f"{OWN_TOKENS}{name}" for name in tokens))


def _set_admin(reader: PropertyReader) -> None:
    """Set canal's admin port; it stays closed without a password."""
    port, password = reader.read_converted("canal.admin.port", parse_whole), reader.read_text("canal.admin.passwd")
    if port is None or port <= 0:
        return
    if password is None:
        reader.ignore("canal.admin.port", "it stays closed without a canal.admin.passwd")
        return
    reader.set("canal_admin.host", reader.read_text("canal.ip") or _ANY, "canal.ip")
    reader.set("canal_admin.port", port, "canal.admin.port")
    reader.set("canal_admin.user", reader.read_text("canal.admin.user") or "admin", "canal.admin.user")
    reader.set("canal_admin.password_hash", password, "canal.admin.passwd")


def _set_manager(reader: PropertyReader) -> None:
    """Set canal-admin (the YAML key `manager`) as the source of the instances, if it is configured."""
    mode = (reader.read_text("canal.instance.global.mode") or "spring").lower()
    if mode not in {"spring", "manager"}:
        raise ConfigurationError("canal.instance.global.mode: it is spring or manager")
    if reader.read_text("canal.admin.manager") is None and mode == "spring":
        return
    url = reader.read_text("canal.admin.manager") or reader.read_text("canal.instance.global.manager.address")
    if url is None:
        raise ConfigurationError("canal.instance.global.mode is manager, and canal.admin.manager says none")
    reader.set("manager.url", url, "canal.admin.manager", "canal.instance.global.manager.address")
    reader.set("manager.user", reader.read_text("canal.admin.user") or "admin")
    reader.set("manager.password_hash", reader.read_text("canal.admin.passwd"))
    reader.set("manager.announce", reader.read_flag("canal.admin.register.auto"))
    reader.set("manager.cluster", reader.read_text("canal.admin.register.cluster") or "")
    reader.set("manager.name", reader.read_text("canal.admin.register.name") or "")
    interval_s = reader.read_converted("canal.auto.scan.interval", parse_seconds)
    if interval_s:
        reader.set("manager.poll_s", interval_s)


def _read_destinations(reader: PropertyReader) -> tuple[str, ...]:
    """Return the destinations that `canal.properties` lists. Raises ConfigurationError."""
    names = [
        *(reader.read_text("canal.destinations") or "").split(","),
        reader.read_text("canal.destinations.expr") or "",
    ]
    try:
        return expand_destinations(name for name in names if name.strip())
    except ValueError as error:
        raise ConfigurationError(f"canal.destinations: {error}") from None
