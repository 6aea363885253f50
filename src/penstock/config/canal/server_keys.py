"""The rule for every property of canal's server: honoured, refused or ignored."""

from penstock.config.canal.rules import Honoured, Ignored, Refused, Rule, RuleTable, parse_whole

OWN_TOKENS = "penstock.flight.tokens."
_QUEUE = Ignored("Penstock writes to no message queue")
_ALIYUN = Ignored("Penstock reads no binlog archives of Aliyun's RDS and writes to no message queue")

# Settings that canal does not have: `penstock.` and the name that YAML has for it.
_OWN: dict[str, Rule] = {
    f"penstock.{name}": Honoured(name, convert)
    for name, convert in {
        "flight.host": str,
        "flight.port": parse_whole,
        "flight.tls_cert": str,
        "flight.tls_key": str,
        "flight.streams": parse_whole,
        "admin.host": str,
        "admin.port": parse_whole,
        "admin.token": str,
    }.items()
}

SERVER_KEYS = RuleTable(
    {
        "canal.id": Ignored("a Penstock server is identified by its host:port"),
        "canal.ip": Honoured("canal.host", note="address to listen on for canal's clients; empty: every address"),
        "canal.register.ip": Honoured(
            "running.address", note="host of this server that is published in ZooKeeper for canal's clients"
        ),
        "canal.port": Honoured(
            "canal.port, running.address", note="port for canal's clients, also in the address published in ZooKeeper"
        ),
        "canal.metrics.pull.port": Honoured(
            "admin.port", note="HTTP port for metrics and status, on the loopback address"
        ),
        "canal.user": Honoured("canal.user", str),
        "canal.passwd": Honoured(
            "canal.password_hash",
            note="without it and without canal.user, clients need no password (canal.allow_anonymous)",
        ),
        "canal.admin.manager": Honoured(
            "manager.url", note="address of canal-admin, which then provides the instances"
        ),
        "canal.admin.port": Honoured(
            "canal_admin.port", note="port of canal's admin protocol; stays closed without canal.admin.passwd"
        ),
        "canal.admin.user": Honoured(
            "canal_admin.user, manager.user",
            note="user name with which canal-admin logs in to this server's admin port, and with which this server"
            " logs in to canal-admin",
        ),
        "canal.admin.passwd": Honoured(
            "canal_admin.password_hash, manager.password_hash", note="password of canal.admin.user, as a hash"
        ),
        "canal.admin.register.auto": Honoured(
            "manager.announce", note="true: this server registers itself at canal-admin"
        ),
        "canal.admin.register.cluster": Honoured(
            "manager.cluster", note="cluster of canal-admin that this server registers in"
        ),
        "canal.admin.register.name": Honoured(
            "manager.name", note="name under which this server registers at canal-admin"
        ),
        "canal.withoutNetty": Honoured("canal.port", note="true: canal's protocol is off"),
        "canal.serverMode": Refused(
            "only tcp is accepted: Penstock does not write to message queues; clients of canal, Arrow Flight and Spark"
            " read from it",
            lambda value: value.lower() != "tcp",
        ),
        "canal.destinations": Honoured("destinations", note="names of destinations, separated by commas"),
        "canal.destinations.expr": Honoured("destinations", note="shop{1-10} means shop1 to shop10"),
        "canal.conf.dir": Ignored("the conf folder is the argument of `penstock serve`"),
        "canal.auto.scan": Honoured("scan_s", note="false: the conf folder is read only at the start (scan_s: 0)"),
        "canal.auto.scan.interval": Honoured(
            "scan_s", note="seconds between two scans of the conf folder for changes, or two requests to canal-admin"
        ),
        "canal.socketChannel": Ignored("Penstock has only one kind of connection to a source"),
        "canal.aliyun.accessKey": _ALIYUN,
        "canal.aliyun.secretKey": _ALIYUN,
        "canal.aliyun.accesskey": _ALIYUN,
        "canal.aliyun.secretkey": _ALIYUN,
        "canal.aliyun.uid": _ALIYUN,
        **_OWN,
    },
    {
        **dict.fromkeys(("canal.mq.", "kafka.", "rocketmq.", "rabbitmq.", "pulsarmq."), _QUEUE),
        OWN_TOKENS: Honoured(
            "flight.tokens", note="penstock.flight.tokens.NAME=TOKEN: access token of Arrow Flight for the caller NAME"
        ),
    },
)
