"""The settings of a server."""

from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from penstock.config.destination_list import expand_destinations
from penstock.config.listener_settings import (
    AdminSettings,
    CanalAdminSettings,
    CanalSettings,
    FlightSettings,
    Login,
)
from penstock.config.section import TEXTS_SCHEMA, Section, is_mapping
from penstock.config.settings import GroupSettings, InstanceSettings
from penstock.errors import ConfigurationError

INHERITED = ("data_dir", "zookeeper")


class RunningSettings(Section):
    """How servers with one ZooKeeper share their destinations."""

    address: str | None = Field(
        default=None,
        pattern=r"^[^\s/]+:\d{1,5}$",
        description=(
            "host:port that is published in ZooKeeper for canal's clients; default: host and port of the canal listener"
        ),
    )
    flight_address: str | None = Field(
        default=None,
        pattern=r"^[^\s/]+:\d{1,5}$",
        description=(
            "host:port of Arrow Flight that is published in ZooKeeper for clients that look up the running server;"
            " default: host and port of the Flight listener, and when that listens on every address, the host of"
            " `address`, or else this machine's own address"
        ),
    )
    session_s: float = Field(
        default=6,
        gt=0,
        description=(
            "session timeout: a server that ZooKeeper has not heard from for this many seconds loses its destinations"
        ),
    )
    delay_s: float = Field(
        default=1,
        ge=0,
        description="how long the other servers wait before they run for election after a failure, in seconds",
    )
    share: bool = Field(default=True, description="rebalance destinations over all servers")


class ManagerSettings(Login):
    """canal's admin, or what answers as it does, asked over HTTP for what to run."""

    url: str = Field(description="http://host:port")
    poll_s: float = Field(default=5, gt=0, description="poll interval in seconds")
    announce: bool = Field(default=False, description="register this server with the manager")
    cluster: str = Field(default="", description="cluster of the manager to register in")
    name: str = Field(default="", description="name to register with")

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        whole = url if "://" in url else f"http://{url}"
        if not whole.startswith(("http://", "https://")) or "@" in whole:
            raise ValueError("write it as http://host:port, with user and password beside it")
        return whole.rstrip("/")

    @model_validator(mode="after")
    def _has_a_password(self) -> Self:
        if not self.has_password:
            raise ValueError("a manager wants a password: say password, or password_hash")
        return self


class ServerSettings(Section):
    """One server process with its instances."""

    flight: FlightSettings = Field(default=FlightSettings(), description="Arrow Flight")
    canal: CanalSettings = Field(default=CanalSettings(), description="canal's protocol")
    admin: AdminSettings = Field(default=AdminSettings(), description="HTTP: health, status, metrics")
    canal_admin: CanalAdminSettings = Field(default=CanalAdminSettings(), description="canal's admin protocol")
    running: RunningSettings = Field(
        default=RunningSettings(),
        description=(
            "run several servers with one ZooKeeper: one of them serves each destination, and another takes over when"
            " it fails"
        ),
    )
    data_dir: Path | None = Field(
        default=None,
        description="folder below which stores, cursors and table histories are persisted, one folder per destination",
    )
    zookeeper: str | None = Field(
        default=None,
        description="ZooKeeper servers, host:port,…; cursors are persisted there, in the nodes that canal uses",
    )
    scan_s: float = Field(
        default=5,
        ge=0,
        description="how often the conf folder is scanned for changes, in seconds; 0: only at the start",
    )
    destinations: Annotated[tuple[str, ...], TEXTS_SCHEMA] | None = Field(
        default=None,
        description="which destinations of the conf folder run, with shop{1-10} for shop1 to shop10; default: all",
    )
    manager: ManagerSettings | None = Field(
        default=None, description="HTTP manager (canal-admin) that provides the instances, instead of the conf folder"
    )
    instances: tuple[InstanceSettings, ...] = Field(default=(), description="the instances: one per captured source")
    groups: tuple[GroupSettings, ...] = Field(
        default=(),
        description="groups of sources that canal's clients read as one destination; all members run on this server",
    )

    @field_validator("destinations", mode="before")
    @classmethod
    def _expand(cls, value: object) -> object:
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list | tuple):
            return value
        return expand_destinations(str(one) for one in cast("list[object]", value))

    @field_validator("instances", mode="before")
    @classmethod
    def _hand_down(cls, value: object, info: ValidationInfo) -> object:
        """What the server says counts for instances that say nothing."""
        if not isinstance(value, list):
            return value
        return [hand_down(info.data, one) if is_mapping(one) else one for one in cast("list[object]", value)]

    @field_validator("instances")
    @classmethod
    def _named_once(cls, instances: tuple[InstanceSettings, ...]) -> tuple[InstanceSettings, ...]:
        names = [one.destination for one in instances]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"there are two instances of the destination {', '.join(twice)}")
        return instances

    @field_validator("groups", mode="before")
    @classmethod
    def _hand_down_to_members(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list):
            return value
        data_dir = {"data_dir": info.data.get("data_dir")}
        return [_with_members(data_dir, one) for one in cast("list[object]", value)]

    @model_validator(mode="after")
    def _groups_are_apart(self) -> Self:
        members = [name for group in self.groups for name in group.member_names.values()]
        names = [*(one.destination for one in (*self.instances, *self.groups)), *members]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"there are two of the destination {', '.join(twice)}")
        if self.groups and self.manager is not None:
            raise ValueError("a manager says which instances run, and knows no groups: leave one of the two out")
        for group in self.groups:
            if elected := [name for name, member in group.members.items() if member.zookeeper is not None]:
                raise ValueError(
                    f"a group runs on one server, and {', '.join(elected)} of {group.destination} would be elected on"
                    " any: leave its zookeeper out, and keep cursors in a data_dir"
                )
        return self

    @classmethod
    def of_flight(cls, *instances: InstanceSettings, port: int = 0) -> Self:
        """A server that speaks Arrow Flight alone, on a free port."""
        closed = {"port": None}
        return cls.model_validate({"flight": {"port": port}, "canal": closed, "admin": closed, "instances": instances})

    @property
    def address(self) -> str:
        """That others read in ZooKeeper. With every address as canal's host, it takes a running.address to be one."""
        return self.running.address or f"{self.canal.host}:{self.canal.port}"

    @property
    def captured(self) -> tuple[InstanceSettings, ...]:
        """Instances, and the members of groups as such."""
        members = [member for group in self.groups for member in group.named_members().values()]
        return tuple({one.destination: one for one in (*self.instances, *members)}.values())

    @property
    def own(self) -> Self:
        """Without what is said of each instance; of groups, who is in them stays."""
        blank = InstanceSettings()
        groups = [one.model_copy(update={"members": dict.fromkeys(one.members, blank)}) for one in self.groups]
        return self.model_copy(update={"instances": (), "groups": tuple(groups)})

    def instance(self, destination: str) -> InstanceSettings:
        found = next((one for one in self.captured if one.destination == destination), None)
        if found is None:
            known = ", ".join(sorted(one.destination for one in self.captured)) or "none"
            raise ConfigurationError(f"there is no instance '{destination}'; there is: {known}")
        return found


def hand_down(server: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    return {key: server[key] for key in INHERITED if server.get(key) is not None} | instance


def _with_members(handed_down: dict[str, Any], group: object) -> object:
    members = group.get("members") if is_mapping(group) else None
    if not is_mapping(group) or not is_mapping(members):
        return group
    known = {key: value for key, value in handed_down.items() if value is not None}
    return group | {"members": {name: known | one if is_mapping(one) else one for name, one in members.items()}}
