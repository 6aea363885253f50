"""Warns of ports that anybody who reaches them may use. canal's is open by default, which people do not expect."""

from penstock.config.listener_settings import is_loopback
from penstock.config.server_settings import ServerSettings

_EVERY_ADDRESS = {"0.0.0.0", "::", ""}  # noqa: S104 - looked for, not bound


def describe_open_ports(settings: ServerSettings) -> list[str]:
    """Return a warning for each port that is open to other machines and asks for no password."""
    canal = settings.canal
    if canal.port is None or canal.has_password or is_loopback(canal.host):
        return []
    where = "EVERY ADDRESS OF THIS MACHINE" if canal.host in _EVERY_ADDRESS else canal.host
    warning = (
        f"CANAL'S PORT {canal.port} ON {where} IS OPEN TO EVERYBODY, WITHOUT A PASSWORD: whoever reaches it reads every"
        " change of every destination; set canal.user and canal.passwd (in YAML user and password of `canal`), or"
        " listen on 127.0.0.1 (canal.ip, in YAML canal.host)"
    )
    return [warning]
