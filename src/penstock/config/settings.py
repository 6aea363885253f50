"""The settings of an instance: its source, its store, where its cursors are."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import ByteSize, Field, ValidationInfo, field_validator, model_validator

from penstock.config.canal_settings import CanalRendering
from penstock.config.filter_settings import FilterSettings
from penstock.config.section import Section, is_mapping
from penstock.config.source_settings import AnySource, DirectorySettings, SourceSettings


class StoreSettings(Section):
    """Where captured events wait for clients. Sizes may be written as 64MiB."""

    kind: Literal["memory", "file", "mixed"] = Field(
        default="memory",
        description="memory is gone with the process; file outlives it; mixed is memory until a client falls behind",
    )
    memory: ByteSize = Field(
        default=ByteSize(64 << 20),
        ge=1 << 16,
        description="memory: what it holds before capture waits; mixed: from half of it on, the oldest moves to files",
    )
    slots: int | None = Field(
        default=None, ge=1, description="memory: how many entries it holds before capture waits, a power of two"
    )
    segment: ByteSize = Field(default=ByteSize(64 << 20), ge=1 << 16, description="of a file before the next is begun")
    sync: Literal["batch", "interval", "none"] = Field(
        default="interval", description="when files are brought to the disk; a kill of the process costs nothing"
    )
    sync_interval_s: float = Field(default=1, gt=0, description="interval: between two times")
    keep: ByteSize = Field(default=ByteSize(0), description="file: so much of what all clients have acked stays")
    keep_s: float = Field(default=0, ge=0, description="file: and stays for so long")
    limit: ByteSize | None = Field(
        default=None, ge=1 << 20, description="beyond it the oldest files go, and clients that need them are lost"
    )
    limit_s: float | None = Field(default=None, gt=0, description="the same for what is older")
    slow_clients: Literal["backpressure", "catch_up"] = Field(
        default="backpressure",
        description="when the store is full, and a connected client has not acked: backpressure makes capture wait for"
        " it; catch_up evicts it from the store while another client has acked everything, and serves it from the"
        " source's log",
    )
    absent_after_s: float = Field(
        default=5,
        ge=0,
        description="a client that has not been connected for so long is evicted from a full store while others are"
        " connected; when it returns it is served from the source's log, after its cursor",
    )

    @field_validator("slots")
    @classmethod
    def _power_of_two(cls, slots: int | None) -> int | None:
        if slots is not None and slots & (slots - 1):
            raise ValueError(f"{slots} is no power of two")
        return slots

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """What another kind would take, and this one does not, is a mistake."""
        given = self.model_fields_set
        unused = {
            "memory": {"segment", "sync", "sync_interval_s", "keep", "keep_s", "limit", "limit_s"},
            "file": {"memory", "slots"},
            "mixed": {"slots", "keep", "keep_s"},
        }[self.kind]
        if wrong := sorted(given & unused):
            raise ValueError(f"a store of kind {self.kind} has no {', '.join(wrong)}")
        return self


class MetaSettings(Section):
    """Where subscriptions and cursors are kept."""

    kind: Literal["memory", "file", "zookeeper", "mixed", "period-mixed"] | None = Field(
        default=None,
        description="zookeeper keeps an ack before it counts, mixed at once after, period-mixed and file every period;"
        " by default period-mixed with a zookeeper, file with a data_dir, else memory",
    )
    period_s: float = Field(
        default=1, ge=0, description="file, period-mixed: how much a crash can make clients get again; 0: nothing"
    )


class FailoverSettings(Section):
    """When the source is taken for dead, and the standby is followed instead."""

    query: str = Field(default="SELECT 1", description="that a live source answers")
    interval_s: float = Field(default=3, gt=0, description="between two queries")
    retries: int = Field(default=3, ge=1, description="so many queries, or connections to the log, fail before")
    floor_s: float = Field(default=60, ge=0, description="from one switch to the next")
    window_s: float = Field(
        default=60, ge=0, description="without GTIDs the place is found by time, and this much comes again"
    )


MOST_EPOCHS = 511  # that positions have room for
_DESTINATION = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$"
_MEMBER = r"[A-Za-z0-9_-]+"
PositionKind = Literal["memory", "file", "zookeeper", "cursors"]


class InstanceSettings(Section):
    """One capture pipeline; `destination` is its name."""

    destination: str = Field(default="default", pattern=_DESTINATION, description="its name")
    source: AnySource = Field(
        default=SourceSettings(), description="a server; or with `path` a folder with the files of its log"
    )
    standby: SourceSettings | None = Field(
        default=None, description="followed when the source is dead; what it does not say is as at the source"
    )
    failover: FailoverSettings = Field(default=FailoverSettings(), description="when the standby takes over")
    start: str | None = Field(
        default=None,
        description="where an instance without cursors begins: FILE:OFFSET, a GTID or a set of them, a time in UTC,"
        " `first`; at the log's end when not given",
    )
    on_purged: Literal["stop", "latest", "repair"] = Field(
        default="stop",
        description="when the source no longer has what comes next: stop; go on with the log's end; or have the data"
        " compared, and go on",
    )
    retention_warning_h: float = Field(
        default=12, ge=0, description="warn when the source keeps what is still needed for less than this; 0: never"
    )
    epoch: int = Field(
        default=0, ge=0, le=MOST_EPOCHS, description="the least: it rises by itself when the log is another one"
    )
    filter: FilterSettings = Field(default=FilterSettings(), description="what is captured")
    canal: CanalRendering = Field(default=CanalRendering(), description="how it looks to canal's clients")
    store: StoreSettings = Field(default=StoreSettings(), description="where events wait for clients")
    meta: MetaSettings = Field(default=MetaSettings(), description="where cursors are kept")
    positions: tuple[PositionKind, ...] = Field(
        default=("cursors",),
        min_length=1,
        description="from where capture goes on: the lowest cursor, or a place of its own; more stand in for the first",
    )
    data_dir: Path | None = Field(default=None, description="for files; by default the server's")
    zookeeper: str | None = Field(default=None, description="host:port,…; by default the server's")
    verify_checksum: bool = Field(default=True, description="of each event, where the log has them")

    @field_validator("standby", mode="before")
    @classmethod
    def _as_the_source(cls, value: object, info: ValidationInfo) -> object:
        source = info.data.get("source")
        if not is_mapping(value) or not isinstance(source, SourceSettings):
            return value
        alike = {name: getattr(source, name) for name in source.model_fields_set - {"host", "port", "server_id"}}
        return alike | value

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.data_dir is None and (self.store.kind != "memory" or "file" in (self.meta_kind, *self.positions)):
            raise ValueError(f"instance {self.destination} keeps files: say where with data_dir")
        if self.zookeeper is None and {self.meta_kind, *self.positions} & {"zookeeper", "mixed", "period-mixed"}:
            raise ValueError(f"instance {self.destination} needs ZooKeeper: say where with zookeeper")
        if self.source.semi_sync and "sync" in self.store.model_fields_set and self.store.sync != "batch":
            raise ValueError(
                f"instance {self.destination} acknowledges what is on the disk (semi_sync), and its store syncs by"
                f" {self.store.sync}: leave sync out, or say batch"
            )
        if self.standby is not None and isinstance(self.source, DirectorySettings):
            raise ValueError(
                f"instance {self.destination} reads the files in {self.source.path}, and a folder has no standby: an"
                " instance of its own can capture from that server"
            )
        if self.standby is not None and self.standby.address == self.source.address:
            raise ValueError(f"instance {self.destination} has its own source, {self.source.address}, as a standby")
        return self

    @property
    def sources(self) -> tuple[SourceSettings | DirectorySettings, ...]:
        return (self.source,) if self.standby is None else (self.source, self.standby)

    @property
    def meta_kind(self) -> Literal["memory", "file", "zookeeper", "mixed", "period-mixed"]:
        if self.meta.kind is not None:
            return self.meta.kind
        return "period-mixed" if self.zookeeper else "file" if self.data_dir else "memory"


class GroupSettings(Section):
    """Several sources as one; a member is an instance, `DESTINATION.MEMBER`."""

    destination: str = Field(pattern=_DESTINATION, description="its name")
    members: dict[str, InstanceSettings] = Field(min_length=1, description="by their names")
    hold_s: float = Field(
        default=1, ge=0, description="so long a transaction waits for a silent member, which may have an earlier one"
    )
    canal: CanalRendering = Field(default=CanalRendering(), description="how all of it looks to canal's clients")

    @model_validator(mode="after")
    def _name_members(self) -> Self:
        for name, member in self.members.items():
            if not re.fullmatch(_MEMBER, name):
                raise ValueError(f"{name!r} is no name for a member: letters, digits, - and _ are")
            if "canal" in member.model_fields_set:
                raise ValueError(f"member {name} says how it looks to canal's clients, who see the group: say it there")
        return self

    @property
    def member_names(self) -> dict[str, str]:
        """The destination of each."""
        return {name: f"{self.destination}.{name}" for name in self.members}

    def named_members(self) -> dict[str, InstanceSettings]:
        """As they are to run."""
        names = self.member_names
        return {name: one.model_copy(update={"destination": names[name]}) for name, one in self.members.items()}
