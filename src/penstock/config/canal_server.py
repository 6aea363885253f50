"""The settings of a server that several of canal's properties decide together."""

from pathlib import Path

from penstock.config.canal_instance import data_dir, zookeeper
from penstock.config.canal_rules import Taken, seconds, whole
from penstock.config.canal_server_keys import OWN_TOKENS
from penstock.config.destination_list import expand_destinations
from penstock.errors import ConfigurationError

_ANY = "0.0.0.0"  # noqa: S104 - where canal listens when its file does not say
_CANAL_PORT, _METRICS_PORT = 11111, 11112
_SCAN_S = 5
_METRICS, _INTERVAL = "canal.metrics.pull.port", "canal.auto.scan.interval"


def fill_server(taken: Taken, folder: Path) -> tuple[str, ...]:
    """Returns the destinations that are named."""
    _canal(taken)
    _metrics(taken)
    _tokens(taken)
    _admin(taken)
    _manager(taken)
    taken.put("data_dir", data_dir(taken, folder), "canal.file.data.dir")
    taken.put("zookeeper", zookeeper(taken), "canal.zkServers")
    is_scanning = taken.flag("canal.auto.scan", True)
    scan_s = taken.converted(_INTERVAL, seconds)
    taken.put("scan_s", (_SCAN_S if scan_s is None else scan_s) if is_scanning else 0, "canal.auto.scan", _INTERVAL)
    listed = _listed(taken)
    if not is_scanning:
        taken.put("destinations", listed, "canal.destinations", "canal.destinations.expr")
    return listed


def _canal(taken: Taken) -> None:
    port = taken.converted("canal.port", whole)
    port = _CANAL_PORT if port is None else port
    host = taken.text("canal.ip") or _ANY
    taken.put("canal.host", host, "canal.ip")
    taken.put("canal.port", None if taken.flag("canal.withoutNetty") else port, "canal.port")
    password = taken.text("canal.passwd")
    if password is not None:
        taken.put("canal.password_hash", password, "canal.passwd")
    elif taken.text("canal.user") is None:
        # As canal is: its clients do not all have a password to come with.
        taken.put("canal.allow_anonymous", True)
    if registered := taken.text("canal.register.ip") or taken.text("canal.ip"):
        taken.put("running.address", f"{registered}:{port}", "canal.register.ip", "canal.ip")


def _metrics(taken: Taken) -> None:
    port = taken.converted(_METRICS, whole)
    port = _METRICS_PORT if port is None else port
    taken.put("admin.port", port if port > 0 else None, _METRICS)
    if "admin.host" not in taken.said:
        taken.ignore(
            _METRICS,
            "as for its address: on loopback only, another one is penstock.admin.host, with penstock.admin.token",
        )


def _tokens(taken: Taken) -> None:
    """`penstock.flight.tokens.NAME` is the token of a caller of that name."""
    tokens = {key.removeprefix(OWN_TOKENS): taken.text(key) for key in taken.values if key.startswith(OWN_TOKENS)}
    if tokens := {name: token for name, token in tokens.items() if token is not None}:
        taken.put("flight.tokens", tokens, *(f"{OWN_TOKENS}{name}" for name in tokens))


def _admin(taken: Taken) -> None:
    port, password = taken.converted("canal.admin.port", whole), taken.text("canal.admin.passwd")
    if port is None or port <= 0:
        return
    if password is None:
        taken.ignore("canal.admin.port", "it stays closed without a canal.admin.passwd")
        return
    taken.put("canal_admin.host", taken.text("canal.ip") or _ANY, "canal.ip")
    taken.put("canal_admin.port", port, "canal.admin.port")
    taken.put("canal_admin.user", taken.text("canal.admin.user") or "admin", "canal.admin.user")
    taken.put("canal_admin.password_hash", password, "canal.admin.passwd")


def _manager(taken: Taken) -> None:
    mode = (taken.text("canal.instance.global.mode") or "spring").lower()
    if mode not in {"spring", "manager"}:
        raise ConfigurationError("canal.instance.global.mode: it is spring or manager")
    if taken.text("canal.admin.manager") is None and mode == "spring":
        return
    url = taken.text("canal.admin.manager") or taken.text("canal.instance.global.manager.address")
    if url is None:
        raise ConfigurationError("canal.instance.global.mode is manager, and canal.admin.manager says none")
    taken.put("manager.url", url, "canal.admin.manager", "canal.instance.global.manager.address")
    taken.put("manager.user", taken.text("canal.admin.user") or "admin")
    taken.put("manager.password_hash", taken.text("canal.admin.passwd"))
    taken.put("manager.announce", taken.flag("canal.admin.register.auto"))
    taken.put("manager.cluster", taken.text("canal.admin.register.cluster") or "")
    taken.put("manager.name", taken.text("canal.admin.register.name") or "")
    interval_s = taken.converted("canal.auto.scan.interval", seconds)
    if interval_s:
        taken.put("manager.poll_s", interval_s)


def _listed(taken: Taken) -> tuple[str, ...]:
    several = [*(taken.text("canal.destinations") or "").split(","), taken.text("canal.destinations.expr") or ""]
    try:
        return expand_destinations(name for name in several if name.strip())
    except ValueError as error:
        raise ConfigurationError(f"canal.destinations: {error}") from None
