"""The settings of a source: a database server, or a folder with its binlog files.

A secret is never in an error or a repr: it is a SecretStr, and `${env:NAME}` keeps it out of the file.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, SecretStr, Tag, model_validator

from penstock.config.section import Section, is_mapping


class SourceSettings(Section):
    """One MySQL or MariaDB server.

    settings = SourceSettings(host="db1", user="penstock", password=SecretStr("…"))
    """

    host: str = Field(default="127.0.0.1", description="host name or address of the database server")
    port: int = Field(default=3306, ge=1, le=65535, description="port of the database server")
    user: str = Field(default="root", description="database user with REPLICATION SLAVE, REPLICATION CLIENT and SELECT")
    password: SecretStr = Field(default=SecretStr(""), description="password of the database user")
    tls: Literal["disabled", "preferred", "required", "verify-ca", "verify-identity"] = Field(
        default="preferred",
        description="TLS to the database server. disabled: never; preferred: if the server supports it; required:"
        " always; verify-ca: always, and the certificate must be signed by tls_ca or a CA of the system;"
        " verify-identity: as verify-ca, and the certificate must be issued for this host",
    )
    tls_ca: Path | None = Field(
        default=None,
        description="CA certificates that the certificate of the database server is checked against, a PEM file;"
        " default: those of the system",
    )
    tls_cert: Path | None = Field(
        default=None,
        description="client certificate that Penstock shows to the database server, a PEM file, if the server"
        " requires one",
    )
    tls_key: Path | None = Field(
        default=None, description="private key of the client certificate, if it is in a separate file"
    )
    connect_timeout_s: float = Field(
        default=10, gt=0, description="timeout for connecting to the database server, in seconds"
    )
    heartbeat_s: float = Field(
        default=5,
        gt=0,
        description="the source sends a heartbeat when its binlog has had no event for this many seconds",
    )
    server_id: int | None = Field(
        default=None,
        ge=1,
        le=2**32 - 1,
        description="replica server id of this instance, unique among all replicas of the source; default: random",
    )
    annotations: bool = Field(
        default=False,
        description="request from MariaDB the SQL statements that produced the rows (binlog_annotate_row_events);"
        " MySQL sends them without a request (binlog_rows_query_log_events). They are delivered if filter.kinds has"
        " query",
    )
    semi_sync: bool = Field(
        default=False,
        description=(
            "take part in semi-synchronous replication as a replica: commits at the source wait until their events are"
            " in the store"
        ),
    )

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        """Raise ValueError for TLS settings that contradict each other."""
        if self.tls_ca is not None and not self.tls.startswith("verify"):
            raise ValueError(f"tls_ca vouches for nothing with tls: {self.tls}; set verify-ca or verify-identity")
        if self.tls_key is not None and self.tls_cert is None:
            raise ValueError("tls_key needs tls_cert")
        if self.tls_cert is not None and self.tls in {"disabled", "preferred"}:
            raise ValueError(
                f"tls_cert may not be asked for with tls: {self.tls}; set required, verify-ca or verify-identity"
            )
        return self

    @property
    def address(self) -> str:
        """Return host:port of the source."""
        return f"{self.host}:{self.port}"

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return host and port, as they are persisted with cursors."""
        return self.host, self.port


class DirectorySettings(Section):
    """A folder with the binlog files of a server, captured like a server.

    settings = DirectorySettings(path="/var/lib/mysql", base="binlog")
    """

    path: str = Field(
        min_length=1,
        description="folder with the binlog files; a URL such as s3://bucket/logs needs the extra 'fsspec'",
    )
    base: str | None = Field(
        default=None,
        description="base name of the binlog files, without their number; needed if the folder has the binlogs of"
        " several servers",
    )
    poll_s: float = Field(default=1, gt=0, description="seconds between two checks of the folder for new data")
    missing_file_timeout_s: float = Field(
        default=30,
        ge=0,
        description="seconds to wait for a binlog file that is missing between two others before capture fails",
    )
    trust_ends: bool = Field(
        default=False,
        description="treat a binlog file without an end marker, as a killed server leaves it, as complete",
    )

    @property
    def address(self) -> str:
        """Return the path of the folder, which errors and log lines show in place of host:port."""
        return self.path

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the path and 0, as they are persisted with cursors."""
        return self.path, 0

    @property
    def server_id(self) -> None:
        """Return None: a folder has no replicas."""

    @property
    def annotations(self) -> bool:
        """Return true: files have the statements behind rows, if the server wrote them."""
        return True

    @property
    def semi_sync(self) -> bool:
        """Return false: no commits wait for a folder."""
        return False


def _choose_source_kind(value: object) -> str:
    """Return which kind of source settings a value is: a server, or a folder if it has a path."""
    is_folder = "path" in value if is_mapping(value) else isinstance(value, DirectorySettings)
    return "(folder)" if is_folder else "(server)"


AnySource = Annotated[
    Annotated[SourceSettings, Tag("(server)")] | Annotated[DirectorySettings, Tag("(folder)")],
    Discriminator(_choose_source_kind),
]
