"""The settings of a server, of its cluster, and of canal-admin, which may provide its instances."""

from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

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
    """The election among servers with one ZooKeeper: it decides which of them runs each destination.

    settings = RunningSettings(address="cdc1:11111", session_s=6)
    """

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
        description="seconds that the other servers wait, after the running server has failed, before they try to"
        " take over its destinations",
    )
    share: bool = Field(
        default=True,
        description="balance the load: move destinations between the servers until all run about the same number",
    )


class ManagerSettings(Login):
    """canal-admin, or a server with the same HTTP interface, from which this server reads which instances to run;
    canal's properties call it the manager."""

    url: str = Field(description="URL of canal-admin, http://host:port")
    user: str = Field(default="", description="user name that Penstock sends to canal-admin")
    password: SecretStr | None = Field(
        default=None, min_length=1, description="password that Penstock sends to canal-admin"
    )
    poll_s: float = Field(
        default=5, gt=0, description="seconds between two requests to canal-admin for changed settings"
    )
    announce: bool = Field(default=False, description="true: this Penstock server registers itself at canal-admin")
    cluster: str = Field(default="", description="with announce: cluster of canal-admin in which this server registers")
    name: str = Field(
        default="",
        description="with announce: name of this server in canal-admin's list of servers",
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        """Return the URL in full. Raises ValueError for anything but HTTP, and for a password in it."""
        whole = url if "://" in url else f"http://{url}"
        if not whole.startswith(("http://", "https://")) or "@" in whole:
            raise ValueError("write it as http://host:port, with user and password beside it")
        return whole.rstrip("/")

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        """Raise ValueError for a login at canal-admin without a password."""
        if not self.has_password:
            raise ValueError("canal-admin needs a password: set password, or password_hash")
        return self


class ServerSettings(Section):
    """One server process with its instances. A destination is the name of an instance, as in canal; it is not a sink.

    settings = ServerSettings(flight=FlightSettings(port=0), instances=(InstanceSettings(),))
    Server(settings).start()
    """

    flight: FlightSettings = Field(
        default=FlightSettings(), description="port of Arrow Flight, for Spark, Python and other Arrow clients"
    )
    canal: CanalSettings = Field(
        default=CanalSettings(), description="port of canal's protocol, for canal clients in any language"
    )
    admin: AdminSettings = Field(
        default=AdminSettings(), description="HTTP port for health checks, status and Prometheus metrics"
    )
    canal_admin: CanalAdminSettings = Field(
        default=CanalAdminSettings(),
        description="port of canal's admin protocol, by which canal-admin asks, starts and stops destinations",
    )
    running: RunningSettings = Field(
        default=RunningSettings(),
        description=(
            "run several servers with one ZooKeeper: one of them serves each destination, and another takes over when"
            " it fails"
        ),
    )
    data_dir: Path | None = Field(
        default=None,
        description="folder below which stores, cursors and schema histories are persisted, one folder per destination",
    )
    zookeeper: str | None = Field(
        default=None,
        description="ZooKeeper servers, host:port,…; cursors are persisted there, in the nodes that canal uses",
    )
    scan_s: float = Field(
        default=5,
        ge=0,
        description="seconds between two scans of the conf folder for changes; 0: read it only when the server starts",
    )
    destinations: Annotated[tuple[str, ...], TEXTS_SCHEMA] | None = Field(
        default=None,
        description="destinations of the conf folder to run, as names or shop{1-10} for shop1 to shop10; default: all",
    )
    manager: ManagerSettings | None = Field(
        default=None, description="canal-admin, which provides the instances over HTTP instead of the conf folder"
    )
    instances: tuple[InstanceSettings, ...] = Field(
        default=(), description="the instances (capture pipelines), one for each captured source"
    )
    groups: tuple[GroupSettings, ...] = Field(
        default=(),
        description="groups of sources that canal's clients read as one destination; all members run on this server",
    )

    @field_validator("destinations", mode="before")
    @classmethod
    def _expand_destinations(cls, value: object) -> object:
        """Expand `shop{1-10}` in the list of destinations."""
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list | tuple):
            return value
        return expand_destinations(str(name) for name in cast("list[object]", value))

    @field_validator("instances", mode="before")
    @classmethod
    def _inherit(cls, value: object, info: ValidationInfo) -> object:
        """Give instances the server's `data_dir` and `zookeeper` where they have none."""
        if not isinstance(value, list):
            return value
        return [inherit_settings(info.data, raw) if is_mapping(raw) else raw for raw in cast("list[object]", value)]

    @field_validator("instances")
    @classmethod
    def _check_names_unique(cls, instances: tuple[InstanceSettings, ...]) -> tuple[InstanceSettings, ...]:
        """Raise ValueError for two instances of one destination."""
        names = [instance.destination for instance in instances]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"there are two instances of the destination {', '.join(twice)}")
        return instances

    @field_validator("groups", mode="before")
    @classmethod
    def _inherit_in_groups(cls, value: object, info: ValidationInfo) -> object:
        """Give members of groups the server's `data_dir` where they have none."""
        if not isinstance(value, list):
            return value
        data_dir = {"data_dir": info.data.get("data_dir")}
        return [_inherit_to_members(data_dir, group) for group in cast("list[object]", value)]

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        """Raise ValueError for groups that share a name with others, are configured together with canal-admin, or have
        members with ZooKeeper."""
        members = [name for group in self.groups for name in group.member_names.values()]
        names = [*(section.destination for section in (*self.instances, *self.groups)), *members]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"there are two of the destination {', '.join(twice)}")
        if self.groups and self.manager is not None:
            raise ValueError(
                "canal-admin (`manager`) says which instances run, and knows no groups: leave out `manager` or `groups`"
            )
        for group in self.groups:
            if elected := [name for name, member in group.members.items() if member.zookeeper is not None]:
                raise ValueError(
                    f"a group runs on one server, and {', '.join(elected)} of {group.destination} would be elected on"
                    " any: leave its zookeeper out, and keep cursors in a data_dir"
                )
        return self

    @classmethod
    def with_flight_only(cls, *instances: InstanceSettings, port: int = 0) -> Self:
        """Return the settings of a server with these instances whose only port is Arrow Flight, by default on a free
        port."""
        closed = {"port": None}
        return cls.model_validate({"flight": {"port": port}, "canal": closed, "admin": closed, "instances": instances})

    @property
    def address(self) -> str:
        """Return the address that is published in ZooKeeper for canal's clients. If canal listens on every address,
        `running.address` should be set."""
        return self.running.address or f"{self.canal.host}:{self.canal.port}"

    @property
    def all_instances(self) -> tuple[InstanceSettings, ...]:
        """Return all instances, with the members of groups under their full names."""
        members = [member for group in self.groups for member in group.named_members().values()]
        return tuple({instance.destination: instance for instance in (*self.instances, *members)}.values())

    @property
    def without_instances(self) -> Self:
        """Return the settings without the instances, and with only the names of group members: what cannot change while
        the server runs."""
        blank = InstanceSettings()
        groups = [group.model_copy(update={"members": dict.fromkeys(group.members, blank)}) for group in self.groups]
        return self.model_copy(update={"instances": (), "groups": tuple(groups)})

    def instance(self, destination: str) -> InstanceSettings:
        """Return the settings of one destination. Raises ConfigurationError when there is none."""
        instance = next((it for it in self.all_instances if it.destination == destination), None)
        if instance is None:
            known = ", ".join(sorted(instance.destination for instance in self.all_instances)) or "none"
            raise ConfigurationError(f"there is no instance '{destination}'; there is: {known}")
        return instance


def inherit_settings(server: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    """Return an instance's raw settings with what it inherits from the server."""
    return {key: server[key] for key in INHERITED if server.get(key) is not None} | instance


def _inherit_to_members(inherited: dict[str, Any], group: object) -> object:
    """Return a group's raw settings with what its members inherit from the server."""
    members = group.get("members") if is_mapping(group) else None
    if not is_mapping(group) or not is_mapping(members):
        return group
    given = {key: value for key, value in inherited.items() if value is not None}
    return group | {
        "members": {name: given | member if is_mapping(member) else member for name, member in members.items()}
    }
