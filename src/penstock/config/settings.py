"""The settings of an instance: its source, its store, its cursors; and of a group of instances."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import ByteSize, Field, ValidationInfo, field_validator, model_validator

from penstock.config.canal_rendering import CanalRendering
from penstock.config.filter_settings import FilterSettings
from penstock.config.section import Section, is_mapping
from penstock.config.source_settings import AnySource, DirectorySettings, SourceSettings


class StoreSettings(Section):
    """The store, which holds captured events until all clients have acked them. Sizes may be written as 64MiB."""

    kind: Literal["memory", "file", "mixed"] = Field(
        default="memory",
        description=(
            "memory: lost when the process ends; file: persisted; mixed: tiered storage, in memory until a client"
            " falls behind, then the oldest events move to files"
        ),
    )
    memory: ByteSize = Field(
        default=ByteSize(64 << 20),
        ge=1 << 16,
        description=(
            "memory: size at which capture waits for clients (backpressure); mixed: from half of it on, the oldest"
            " events move to files"
        ),
    )
    slots: int | None = Field(
        default=None,
        ge=1,
        description="kind memory: entries at which the store is full and capture waits for acks, a power of two",
    )
    segment: ByteSize = Field(
        default=ByteSize(64 << 20),
        ge=1 << 16,
        description="kinds file and mixed: maximum size in bytes of one segment file of the store, such as 64MiB",
    )
    sync: Literal["batch", "interval", "none"] = Field(
        default="interval",
        description=(
            "when files are synced to the disk (fsync). batch: with every write; interval: every sync_interval_s; none:"
            " never. What is not synced survives a killed process, but not a failed machine"
        ),
    )
    sync_interval_s: float = Field(default=1, gt=0, description="seconds between two syncs, with sync: interval")
    keep: ByteSize = Field(
        default=ByteSize(0),
        description="kind file: bytes of events that are retained after all clients have acked them; 0: none",
    )
    keep_s: float = Field(
        default=0,
        ge=0,
        description="kind file: seconds for which events are retained after all clients have acked; 0: not by time",
    )
    limit: ByteSize | None = Field(
        default=None,
        ge=1 << 20,
        description=(
            "kinds file and mixed: maximum size in bytes of all segment files; beyond it the oldest are deleted, even"
            " if a client still needs them; default: no limit"
        ),
    )
    limit_s: float | None = Field(
        default=None,
        gt=0,
        description=(
            "maximum age of events in files in seconds; older files are deleted, even if a client still needs them;"
            " default: no limit"
        ),
    )
    slow_clients: Literal["backpressure", "catch_up"] = Field(
        default="backpressure",
        description="what happens when the store is full because a connected client has not acked. backpressure:"
        " capture waits for it; catch_up: if another client has acked everything, the slow one is served from the"
        " source's log until it has caught up",
    )
    absent_after_s: float = Field(
        default=5,
        ge=0,
        description="a client that has been disconnected for this many seconds is evicted from a full store while"
        " others are connected; when it returns, it is served from the source's log, from its cursor on",
    )

    @field_validator("slots")
    @classmethod
    def _check_power_of_two(cls, slots: int | None) -> int | None:
        """Raise ValueError for a number of slots that is not a power of two."""
        if slots is not None and slots & (slots - 1):
            raise ValueError(f"{slots} is no power of two")
        return slots

    @model_validator(mode="after")
    def _check_unused_keys(self) -> Self:
        """Raise ValueError for settings that only another kind of store has."""
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
    """The persistence of subscriptions and cursors: where it is, and how often it is written."""

    kind: Literal["memory", "file", "zookeeper", "mixed", "period-mixed"] | None = Field(
        default=None,
        description="where and when cursors are persisted. file: in a file, every period_s; zookeeper: in ZooKeeper,"
        " before an ack returns; mixed: in memory, and in ZooKeeper right after an ack; period-mixed: in memory, and in"
        " ZooKeeper every period_s; memory: never. Default: period-mixed with a zookeeper, file with a data_dir, else"
        " memory",
    )
    period_s: float = Field(
        default=1,
        ge=0,
        description=(
            "file, period-mixed: seconds between two writes of the cursors; after a crash, batches acked since the last"
            " write are redelivered. 0: write at every ack"
        ),
    )


class FailoverSettings(Section):
    """The conditions under which the source counts as failed, and capture switches to the standby."""

    query: str = Field(
        default="SELECT 1", description="SQL statement of the health check, which a healthy source answers"
    )
    interval_s: float = Field(default=3, gt=0, description="seconds between two health checks of the source")
    retries: int = Field(
        default=3,
        ge=1,
        description=(
            "number of consecutive failures (of the health check, or of connections to the source's log) before the"
            " standby takes over"
        ),
    )
    floor_s: float = Field(default=60, ge=0, description="minimum number of seconds between two failovers")
    window_s: float = Field(
        default=60,
        ge=0,
        description=(
            "without GTIDs, the position in the other server's log is found by time, and events of this many seconds"
            " before it are redelivered. With GTIDs: a standby that lacks captured transactions is waited for, so"
            " many seconds at most"
        ),
    )


MAX_EPOCH = 511  # that positions have room for
_DESTINATION = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$"
_MEMBER = r"[A-Za-z0-9_-]+"
PositionKind = Literal["memory", "file", "zookeeper", "cursors"]


class SnapshotSettings(Section):
    """The limits on reading tables for queries that begin with a snapshot."""

    connections: int = Field(
        default=4, ge=1, le=64, description="connections that read rows at most, of all snapshots of the instance"
    )
    rows_per_s: float | None = Field(
        default=None, gt=0, description="rows per second at most, of all snapshots of the instance; default: no limit"
    )
    max_view_age_s: float = Field(
        default=60, gt=0, description="seconds that a read view is open at most; a chunk that takes longer is split"
    )
    chunk_rows: int = Field(default=100_000, ge=1, description="rows of one chunk at most, by the server's estimate")
    chunk_bytes: ByteSize = Field(
        default=ByteSize(32 << 20), ge=1 << 10, description="size of one chunk at most, by the server's estimate"
    )


class InstanceSettings(Section):
    """One capture pipeline; `destination` is its name."""

    destination: str = Field(
        default="default", pattern=_DESTINATION, description="name of the instance, to which clients subscribe"
    )
    source: AnySource = Field(
        default=SourceSettings(), description="the database server; or, with `path`, a folder with its log files"
    )
    standby: SourceSettings | None = Field(
        default=None,
        description=(
            "server that is captured from when the source fails; settings that are not given are those of the source"
        ),
    )
    failover: FailoverSettings = Field(
        default=FailoverSettings(), description="health checks that decide when the standby takes over"
    )
    start: str | None = Field(
        default=None,
        description="Where an instance without cursors begins: `latest` (default), `earliest`, FILE:OFFSET, `gtid:…` or"
        " `time:…`, see [positions.md](positions.md).",
    )
    on_purged: Literal["stop", "latest", "repair"] = Field(
        default="stop",
        description="what to do when the source has purged log that is still needed. stop: stop with an error; latest:"
        " skip to the end of the log; repair: have a function of your program close the gap, then skip. `penstock"
        " serve` refuses repair: it needs a program that passes that function to `Instance`",
    )
    retention_warning_h: float = Field(
        default=12,
        ge=0,
        description="warn when the source will purge log that is still needed within this many hours; 0: never",
    )
    schema_from: Literal["start", "earliest"] = Field(
        default="start",
        description="where a new schema history begins. start: where capture starts; earliest: at the beginning of the"
        " source's log, whose DDL is read once, so that readers can also read ranges before the start. Logs with"
        " binlog_row_metadata=FULL name their columns themselves and need neither",
    )
    epoch: int = Field(
        default=0,
        ge=0,
        le=MAX_EPOCH,
        description=(
            "lowest epoch (number of the log) of positions. It rises by itself when the source's log is reset or"
            " replaced; set it only when the persisted epoch was lost"
        ),
    )
    filter: FilterSettings = Field(
        default=FilterSettings(), description="which tables, columns and kinds of events are captured"
    )
    canal: CanalRendering = Field(default=CanalRendering(), description="how events are rendered for canal's clients")
    store: StoreSettings = Field(
        default=StoreSettings(), description="where captured events are stored until all clients have acked them"
    )
    snapshot: SnapshotSettings = Field(
        default=SnapshotSettings(), description="how tables are read for queries that begin with a snapshot"
    )
    meta: MetaSettings = Field(default=MetaSettings(), description="where subscriptions and cursors are persisted")
    positions: tuple[PositionKind, ...] = Field(
        default=("cursors",),
        min_length=1,
        description=(
            "where capture resumes after a restart. cursors: at the lowest cursor of all clients; file, zookeeper: at"
            " the position that capture has saved there; memory: as these, but only until the process ends. Of several,"
            " the first that has a position is used"
        ),
    )
    data_dir: Path | None = Field(
        default=None, description="folder for files of this instance; default: the server's data_dir"
    )
    zookeeper: str | None = Field(default=None, description="ZooKeeper servers, host:port,…; default: the server's")
    verify_checksum: bool = Field(
        default=True, description="verify the checksum of each event, if the log has checksums"
    )

    @field_validator("standby", mode="before")
    @classmethod
    def _inherit_from_source(cls, value: object, info: ValidationInfo) -> object:
        """Give the standby the source's settings where it has none of its own."""
        source = info.data.get("source")
        if not is_mapping(value) or not isinstance(source, SourceSettings):
            return value
        inherited = {name: getattr(source, name) for name in source.model_fields_set - {"host", "port", "server_id"}}
        return inherited | value

    @model_validator(mode="after")
    def _check_requirements(self) -> Self:
        """Raise ValueError for settings that need a data_dir or ZooKeeper without one, and for contradictions."""
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
        """Return the source, and the standby if there is one."""
        return (self.source,) if self.standby is None else (self.source, self.standby)

    @property
    def meta_kind(self) -> Literal["memory", "file", "zookeeper", "mixed", "period-mixed"]:
        """Return where cursors are persisted, also where the settings leave it open."""
        if self.meta.kind is not None:
            return self.meta.kind
        return "period-mixed" if self.zookeeper else "file" if self.data_dir else "memory"


class GroupSettings(Section):
    """Several sources that canal's clients read as one destination; each member is an instance,
    `DESTINATION.MEMBER`."""

    destination: str = Field(
        pattern=_DESTINATION,
        description="name of the group of sources; canal's clients subscribe to it as to any destination",
    )
    members: dict[str, InstanceSettings] = Field(
        min_length=1,
        description="the sources of the group: an instance for each, by a short name; it runs as DESTINATION.NAME",
    )
    hold_s: float = Field(
        default=1,
        ge=0,
        description=(
            "seconds for which a transaction of one source is held back while another source of the group may still"
            " deliver an earlier one"
        ),
    )
    canal: CanalRendering = Field(
        default=CanalRendering(), description="how the group's events are rendered for canal's clients"
    )

    @model_validator(mode="after")
    def _check_members(self) -> Self:
        """Raise ValueError for a member name or setting that is not allowed."""
        for name, member in self.members.items():
            if not re.fullmatch(_MEMBER, name):
                raise ValueError(f"{name!r} is no name for a member: letters, digits, - and _ are")
            if "canal" in member.model_fields_set:
                raise ValueError(f"member {name} says how it looks to canal's clients, who see the group: say it there")
        return self

    @property
    def member_names(self) -> dict[str, str]:
        """Return the destination that each member runs under."""
        return {name: f"{self.destination}.{name}" for name in self.members}

    def named_members(self) -> dict[str, InstanceSettings]:
        """Return the settings of each member with the destination that it runs under."""
        names = self.member_names
        return {name: member.model_copy(update={"destination": names[name]}) for name, member in self.members.items()}
