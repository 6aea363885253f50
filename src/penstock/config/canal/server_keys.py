"""The rule for every property of canal's server: honoured, refused or ignored."""

from penstock.config.canal.rules import Honoured, Ignored, Refused, Rule, RuleTable, parse_whole

OWN_TOKENS = "penstock.flight.tokens."
_QUEUE = Ignored("only where canal itself writes to a queue")
_ALIYUN = Ignored("archives of Aliyun's RDS are not read, and no queue is written to")

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
        "canal.id": Ignored("a server is identified by its address"),
        "canal.ip": Honoured("canal.host; every address when it is empty"),
        "canal.register.ip": Honoured("running.address"),
        "canal.port": Honoured("canal.port, running.address"),
        "canal.metrics.pull.port": Honoured("admin.port, on loopback"),
        "canal.user": Honoured("canal.user", str),
        "canal.passwd": Honoured("canal.password_hash; without it canal.allow_anonymous"),
        "canal.admin.manager": Honoured("manager.url"),
        "canal.admin.port": Honoured("canal_admin.port, where there is a canal.admin.passwd"),
        "canal.admin.user": Honoured("canal_admin.user, manager.user"),
        "canal.admin.passwd": Honoured("canal_admin.password_hash, manager.password_hash"),
        "canal.admin.register.auto": Honoured("manager.announce"),
        "canal.admin.register.cluster": Honoured("manager.cluster"),
        "canal.admin.register.name": Honoured("manager.name"),
        "canal.withoutNetty": Honoured("canal.port: null"),
        "canal.serverMode": Refused(
            "this server writes to no queue: canal's clients and Arrow Flight read from it, and Spark can write on;"
            " say tcp",
            lambda value: value.lower() != "tcp",
        ),
        "canal.destinations": Honoured("destinations"),
        "canal.destinations.expr": Honoured("destinations"),
        "canal.conf.dir": Ignored("it is the folder that `penstock serve` was given"),
        "canal.auto.scan": Honoured("scan_s: 0 when it is false"),
        "canal.auto.scan.interval": Honoured("scan_s"),
        "canal.socketChannel": Ignored("there is one kind of connection to a source"),
        "canal.aliyun.accessKey": _ALIYUN,
        "canal.aliyun.secretKey": _ALIYUN,
        "canal.aliyun.accesskey": _ALIYUN,
        "canal.aliyun.secretkey": _ALIYUN,
        "canal.aliyun.uid": _ALIYUN,
        **_OWN,
    },
    {
        **dict.fromkeys(("canal.mq.", "kafka.", "rocketmq.", "rabbitmq.", "pulsarmq."), _QUEUE),
        OWN_TOKENS: Honoured("flight.tokens, by name"),
    },
)
