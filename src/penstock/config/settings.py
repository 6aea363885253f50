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
    """The store, which holds captured events until all clients have acked them. Sizes may be written as 64MiB.

    settings = StoreSettings.model_validate({"kind": "file", "memory": "256MiB"})
    """

    kind: Literal["memory", "file", "mixed"] = Field(
        default="memory",
        description=(
            "where captured events are held. memory: lost when the process ends; file: persisted; mixed: tiered"
            " storage, in memory until a client falls behind, then the oldest events move to files"
        ),
    )
    memory: ByteSize = Field(
        default=ByteSize(64 << 20),
        ge=1 << 16,
        description=(
            "kind memory: size in memory at which capture waits for clients (backpressure); kind mixed: the oldest"
            " events move to files from half of this size on"
        ),
    )
    slots: int | None = Field(
        default=None,
        ge=1,
        description="kind memory: number of entries at which the store is full and capture waits; a power of two",
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
        description=(
            "kind file: bytes of the newest events that are retained even if all clients have acked them; 0: acked"
            " events are deleted, unless `keep_s` retains them"
        ),
    )
    keep_s: float = Field(
        default=0,
        ge=0,
        description=(
            "kind file: seconds for which events are retained after they were stored, even if all clients have acked"
            " them; 0: acked events are deleted whatever their age, unless `keep` retains them"
        ),
    )
    limit: ByteSize | None = Field(
        default=None,
        ge=1 << 20,
        description=(
            "kinds file and mixed: retention by size: maximum size in bytes of all segment files; beyond it the oldest"
            " are deleted, even if a client still needs them; default: no limit"
        ),
    )
    limit_s: float | None = Field(
        default=None,
        gt=0,
        description=(
            "kinds file and mixed: retention by age: segment files whose events are older than this many seconds are"
            " deleted, even if a client still needs them; default: no limit"
        ),
    )
    slow_clients: Literal["backpressure", "catch_up"] = Field(
        default="backpressure",
        description="what happens when the store is full because a connected client has not acked. backpressure:"
        " capture waits for it; catch_up: if another client has acked everything, the slow one is served from the"
        " source's binlog until it has caught up",
    )
    absent_after_s: float = Field(
        default=5,
        ge=0,
        description="a client that has been disconnected for this many seconds is evicted from a full store while"
        " others are connected; when it returns, it is served from the source's binlog, from its cursor on",
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
    """The persistence of subscriptions and cursors: where it is, and how often it is written.

    settings = MetaSettings(kind="file", period_s=0.5)
    """

    kind: Literal["memory", "file", "zookeeper", "mixed", "period-mixed"] | None = Field(
        default=None,
        description="where and when cursors (what each client has acked) are persisted. file: in a file, every"
        " period_s; zookeeper: in ZooKeeper, before an ack returns; mixed: in memory, and in ZooKeeper right after an"
        " ack; period-mixed: in memory, and in ZooKeeper every period_s; memory: never. Default: period-mixed with a"
        " zookeeper, file with a data_dir, else memory",
    )
    period_s: float = Field(
        default=1,
        ge=0,
        description=(
            "kinds file and period-mixed: seconds between two writes of changed cursors; after a crash, batches that"
            " were acked since the last write are redelivered. 0: cursors are written right after every ack"
        ),
    )


class FailoverSettings(Section):
    """The conditions under which the source counts as failed, and capture switches to the standby.

    settings = FailoverSettings(interval_s=1, retries=5)
    """

    query: str = Field(
        default="SELECT 1",
        description="SQL statement that the health check runs; the check fails if the source does not answer it",
    )
    interval_s: float = Field(default=3, gt=0, description="seconds between two health checks of the source")
    retries: int = Field(
        default=3,
        ge=1,
        description=(
            "number of consecutive failures (of the health check, or of connections that read the binlog) before"
            " capture switches to the standby"
        ),
    )
    floor_s: float = Field(default=60, ge=0, description="minimum number of seconds between two failovers")
    window_s: float = Field(
        default=60,
        ge=0,
        description=(
            "without GTIDs, the position in the other server's binlog is found by time, and events of this many"
            " seconds before it are redelivered. With GTIDs, capture waits at most this many seconds for a standby"
            " that lacks captured transactions"
        ),
    )


MAX_EPOCH = 511  # that positions have room for
_DESTINATION = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$"
_MEMBER = r"[A-Za-z0-9_-]+"
PositionKind = Literal["memory", "file", "zookeeper", "cursors"]


class SnapshotSettings(Section):
    """The limits on reading tables for queries that begin with a snapshot.

    settings = SnapshotSettings(connections=2, rows_per_s=20_000)
    """

    connections: int = Field(
        default=4,
        ge=1,
        le=64,
        description="maximum number of connections to the source that read rows for snapshots, over all snapshots of"
        " the instance",
    )
    rows_per_s: float | None = Field(
        default=None,
        gt=0,
        description="maximum number of rows per second, over all snapshots of the instance; default: no limit",
    )
    max_view_age_s: float = Field(
        default=60,
        gt=0,
        description="maximum number of seconds that one consistent read of the source (a read view, which holds back"
        " the purge of old row versions) is open; a chunk that takes longer is split",
    )
    chunk_rows: int = Field(
        default=100_000,
        ge=1,
        description="maximum number of rows of one chunk (key range of a table), by the database server's estimate",
    )
    chunk_bytes: ByteSize = Field(
        default=ByteSize(32 << 20),
        ge=1 << 10,
        description="maximum size of one chunk, by the database server's estimate",
    )


class InstanceSettings(Section):
    """One capture pipeline. Its name is called `destination`, as in canal: clients subscribe to it; it is not a sink.

    settings = InstanceSettings(destination="shop", source=SourceSettings(host="db1", user="penstock"))
    """

    destination: str = Field(
        default="default",
        pattern=_DESTINATION,
        description="name of this instance, which clients subscribe to (canal's word; not a sink)",
    )
    source: AnySource = Field(
        default=SourceSettings(),
        description="section: the database server that is captured; or, with `path`, a folder with its binlog files",
    )
    standby: SourceSettings | None = Field(
        default=None,
        description=(
            "section: database server that is captured when the source fails; keys that are not set here, those of TLS"
            " included, are taken from `source`"
        ),
    )
    replica: SourceSettings | None = Field(
        default=None,
        description=(
            "section: replica of the source from which the rows of snapshots are read, to spare the source; keys that"
            " are not set here, those of TLS included, are taken from `source`, see [snapshot.md](snapshot.md)"
        ),
    )
    failover: FailoverSettings = Field(
        default=FailoverSettings(),
        description="section: health checks that decide when capture switches to the standby",
    )
    start: str | None = Field(
        default=None,
        description="where in the binlog an instance without cursors begins: `latest` (default), `earliest`,"
        " FILE:OFFSET, `gtid:…` or `time:…`, see [positions.md](positions.md)",
    )
    on_purged: Literal["stop", "latest", "repair"] = Field(
        default="stop",
        description="what to do when the source has purged binlog that is still needed. stop: stop with an error;"
        " latest: skip to the end of the binlog; repair: call the repair callback, which closes the gap, then skip."
        " Only a program that passes this callback to `Instance` can use repair: `penstock serve` refuses it",
    )
    retention_warning_h: float = Field(
        default=12,
        ge=0,
        description="warn this many hours before the source purges binlog that is still needed; 0: never warn",
    )
    schema_from: Literal["start", "earliest"] = Field(
        default="start",
        description="where a new schema history begins. start: where capture starts; earliest: at the beginning of the"
        " source's binlog, whose DDL is read once, so that readers can also read ranges before the start. A binlog"
        " with binlog_row_metadata=FULL names its columns itself and needs neither",
    )
    epoch: int = Field(
        default=0,
        ge=0,
        le=MAX_EPOCH,
        description=(
            "lowest epoch of positions. The epoch numbers the binlogs that the source has had, and rises automatically"
            " when its binlog is reset or replaced; set it only when the persisted epoch was lost"
        ),
    )
    filter: FilterSettings = Field(
        default=FilterSettings(), description="section: which tables, columns and kinds of events are captured"
    )
    canal: CanalRendering = Field(
        default=CanalRendering(), description="section: how events are rendered for canal's clients"
    )
    store: StoreSettings = Field(
        default=StoreSettings(),
        description="section: where captured events are stored until all clients have acked them",
    )
    snapshot: SnapshotSettings = Field(
        default=SnapshotSettings(), description="section: how tables are read for queries that begin with a snapshot"
    )
    meta: MetaSettings = Field(
        default=MetaSettings(), description="section: where subscriptions and cursors are persisted"
    )
    positions: tuple[PositionKind, ...] = Field(
        default=("cursors",),
        min_length=1,
        description=(
            "where capture resumes after a restart. cursors: at the lowest cursor of all clients; file, zookeeper: at"
            " the position that capture has saved there; memory: at the position in memory, which is lost with the"
            " process. Of several, the first that has a position is used"
        ),
    )
    data_dir: Path | None = Field(
        default=None, description="folder for files of this instance; default: the server's data_dir"
    )
    zookeeper: str | None = Field(default=None, description="ZooKeeper servers, host:port,…; default: the server's")
    verify_checksum: bool = Field(
        default=True, description="verify the checksum of each binlog event, if the binlog has checksums"
    )

    @field_validator("standby", "replica", mode="before")
    @classmethod
    def _inherit_from_source(cls, value: object, info: ValidationInfo) -> object:
        """Give the standby and the replica the source's settings where they have none of their own."""
        source = info.data.get("source")
        if not is_mapping(value) or not isinstance(source, SourceSettings):
            return value
        inherited = {name: getattr(source, name) for name in source.model_fields_set - {"host", "port", "server_id"}}
        return inherited | value

    @model_validator(mode="after")
    def _check_requirements(self) -> Self:
        """Raise ValueError for settings that need a data_dir or ZooKeeper without one, and for contradictions."""
        if self.data_dir is None and (self.store.kind != "memory" or "file" in (self.meta_kind, *self.positions)):
            raise ValueError(f"instance {self.destination} keeps files: set data_dir")
        if self.zookeeper is None and {self.meta_kind, *self.positions} & {"zookeeper", "mixed", "period-mixed"}:
            raise ValueError(f"instance {self.destination} needs ZooKeeper: set zookeeper")
        if self.source.semi_sync and "sync" in self.store.model_fields_set and self.store.sync != "batch":
            raise ValueError(
                f"instance {self.destination} acknowledges what is on the disk (semi_sync), and its store syncs by"
                f" {self.store.sync}: leave sync out, or set it to batch"
            )
        if self.standby is not None and isinstance(self.source, DirectorySettings):
            raise ValueError(
                f"instance {self.destination} reads the files in {self.source.path}, and a folder has no standby: an"
                " instance of its own can capture from that server"
            )
        if self.replica is not None and isinstance(self.source, DirectorySettings):
            raise ValueError(
                f"instance {self.destination} reads the files in {self.source.path}, whose tables are in no replica"
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
    `DESTINATION.MEMBER`.

        settings = GroupSettings(destination="all", members={"east": InstanceSettings(), "west": InstanceSettings()})
    """

    destination: str = Field(
        pattern=_DESTINATION,
        description="name of the merged stream of all sources of the group; canal's clients subscribe to it as to any"
        " destination",
    )
    members: dict[str, InstanceSettings] = Field(
        min_length=1,
        description="the sources of the group, as NAME: settings of an instance; each runs as an instance of the name"
        " DESTINATION.NAME",
    )
    hold_s: float = Field(
        default=1,
        ge=0,
        description=(
            "maximum number of seconds for which a transaction of one source is held back while another source of the"
            " group may still deliver an earlier one; after that it is delivered, and the earlier one follows it, out"
            " of order"
        ),
    )
    canal: CanalRendering = Field(
        default=CanalRendering(), description="section: how the group's events are rendered for canal's clients"
    )

    @model_validator(mode="after")
    def _check_members(self) -> Self:
        """Raise ValueError for a member name or setting that is not allowed."""
        for name, member in self.members.items():
            if not re.fullmatch(_MEMBER, name):
                raise ValueError(f"{name!r} is no name for a member: letters, digits, - and _ are")
            if "canal" in member.model_fields_set:
                raise ValueError(f"member {name} says how it looks to canal's clients, who see the group: set it there")
        return self

    @property
    def member_names(self) -> dict[str, str]:
        """Return the destination that each member runs under."""
        return {name: f"{self.destination}.{name}" for name in self.members}

    def named_members(self) -> dict[str, InstanceSettings]:
        """Return the settings of each member with the destination that it runs under."""
        names = self.member_names
        return {name: member.model_copy(update={"destination": names[name]}) for name, member in self.members.items()}
