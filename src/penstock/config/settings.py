"""The settings of a source, an instance and a server.

A secret is never in an error or a repr: it is a SecretStr, and `${env:NAME}` keeps it out of the file.
"""

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from penstock.config.yaml_file import load_yaml


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceSettings(_Settings):
    """One MySQL or MariaDB server."""

    host: str = "127.0.0.1"
    port: int = Field(default=3306, ge=1, le=65535)
    user: str = "root"
    password: SecretStr = SecretStr("")
    tls: Literal["disabled", "preferred"] = "preferred"
    connect_timeout_s: float = Field(default=10, gt=0)
    heartbeat_s: float = Field(
        default=5, gt=0, description="the source sends a sign of life when its log is silent this long"
    )
    server_id: int | None = Field(default=None, ge=1, le=2**32 - 1, description="drawn at random when not given")

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class InstanceSettings(_Settings):
    """One capture pipeline; `destination` is its name."""

    destination: str = Field(default="default", pattern=r"^[A-Za-z0-9_.-]+$")
    source: SourceSettings = SourceSettings()
    start: str | None = Field(
        default=None, description="FILE:OFFSET of a transaction boundary; the log's end when not given"
    )
    epoch: int = Field(default=0, ge=0, le=2047)
    store_bytes: int = Field(
        default=64 << 20, ge=1 << 16, description="what the memory ring holds before capture waits"
    )
    verify_checksum: bool = True


class ServerSettings(_Settings):
    """One server process with its instances."""

    host: str = Field(default="127.0.0.1", description="a loopback address: there is no authentication yet")
    port: int = Field(default=11115, ge=0, le=65535, description="Arrow Flight; 0 takes a free one")
    instances: tuple[InstanceSettings, ...] = ()

    @field_validator("host")
    @classmethod
    def _only_loopback(cls, host: str) -> str:
        try:
            is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            raise ValueError(f"{host} is no loopback address, and this server does not authenticate its clients yet")
        return host


def load_server_settings(path: Path) -> ServerSettings:
    return load_yaml(path, ServerSettings)
