"""Where a client finds its server, and what it proves itself with.

| written                                  | meaning                                                             |
|------------------------------------------|---------------------------------------------------------------------|
| `cdc1:11115`, `grpc://cdc1:11115`        | one server                                                          |
| `grpc+tls://cdc1:11115`                  | one server, with TLS                                                |
| `cdc1:11115,cdc2:11115`                  | several servers: the one that runs the destination                  |
| `grpc+tls://cdc1:11115,cdc2:11115`       | several servers, all with TLS                                       |
| `zookeeper://zk1:2181,zk2:2181`          | the server that ZooKeeper names as the one that runs the destination|
| `zookeeper://zk1:2181,zk2:2181/prod`     | the same, where the servers have `zookeeper: zk1:2181,zk2:2181/prod`|
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.flight as fl

from penstock.errors import ConfigurationError

_TLS = "grpc+tls"
_SCHEMES = {"": "", "grpc": "grpc", "grpc+tcp": "grpc", "grpc+tls": _TLS, "grpcs": _TLS}
_ZOOKEEPER = "zookeeper://"
_ROOT = "/otter/canal"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\s,/\[\]:@]+)"
_SERVER = re.compile(rf"(?P<host>{_HOST}|[0-9A-Fa-f:.]+):(?P<port>\d{{1,5}})")
_ENSEMBLE = re.compile(rf"{_HOST}(:\d{{1,5}})?(,{_HOST}(:\d{{1,5}})?)*")
# A server that comes back is found within a second, and one whose machine is gone is given up after five.
_CHANNEL = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),
]


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server, a list of servers, or the ZooKeeper that knows the running one; the token is kept out of its repr.

    ServerAddress("cdc1:11115,cdc2:11115", token)
    ServerAddress("zookeeper://zk1:2181,zk2:2181", token)
    """

    server: str
    token: str = field(default="", repr=False)
    tls_ca: str = ""  # a file with the certificates to trust; those of the system when it is not given

    @classmethod
    def from_zookeeper(cls, hosts: str, token: str = "", tls_ca: str = "") -> "ServerAddress":
        """Return the address of whatever server runs the destination; `hosts` as in the setting `zookeeper`."""
        return cls(hosts if hosts.startswith(_ZOOKEEPER) else f"{_ZOOKEEPER}{hosts}", token, tls_ca)

    @property
    def zookeeper(self) -> str:
        """Return the ZooKeeper servers, with a chroot if there is one; empty for servers that are named themselves."""
        text = self.server.strip()
        if not text.startswith(_ZOOKEEPER):
            return ""
        hosts, slash, chroot = text.removeprefix(_ZOOKEEPER).rstrip("/").partition("/")
        if not _ENSEMBLE.fullmatch(hosts) or "//" in f"/{chroot}" or re.search(r"\s", chroot):
            raise ConfigurationError(
                f"not a ZooKeeper address: {self.server!r}; write it as zookeeper://HOST:PORT,HOST:PORT, with /CHROOT"
                " after it where the servers have one"
            )
        if f"/{chroot}".endswith(_ROOT):
            raise ConfigurationError(
                f"{self.server!r}: leave {_ROOT} out, which is where canal has its nodes in every ZooKeeper; what may"
                " be written there is a chroot, the same as in the setting `zookeeper` of the servers"
            )
        return f"{hosts}{slash}{chroot}"

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the URL of each server that is named, in their order; a scheme counts for those after it, too."""
        urls: list[str] = []
        scheme = _TLS if self.tls_ca else "grpc"
        for text in (part.strip() for part in self.server.split(",")):
            given, separator, rest = text.rpartition("://")
            authority = _SERVER.fullmatch(rest.rstrip("/"))
            if given.lower() not in _SCHEMES or bool(given) != bool(separator) or authority is None:
                raise ConfigurationError(
                    f"not a server address: {self.server!r}; write it as HOST:PORT, for example 127.0.0.1:11115, or"
                    " with grpc+tls:// before it; several servers as HOST:PORT,HOST:PORT, and a ZooKeeper as"
                    " zookeeper://HOST:PORT"
                )
            scheme = _SCHEMES[given.lower()] or scheme
            is_bare_ipv6 = ":" in authority["host"] and not authority["host"].startswith("[")
            host = f"[{authority['host']}]" if is_bare_ipv6 else authority["host"]
            urls.append(f"{scheme}://{host}:{authority['port']}")
        return tuple(dict.fromkeys(urls))

    def check_published(self, url: str) -> str:
        """Return a URL that ZooKeeper names, after checking that a token which is to go over TLS would do so."""
        scheme, _, authority = url.partition("://")
        if scheme not in {"grpc", _TLS} or not _SERVER.fullmatch(authority):
            raise ConfigurationError(f"what ZooKeeper has at {self.zookeeper} is not the URL of a server: {url!r}")
        if self.tls_ca and scheme != _TLS:
            raise ConfigurationError(
                f"{authority}, which ZooKeeper at {self.zookeeper} names, does not speak TLS: leave tls_ca out, or give"
                " the server flight.tls_cert and flight.tls_key"
            )
        return url

    def open_client(self, url: str) -> fl.FlightClient:
        """Return a client of one server, which connects with its first call."""
        options: dict[str, Any] = {"generic_options": _CHANNEL}
        if url.startswith(_TLS) and self.tls_ca:
            try:
                options["tls_root_certs"] = Path(self.tls_ca).read_bytes()
            except OSError as error:
                raise ConfigurationError(f"cannot read {self.tls_ca} ({error.strerror}): see tls_ca") from None
        return fl.FlightClient(url, **options)

    def call_options(self, timeout_s: float | None = None) -> fl.FlightCallOptions:
        """Return the options of a call: its headers with the token, if there is one, and how long it may take."""
        headers = [(b"authorization", f"Bearer {self.token}".encode())] if self.token else []
        return fl.FlightCallOptions(timeout=timeout_s, headers=headers)
