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
_PIPELINE = Ignored("one thread reads, and kernels decode by column")
_SOCKET = Ignored("the system chooses the buffers of sockets")
_CHARSET = Ignored("each column has its own charset")
_PLACE = Ignored("the position in a standby's log is found by GTIDs, or by time")
_QUEUE = Ignored("only where canal itself writes to a queue")
_STORE = Honoured("store.slots, store.memory")
_KINDS = Honoured("filter.kinds")
_START = Honoured("start")
_STANDBY = Honoured("standby, when detecting.enable and detecting.heartbeatHaEnable are true")
_KEY_STORE = Refused(
    "Java's key stores are not read: write the instance as YAML, with tls_ca, tls_cert and tls_key in PEM files",
    bool,
)
_KEY_STORE_DETAIL = Ignored(
    "belongs to a key store, which is not read: give PEM files in YAML (source.tls_cert, source.tls_ca)"
)
_GROUP = Refused("a group of sources is not read from properties: write it as YAML", bool)


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
    "destination": Ignored("it is named after its folder"),
    "mysql.slaveId": Honoured("source.server_id", lambda text: parse_whole(text) or None),
    "gtidon": Honoured("canal.gtids, start", None),
    "master.address": Honoured("source.host, source.port"),
    "master.journal.name": _START,
    "master.position": _START,
    "master.timestamp": _START,
    "master.gtid": _START,
    "standby.address": _STANDBY,
    "standby.journal.name": _PLACE,
    "standby.position": _PLACE,
    "standby.timestamp": _PLACE,
    "standby.gtid": _PLACE,
    "dbUsername": Honoured("source.user"),
    "dbPassword": Honoured("source.password"),
    "defaultDatabaseName": Ignored("no connection needs a database"),
    "connectionCharset": _CHARSET,
    "connectionCharsetNumber": _CHARSET,
    "connectionCharsetStd": _CHARSET,
    "enableDruid": Refused("the password is encrypted for Druid: write ${env:NAME} or ${file:…} instead", is_true),
    "pwdPublicKey": Ignored("only with enableDruid"),
    "filter.regex": Honoured("filter.allow"),
    "filter.black.regex": Honoured("filter.deny"),
    "filter.field": Honoured("filter.columns"),
    "filter.black.field": Honoured("filter.columns"),
    "filter.druid.ddl": Ignored("there is one parser for DDL"),
    "filter.query.dcl": _KINDS,
    "filter.query.dml": _KINDS,
    "filter.query.ddl": _KINDS,
    "filter.dml.insert": _KINDS,
    "filter.dml.update": _KINDS,
    "filter.dml.delete": _KINDS,
    "filter.rows": _KINDS,
    "filter.table.error": Ignored("a table whose schema is not known is stopped, and no other; no row is skipped"),
    "filter.transaction.entry": Honoured("canal.transactions", parse_inverse),
    "binlog.format": Ignored("`penstock check` says which settings of the source must be changed"),
    "binlog.image": Ignored("`penstock check` says which settings of the source must be changed"),
    "transaction.size": Ignored("transactions of any size are delivered in pieces"),
    "parser.parallel": _PIPELINE,
    "parser.parallelThreadSize": _PIPELINE,
    "parser.parallelBufferSize": _PIPELINE,
    "network.receiveBufferSize": _SOCKET,
    "network.sendBufferSize": _SOCKET,
    "network.soTimeout": Honoured("source.connect_timeout_s", parse_seconds),
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
    "memory.buffer.memunit": Honoured("store.memory, canal.unit_bytes"),
    "memory.batch.mode": Honoured("canal.unit, store.memory"),
    "memory.rawEntry": Ignored("the store always holds the raw bytes of the log"),
    "get.ddl.isolation": Honoured("canal.ddl_alone", parse_flag),
    "multi.stream.on": Refused("PolarDB-X's several streams are not read", is_true),
    **_tls("master", "source.tls"),
    **_tls("standby", "standby.tls"),
}

# What canal reads by `canal.instance.global.…`, and for one destination by `canal.instance.DESTINATION.…`.
_GLOBAL: dict[str, Rule] = {
    "mode": Honoured("manager"),
    "lazy": Ignored("an instance starts at once"),
    "spring.xml": Honoured("meta.kind"),
    "manager.address": Honoured("manager.url"),
}

# These stand in canal.properties, and count for instances.
_SHARED: dict[str, Rule] = {
    "canal.zkServers": Honoured("zookeeper"),
    "canal.zookeeper.flush.period": Honoured("meta.period_s, with default-instance.xml"),
    "canal.file.data.dir": Honoured("data_dir"),
    "canal.file.flush.period": Honoured("meta.period_s, with file-instance.xml"),
    "canal.auto.reset.latest.pos.mode": Honoured("on_purged: latest", None),
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
