"""The settings of a server that several of canal's properties decide together."""

from pathlib import Path

from penstock.config.canal.instance import data_dir, zookeeper
from penstock.config.canal.rules import PropertyReader, seconds, whole
from penstock.config.canal.server_keys import OWN_TOKENS
from penstock.config.destination_list import expand_destinations
from penstock.errors import ConfigurationError

_ANY = "0.0.0.0"  # noqa: S104 - where canal listens when its file does not say
_CANAL_PORT, _METRICS_PORT = 11111, 11112
_SCAN_S = 5
_METRICS, _INTERVAL = "canal.metrics.pull.port", "canal.auto.scan.interval"


def fill_server(reader: PropertyReader, folder: Path) -> tuple[str, ...]:
    """Returns the destinations that are named."""
    _canal(reader)
    _metrics(reader)
    _tokens(reader)
    _admin(reader)
    _manager(reader)
    reader.put("data_dir", data_dir(reader, folder), "canal.file.data.dir")
    reader.put("zookeeper", zookeeper(reader), "canal.zkServers")
    is_scanning = reader.flag("canal.auto.scan", True)
    scan_s = reader.converted(_INTERVAL, seconds)
    reader.put("scan_s", (_SCAN_S if scan_s is None else scan_s) if is_scanning else 0, "canal.auto.scan", _INTERVAL)
    listed = _listed(reader)
    if not is_scanning:
        reader.put("destinations", listed, "canal.destinations", "canal.destinations.expr")
    return listed


def _canal(reader: PropertyReader) -> None:
    port = reader.converted("canal.port", whole)
    port = _CANAL_PORT if port is None else port
    host = reader.text("canal.ip") or _ANY
    reader.put("canal.host", host, "canal.ip")
    reader.put("canal.port", None if reader.flag("canal.withoutNetty") else port, "canal.port")
    password = reader.text("canal.passwd")
    if password is not None:
        reader.put("canal.password_hash", password, "canal.passwd")
    elif reader.text("canal.user") is None:
        # As canal is: its clients do not all have a password to come with.
        reader.put("canal.allow_anonymous", True)
    if registered := reader.text("canal.register.ip") or reader.text("canal.ip"):
        reader.put("running.address", f"{registered}:{port}", "canal.register.ip", "canal.ip")


def _metrics(reader: PropertyReader) -> None:
    port = reader.converted(_METRICS, whole)
    port = _METRICS_PORT if port is None else port
    reader.put("admin.port", port if port > 0 else None, _METRICS)
    if "admin.host" not in reader.said:
        reader.ignore(
            _METRICS,
            "as for its address: on loopback only, another one is penstock.admin.host, with penstock.admin.token",
        )


def _tokens(reader: PropertyReader) -> None:
    """`penstock.flight.tokens.NAME` is the token of a caller of that name."""
    tokens = {key.removeprefix(OWN_TOKENS): reader.text(key) for key in reader.values if key.startswith(OWN_TOKENS)}
    if tokens := {name: token for name, token in tokens.items() if token is not None}:
        reader.put("flight.tokens", tokens, *(f"{OWN_TOKENS}{name}" for name in tokens))


def _admin(reader: PropertyReader) -> None:
    port, password = reader.converted("canal.admin.port", whole), reader.text("canal.admin.passwd")
    if port is None or port <= 0:
        return
    if password is None:
        reader.ignore("canal.admin.port", "it stays closed without a canal.admin.passwd")
        return
    reader.put("canal_admin.host", reader.text("canal.ip") or _ANY, "canal.ip")
    reader.put("canal_admin.port", port, "canal.admin.port")
    reader.put("canal_admin.user", reader.text("canal.admin.user") or "admin", "canal.admin.user")
    reader.put("canal_admin.password_hash", password, "canal.admin.passwd")


def _manager(reader: PropertyReader) -> None:
    mode = (reader.text("canal.instance.global.mode") or "spring").lower()
    if mode not in {"spring", "manager"}:
        raise ConfigurationError("canal.instance.global.mode: it is spring or manager")
    if reader.text("canal.admin.manager") is None and mode == "spring":
        return
    url = reader.text("canal.admin.manager") or reader.text("canal.instance.global.manager.address")
    if url is None:
        raise ConfigurationError("canal.instance.global.mode is manager, and canal.admin.manager says none")
    reader.put("manager.url", url, "canal.admin.manager", "canal.instance.global.manager.address")
    reader.put("manager.user", reader.text("canal.admin.user") or "admin")
    reader.put("manager.password_hash", reader.text("canal.admin.passwd"))
    reader.put("manager.announce", reader.flag("canal.admin.register.auto"))
    reader.put("manager.cluster", reader.text("canal.admin.register.cluster") or "")
    reader.put("manager.name", reader.text("canal.admin.register.name") or "")
    interval_s = reader.converted("canal.auto.scan.interval", seconds)
    if interval_s:
        reader.put("manager.poll_s", interval_s)


def _listed(reader: PropertyReader) -> tuple[str, ...]:
    several = [*(reader.text("canal.destinations") or "").split(","), reader.text("canal.destinations.expr") or ""]
    try:
        return expand_destinations(name for name in several if name.strip())
    except ValueError as error:
        raise ConfigurationError(f"canal.destinations: {error}") from None
