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

_HISTORY = Ignored("the schema history is always kept, in files below data_dir; canal's tsdb is not read")
_RDS = Ignored("archives of Aliyun's RDS are not read; on_purged says what happens when the source has purged its log")
_PIPELINE = Ignored("one thread of each instance reads the source's log; compiled code decodes it by column")
_SOCKET = Ignored("the operating system chooses the size of socket buffers")
_CHARSET = Ignored("text is decoded by the charset of its own column, not by that of a connection")
_PLACE = Ignored("the position in a standby's log is found by GTIDs, or by time")
_QUEUE = Ignored("Penstock writes to no message queue")
_STORE = Honoured(
    "store.slots, store.memory", note="number of entries, and with memunit of bytes, that the store holds"
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
    "Java's key stores are not read: write the instance as YAML, with tls_ca, tls_cert and tls_key in PEM files",
    bool,
)
_KEY_STORE_DETAIL = Ignored(
    "belongs to a key store, which is not read: give PEM files in YAML (source.tls_cert, source.tls_ca)"
)
_GROUP = Refused("a group of sources in one destination is not read from properties: write it as YAML", bool)


def _tls(side: str, setting: str) -> dict[str, Rule]:
    """Return the rules for the TLS properties of the source or the standby."""
    names: dict[str, Rule] = {
        f"{side}.sslMode": Honoured(setting),
        f"{side}.tlsVersions": Ignored("TLS 1.2 and later, as the system has it"),
    }
    for store in ("trustCertificateKeyStore", "clientCertificateKeyStore"):
        names |= {
            f"{side}.{store}Url": _KEY_STORE,
            f"{side}.{store}Type": _KEY_STORE_DETAIL,
            f"{side}.{store}Password": _KEY_STORE_DETAIL,
        }
    return names


_INSTANCE: dict[str, Rule] = {
    "destination": Ignored("a destination has the name of the folder in which its instance.properties lies"),
    "mysql.slaveId": Honoured("source.server_id", lambda text: parse_whole(text) or None),
    "gtidon": Honoured("canal.gtids, start", note="true: entries have GTIDs, and master.gtid is used as the start"),
    "master.address": Honoured("source.host, source.port"),
    "master.journal.name": _start("name of the source's log file"),
    "master.position": _start("offset in bytes in the source's log file"),
    "master.timestamp": _start("time in milliseconds since 1970"),
    "master.gtid": _start("set of executed GTIDs, used only with gtidon,"),
    "standby.address": _STANDBY,
    "standby.journal.name": _PLACE,
    "standby.position": _PLACE,
    "standby.timestamp": _PLACE,
    "standby.gtid": _PLACE,
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
    "pwdPublicKey": Ignored("it only serves passwords encrypted for Druid, which are not read"),
    "filter.regex": Honoured("filter.allow"),
    "filter.black.regex": Honoured("filter.deny"),
    "filter.field": Honoured("filter.columns", note="only these columns are captured, as database.table:column/column"),
    "filter.black.field": Honoured(
        "filter.columns", note="all columns but these are captured, as database.table:column/column"
    ),
    "filter.druid.ddl": Ignored("there is one parser for DDL"),
    "filter.query.dcl": Honoured(
        "filter.kinds",
        note="statements about users, grants and passwords are never delivered with canal's properties, true or false",
    ),
    "filter.query.dml": _drop("INSERT, UPDATE and DELETE statements that the log has as text"),
    "filter.query.ddl": _drop("DDL statements"),
    "filter.dml.insert": _drop("inserted rows"),
    "filter.dml.update": _drop("updated rows"),
    "filter.dml.delete": _drop("deleted rows"),
    "filter.rows": _drop("row changes of every kind"),
    "filter.table.error": Ignored(
        "delivery of a table whose schema is not known halts, other tables continue; no row is skipped"
    ),
    "filter.transaction.entry": Honoured(
        "canal.transactions",
        parse_inverse,
        "true: begins and ends of transactions are not delivered; false: they are",
    ),
    "binlog.format": Ignored("`penstock check` says which settings of the source must be changed"),
    "binlog.image": Ignored("`penstock check` says which settings of the source must be changed"),
    "transaction.size": Ignored("transactions of any size are delivered in pieces"),
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
    "memory.buffer.memunit": Honoured("store.memory, canal.unit_bytes", note="bytes of one unit of memory.buffer.size"),
    "memory.batch.mode": Honoured(
        "canal.unit, store.memory", note="MEMSIZE: batches and the store are limited by bytes; ITEMSIZE: by entries"
    ),
    "memory.rawEntry": Ignored("the store always holds the raw bytes of the log"),
    "get.ddl.isolation": Honoured(
        "canal.ddl_alone", parse_flag, "true: each DDL statement is delivered as a batch of its own"
    ),
    "multi.stream.on": Refused("PolarDB-X's several streams are not read", is_true),
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
        "on_purged", note="true: latest, which skips to the end of the log when the source has purged what is needed"
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
