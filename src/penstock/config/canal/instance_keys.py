"""The rule for every property of canal's instances: honoured, refused or ignored."""

from penstock.config.canal.rules import (
    Honoured,
    Ignored,
    Refused,
    Rule,
    RuleTable,
    is_true,
    parse_flag,
    parse_inverse,
    parse_seconds,
    parse_whole,
)

_HISTORY = Ignored("Penstock always keeps its own schema history, in files below data_dir; canal's tsdb is not read")
_RDS = Ignored(
    "binlog archives of Aliyun's RDS are not read; on_purged decides what happens when the source has purged its binlog"
)
_PIPELINE = Ignored("one thread of each instance reads the source's binlog; compiled code decodes it into columns")
_SOCKET = Ignored("the operating system chooses the size of socket buffers")
_CHARSET = Ignored("text is decoded by the charset of its column, not by that of a connection")
_STANDBY_POSITION = Ignored(
    "at a failover, Penstock finds the position in the standby's binlog itself, by GTIDs or by time"
)
_QUEUE = Ignored("Penstock writes to no message queue")
_STORE = Honoured(
    "store.slots, store.memory",
    note="capacity of the store: number of entries; with batch.mode MEMSIZE, number of units of memunit bytes",
)


def _drop(what: str) -> Honoured:
    """Return the rule for a property of canal that leaves a kind of event out of filter.kinds when it is true."""
    return Honoured("filter.kinds", note=f"true: {what} are not delivered; false: they are")


def _start(what: str) -> Honoured:
    """Return the rule for a property of canal that says where in the source's log an instance without cursors
    begins."""
    return Honoured("start", note=f"{what} at which an instance without cursors begins")


_STANDBY = Honoured(
    "standby",
    note="there is a standby source only when standby.address is set and both detecting.enable and"
    " detecting.heartbeatHaEnable are true",
)
_KEY_STORE = Refused(
    "Java's key stores are not supported: write the instance as YAML, with tls_ca, tls_cert and tls_key as PEM files",
    bool,
)
_KEY_STORE_DETAIL = Ignored(
    "belongs to a Java key store, which is not supported: write the instance as YAML, with tls_ca, tls_cert and"
    " tls_key as PEM files (in `source`; `standby` takes them from there unless it sets its own)"
)
_GROUP = Refused("a group of sources in one destination cannot be written as properties: write it as YAML", bool)


def _tls(side: str, setting: str) -> dict[str, Rule]:
    """Return the rules for the TLS properties of the source or the standby."""
    names: dict[str, Rule] = {
        f"{side}.sslMode": Honoured(setting),
        f"{side}.tlsVersions": Ignored("Penstock uses TLS 1.2 or later, as the system's TLS library allows"),
    }
    for store in ("trustCertificateKeyStore", "clientCertificateKeyStore"):
        names |= {
            f"{side}.{store}Url": _KEY_STORE,
            f"{side}.{store}Type": _KEY_STORE_DETAIL,
            f"{side}.{store}Password": _KEY_STORE_DETAIL,
        }
    return names


_INSTANCE: dict[str, Rule] = {
    "destination": Ignored("the name of a destination is that of the folder in which its instance.properties lies"),
    "mysql.slaveId": Honoured("source.server_id", lambda text: parse_whole(text) or None),
    "gtidon": Honoured("canal.gtids, start", note="true: entries have GTIDs, and master.gtid is used as the start"),
    "master.address": Honoured("source.host, source.port"),
    "master.journal.name": _start("name of the source's binlog file"),
    "master.position": _start("offset in bytes in the source's binlog file"),
    "master.timestamp": _start("time in milliseconds since 1970"),
    "master.gtid": _start("set of executed GTIDs, used only with gtidon,"),
    "standby.address": _STANDBY,
    "standby.journal.name": _STANDBY_POSITION,
    "standby.position": _STANDBY_POSITION,
    "standby.timestamp": _STANDBY_POSITION,
    "standby.gtid": _STANDBY_POSITION,
    "dbUsername": Honoured("source.user"),
    "dbPassword": Honoured("source.password"),
    "defaultDatabaseName": Ignored("connections to the source need no default database"),
    "connectionCharset": _CHARSET,
    "connectionCharsetNumber": _CHARSET,
    "connectionCharsetStd": _CHARSET,
    "enableDruid": Refused(
        "true is refused, passwords encrypted for Druid are not supported: write ${env:NAME} or ${file:…} instead",
        is_true,
    ),
    "pwdPublicKey": Ignored("it only serves to decrypt passwords for Druid, which are not supported"),
    "filter.regex": Honoured("filter.allow"),
    "filter.black.regex": Honoured("filter.deny"),
    "filter.field": Honoured(
        "filter.columns",
        note="of each table that is listed, only these columns are captured; of other tables, all columns. Written as"
        " database.table:column/column, tables separated by commas",
    ),
    "filter.black.field": Honoured(
        "filter.columns",
        note="of each table that is listed, all columns except these are captured. Written as"
        " database.table:column/column, tables separated by commas",
    ),
    "filter.druid.ddl": Ignored("Penstock has its own DDL parser, and no other"),
    "filter.query.dcl": Honoured(
        "filter.kinds",
        note="true: statements about users, grants and passwords (DCL) are not delivered. false does not change"
        " that: only an instance in YAML can list dcl in filter.kinds, to have them delivered",
    ),
    "filter.query.dml": _drop("INSERT, UPDATE and DELETE statements that a statement-based binlog has as text"),
    "filter.query.ddl": _drop("DDL statements"),
    "filter.dml.insert": _drop("insert events"),
    "filter.dml.update": _drop("update events"),
    "filter.dml.delete": _drop("delete events"),
    "filter.rows": _drop("row changes of every kind"),
    "filter.table.error": Ignored(
        "delivery of a table whose schema is unknown halts, other tables continue; no row is skipped"
    ),
    "filter.transaction.entry": Honoured(
        "canal.transactions",
        parse_inverse,
        "true: begins and ends of transactions are not delivered; false: they are",
    ),
    "binlog.format": Ignored("`penstock check` says which settings of the source must be changed"),
    "binlog.image": Ignored("`penstock check` says which settings of the source must be changed"),
    "transaction.size": Ignored("a transaction of any size is delivered, in several batches if it must be"),
    "parser.parallel": _PIPELINE,
    "parser.parallelThreadSize": _PIPELINE,
    "parser.parallelBufferSize": _PIPELINE,
    "network.receiveBufferSize": _SOCKET,
    "network.sendBufferSize": _SOCKET,
    "network.soTimeout": Honoured(
        "source.connect_timeout_s",
        parse_seconds,
        "timeout in seconds for connecting to the source; reads have a timeout of their own",
    ),
    "detecting.enable": _STANDBY,
    "detecting.heartbeatHaEnable": _STANDBY,
    "detecting.sql": Honoured("failover.query", str),
    "detecting.interval.time": Honoured("failover.interval_s", parse_seconds),
    "detecting.retry.threshold": Honoured("failover.retries", parse_whole),
    "fallbackIntervalInSeconds": Honoured("failover.window_s", parse_seconds),
    "tsdb.enable": _HISTORY,
    "tsdb.dir": _HISTORY,
    "tsdb.url": _HISTORY,
    "tsdb.dbUsername": _HISTORY,
    "tsdb.dbPassword": _HISTORY,
    "tsdb.spring.xml": _HISTORY,
    "tsdb.snapshot.interval": _HISTORY,
    "tsdb.snapshot.expire": _HISTORY,
    "rds.accesskey": _RDS,
    "rds.secretkey": _RDS,
    "rds.instanceId": _RDS,
    "memory.buffer.size": _STORE,
    "memory.buffer.memunit": Honoured(
        "store.memory, canal.unit_bytes", note="bytes of one unit of memory.buffer.size, and of the batch size of a get"
    ),
    "memory.batch.mode": Honoured(
        "canal.unit, store.memory", note="MEMSIZE: batches and the store are limited by bytes; ITEMSIZE: by entries"
    ),
    "memory.rawEntry": Ignored("the store always holds the raw bytes of the binlog"),
    "get.ddl.isolation": Honoured(
        "canal.ddl_alone", parse_flag, "true: each DDL statement is delivered as a batch of its own"
    ),
    "multi.stream.on": Refused("binlogs of PolarDB-X in several streams are not supported", is_true),
    **_tls("master", "source.tls"),
    **_tls("standby", "standby.tls"),
}

# What canal reads by `canal.instance.global.…`, and for one destination by `canal.instance.DESTINATION.…`.
_GLOBAL: dict[str, Rule] = {
    "mode": Honoured("manager", note="manager: the instances come from canal-admin; spring: from the conf folder"),
    "lazy": Ignored("every instance starts as soon as it is configured"),
    "spring.xml": Honoured(
        "meta.kind",
        note="memory-instance.xml: memory; file-instance.xml: file; default-instance.xml: period-mixed (ZooKeeper)",
    ),
    "manager.address": Honoured("manager.url"),
}

# These stand in canal.properties, and count for instances.
_SHARED: dict[str, Rule] = {
    "canal.zkServers": Honoured("zookeeper"),
    "canal.zookeeper.flush.period": Honoured(
        "meta.period_s", note="milliseconds between two writes of the cursors to ZooKeeper, with default-instance.xml"
    ),
    "canal.file.data.dir": Honoured("data_dir"),
    "canal.file.flush.period": Honoured(
        "meta.period_s", note="milliseconds between two writes of the cursors to meta.dat, with file-instance.xml"
    ),
    "canal.auto.reset.latest.pos.mode": Honoured(
        "on_purged", note="true: latest, which skips to the end of the binlog when the source has purged what is needed"
    ),
}

# Settings that canal does not have: `penstock.` and the name that YAML has for it.
_OWN: dict[str, Rule] = {
    f"penstock.{name}": Honoured(name, convert)
    for name, convert in {
        "canal.time_zone": str,
        "store.kind": str,
        "store.memory": str,
        "store.segment": str,
        "store.limit": str,
        "store.limit_s": parse_seconds,
        "store.slow_clients": str,
        "store.absent_after_s": parse_seconds,
    }.items()
}

PREFIX = "canal.instance."
GLOBAL_NAMES = frozenset(_GLOBAL)
INSTANCE_KEYS = RuleTable(
    {f"{PREFIX}{name}": rule for name, rule in _INSTANCE.items()}
    | {f"{PREFIX}global.{name}": rule for name, rule in _GLOBAL.items()}
    | _SHARED
    | _OWN,
    {"canal.mq.": _QUEUE, f"{PREFIX}master1.": _GROUP, f"{PREFIX}master2.": _GROUP},
)
