"""The settings of a server that several of canal's properties decide together."""

from pathlib import Path

from penstock.config.canal_instance import data_dir, zookeeper
from penstock.config.canal_rules import IgnoredKey, Taken, seconds, whole
from penstock.config.destination_list import expand_destinations
from penstock.errors import ConfigurationError

_ANY = "0.0.0.0"  # noqa: S104 - where canal listens when its file does not say
_CANAL_PORT, _METRICS_PORT = 11111, 11112
_SCAN_S = 5


def fill_server(taken: Taken, folder: Path) -> tuple[str, ...]:
    """Returns the destinations that are named."""
    _canal(taken)
    _metrics(taken)
    _admin(taken)
    _manager(taken)
    taken.put("data_dir", data_dir(taken, folder))
    taken.put("zookeeper", zookeeper(taken))
    is_scanning = taken.flag("canal.auto.scan", True)
    scan_s = taken.converted("canal.auto.scan.interval", seconds)
    taken.put("scan_s", (_SCAN_S if scan_s is None else scan_s) if is_scanning else 0)
    listed = _listed(taken)
    if not is_scanning:
        taken.put("destinations", listed)
    return listed


def _canal(taken: Taken) -> None:
    port = taken.converted("canal.port", whole)
    port = _CANAL_PORT if port is None else port
    host = taken.text("canal.ip") or _ANY
    taken.put("canal.host", host)
    taken.put("canal.port", None if taken.flag("canal.withoutNetty") else port)
    password = taken.text("canal.passwd")
    if password is not None:
        taken.put("canal.password_hash", password)
    elif taken.text("canal.user") is None:
        # As canal is: its clients do not all have a password to come with.
        taken.put("canal.allow_anonymous", True)
        taken.ignored.append(IgnoredKey("canal.passwd", "it is not there: canal's port is open to everybody"))
    if registered := taken.text("canal.register.ip") or taken.text("canal.ip"):
        taken.put("running.address", f"{registered}:{port}")


def _metrics(taken: Taken) -> None:
    port = taken.converted("canal.metrics.pull.port", whole)
    port = _METRICS_PORT if port is None else port
    taken.put("admin.port", port if port > 0 else None)
    taken.ignore("canal.metrics.pull.port", "as for its address: on loopback only, another one needs a token")


def _admin(taken: Taken) -> None:
    port, password = taken.converted("canal.admin.port", whole), taken.text("canal.admin.passwd")
    if port is None or port <= 0:
        return
    if password is None:
        taken.ignore("canal.admin.port", "it stays closed without a canal.admin.passwd")
        return
    taken.put("canal_admin.host", taken.text("canal.ip") or _ANY)
    taken.put("canal_admin.port", port)
    taken.put("canal_admin.user", taken.text("canal.admin.user") or "admin")
    taken.put("canal_admin.password_hash", password)


def _manager(taken: Taken) -> None:
    mode = (taken.text("canal.instance.global.mode") or "spring").lower()
    if mode not in {"spring", "manager"}:
        raise ConfigurationError("canal.instance.global.mode: it is spring or manager")
    if taken.text("canal.admin.manager") is None and mode == "spring":
        return
    url = taken.text("canal.admin.manager") or taken.text("canal.instance.global.manager.address")
    if url is None:
        raise ConfigurationError("canal.instance.global.mode is manager, and canal.admin.manager says none")
    taken.put("manager.url", url)
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
