"""The options that name a source, shared by the commands that connect to one."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.config import SourceSettings

Host = Annotated[str, typer.Option(help="Host of the MySQL or MariaDB server.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the MySQL or MariaDB server.")]
User = Annotated[str, typer.Option(help="Database user with REPLICATION SLAVE, REPLICATION CLIENT and SELECT.")]
Password = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_PASSWORD",
        show_envvar=True,
        help="Password of the database user; better set in the environment.",
    ),
]


def parse_address(text: str, option: str) -> tuple[str, int]:
    """Return host and port of an option's value, HOST:PORT; ConfigurationError for anything else."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ConfigurationError(f"{option} must be HOST:PORT, such as 127.0.0.1:3306, not '{text}'")
    return host.strip("[]"), int(port)


def build_source_settings(host: str, port: int, user: str, password: str) -> "SourceSettings":
    """Return the settings of the source that the options name."""
    from penstock.config import SourceSettings  # noqa: PLC0415 - files need no settings

    return SourceSettings.model_validate({"host": host, "port": port, "user": user, "password": password})
