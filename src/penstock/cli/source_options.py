"""The options that name a source, shared by the commands that connect to one."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from penstock.config import SourceSettings

Host = Annotated[str, typer.Option(help="Host of the MySQL or MariaDB server.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Its port.")]
User = Annotated[str, typer.Option(help="A user with REPLICATION SLAVE, REPLICATION CLIENT and SELECT.")]
Password = Annotated[
    str, typer.Option(envvar="PENSTOCK_PASSWORD", show_envvar=True, help="Better given in the environment.")
]


def build_source_settings(host: str, port: int, user: str, password: str) -> "SourceSettings":
    """Return the settings of the source that the options name."""
    from penstock.config import SourceSettings  # noqa: PLC0415 - files need no settings

    return SourceSettings.model_validate({"host": host, "port": port, "user": user, "password": password})
