"""canal's properties as settings: each is honoured, refused, or reported as ignored."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.config.canal.instance_keys import INSTANCE_KEYS
from penstock.config.canal.properties import read_canal_instance, read_canal_server
from penstock.config.canal.rules import Honoured, Ignored, Refused
from penstock.config.canal.server_keys import SERVER_KEYS
from penstock.config.exposure import describe_open_ports
from penstock.config.source_settings import SourceSettings
from penstock.errors import ConfigurationError

FOLDER = Path("/opt/canal/conf")
HASH = "E3619321C1A937C46A0D8BD1DAC39F93B27D4458"
ADMIN_HASH = "4ACFE3202A5FF5CF467898FC58AAB1D615029441"

# The keys and values of the files that canal comes with.
SHIPPED_SERVER = {
    "canal.ip": "",
    "canal.register.ip": "",
    "canal.port": "11111",
    "canal.metrics.pull.port": "11112",
    "canal.admin.port": "11110",
    "canal.admin.user": "admin",
    "canal.admin.passwd": ADMIN_HASH,
    "canal.zkServers": "",
    "canal.zookeeper.flush.period": "1000",
    "canal.withoutNetty": "false",
    "canal.serverMode": "tcp",
    "canal.file.data.dir": "${canal.conf.dir}",
    "canal.file.flush.period": "1000",
    "canal.instance.memory.buffer.size": "16384",
    "canal.instance.memory.buffer.memunit": "1024 ",
    "canal.instance.memory.batch.mode": "MEMSIZE",
    "canal.instance.memory.rawEntry": "true",
    "canal.instance.detecting.enable": "false",
    "canal.instance.detecting.sql": "select 1",
    "canal.instance.detecting.interval.time": "3",
    "canal.instance.detecting.retry.threshold": "3",
    "canal.instance.detecting.heartbeatHaEnable": "false",
    "canal.instance.transaction.size": "1024",
    "canal.instance.fallbackIntervalInSeconds": "60",
    "canal.instance.network.receiveBufferSize": "16384",
    "canal.instance.network.sendBufferSize": "16384",
    "canal.instance.network.soTimeout": "30",
    "canal.instance.filter.druid.ddl": "true",
    "canal.instance.filter.query.dcl": "false",
    "canal.instance.filter.query.dml": "false",
    "canal.instance.filter.query.ddl": "false",
    "canal.instance.filter.table.error": "false",
    "canal.instance.filter.rows": "false",
    "canal.instance.filter.transaction.entry": "false",
    "canal.instance.filter.dml.insert": "false",
    "canal.instance.filter.dml.update": "false",
    "canal.instance.filter.dml.delete": "false",
    "canal.instance.binlog.format": "ROW,STATEMENT,MIXED ",
    "canal.instance.binlog.image": "FULL,MINIMAL,NOBLOB",
    "canal.instance.get.ddl.isolation": "false",
    "canal.instance.parser.parallel": "true",
    "canal.instance.parser.parallelBufferSize": "256",
    "canal.instance.tsdb.enable": "true",
    "canal.instance.tsdb.dir": "${canal.file.data.dir:../conf}/${canal.instance.destination:}",
    "canal.instance.tsdb.url": "jdbc:h2:${canal.instance.tsdb.dir}/h2;CACHE_SIZE=1000;MODE=MYSQL;",
    "canal.instance.tsdb.dbUsername": "canal",
    "canal.instance.tsdb.dbPassword": "canal",
    "canal.instance.tsdb.snapshot.interval": "24",
    "canal.instance.tsdb.snapshot.expire": "360",
    "canal.destinations": "example",
    "canal.conf.dir": "../conf",
    "canal.auto.scan": "true",
    "canal.auto.scan.interval": "5",
    "canal.auto.reset.latest.pos.mode": "false",
    "canal.instance.tsdb.spring.xml": "classpath:spring/tsdb/h2-tsdb.xml",
    "canal.instance.global.mode": "spring",
    "canal.instance.global.lazy": "false",
    "canal.instance.global.manager.address": "${canal.admin.manager}",
    "canal.instance.global.spring.xml": "classpath:spring/file-instance.xml",
    "canal.aliyun.accessKey": "",
    "canal.mq.flatMessage": "true",
    "canal.mq.canalBatchSize": "50",
    "kafka.bootstrap.servers": "127.0.0.1:9092",
    "rocketmq.producer.group": "test",
    "rabbitmq.host": "",
    "pulsarmq.serverUrl": "",
}
SHIPPED_INSTANCE = {
    "canal.instance.gtidon": "false",
    "canal.instance.master.address": "127.0.0.1:3306",
    "canal.instance.master.journal.name": "",
    "canal.instance.master.position": "",
    "canal.instance.master.timestamp": "",
    "canal.instance.master.gtid": "",
    "canal.instance.rds.accesskey": "",
    "canal.instance.tsdb.enable": "true",
    "canal.instance.dbUsername": "canal",
    "canal.instance.dbPassword": "canal",
    "canal.instance.connectionCharset": "UTF-8",
    "canal.instance.enableDruid": "false",
    "canal.instance.filter.regex": ".*\\..*",
    "canal.instance.filter.black.regex": "mysql\\.slave_.*",
    "canal.mq.topic": "example",
    "canal.mq.partition": "0",
}


def server(changes: dict[str, str] | None = None, environment: dict[str, str] | None = None) -> ServerSettings:
    imported = read_canal_server(SHIPPED_SERVER | (changes or {}), FOLDER, environment or {})
    return ServerSettings.model_validate(imported.settings)


def instance(
    changes: dict[str, str] | None = None,
    shared: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    name: str = "example",
) -> InstanceSettings:
    own = {f"canal.instance.{key}": value for key, value in (changes or {}).items()}
    imported = read_canal_instance(
        name, SHIPPED_INSTANCE | own, SHIPPED_SERVER | (shared or {}), FOLDER, environment or {}
    )
    return InstanceSettings.model_validate(imported.settings)


def source(settings: InstanceSettings) -> SourceSettings:
    assert isinstance(settings.source, SourceSettings)
    return settings.source


def test_canal_as_it_comes() -> None:
    imported = read_canal_server(SHIPPED_SERVER | {"canal.admin.manager": ""}, FOLDER, {})
    settings = ServerSettings.model_validate(imported.settings)
    assert (settings.canal.host, settings.canal.port, settings.canal.allow_anonymous) == ("0.0.0.0", 11111, True)  # noqa: S104
    assert (settings.admin.host, settings.admin.port) == ("127.0.0.1", 11112)
    assert (settings.canal_admin.port, settings.canal_admin.user) == (11110, "admin")
    assert (settings.data_dir, settings.zookeeper, settings.scan_s) == (FOLDER, None, 5)
    assert (settings.destinations, imported.listed, settings.manager) == (None, ("example",), None)
    ignored = dict(imported.ignored)
    assert ignored["canal.mq.flatMessage"] == ignored["kafka.bootstrap.servers"]
    (warning,) = describe_open_ports(settings)
    assert "CANAL'S PORT 11111 ON EVERY ADDRESS OF THIS MACHINE IS OPEN TO EVERYBODY" in warning
    assert "canal.aliyun.accessKey" not in ignored, "it is empty"
    assert "not a property of canal" not in ignored.values()


def test_an_instance_as_it_comes() -> None:
    imported = read_canal_instance("example", SHIPPED_INSTANCE, SHIPPED_SERVER, FOLDER, {})
    settings = InstanceSettings.model_validate(imported.settings)
    at = source(settings)
    assert (at.host, at.port, at.user, at.password.get_secret_value()) == ("127.0.0.1", 3306, "canal", "canal")
    assert (settings.destination, settings.start, settings.standby) == ("example", None, None)
    assert (settings.store.slots, settings.store.memory) == (16384, 16 << 20)
    assert (settings.meta_kind, settings.meta.period_s, settings.data_dir) == ("file", 1, FOLDER)
    assert (settings.filter.allow, settings.filter.deny) == ((".*\\..*",), ("mysql\\.slave_.*",))
    canal = settings.canal
    assert (canal.values, canal.waits_for, canal.unit, canal.unit_bytes) == ("canal", "batch", "memory", 1024)
    assert (canal.ddl_alone, canal.gtids, canal.transactions) == (False, False, True)
    assert [key for key, _ in imported.ignored] == [
        "canal.instance.tsdb.enable",
        "canal.instance.connectionCharset",
        "canal.mq.topic",
        "canal.mq.partition",
    ]


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"master.journal.name": "bin.000007", "master.position": "1234"}, "bin.000007:1234"),
        ({"master.journal.name": "bin.000007"}, "bin.000007:4"),
        ({"master.timestamp": "1589189724123"}, "2020-05-11T09:35:24.123+00:00"),
        ({"master.journal.name": "bin.000007", "master.timestamp": "1589189724000"}, "2020-05-11T09:35:24.000+00:00"),
        ({"master.gtid": "0-1-7", "gtidon": "true"}, "0-1-7"),
        ({"master.gtid": "0-1-7"}, None),
        ({"master.gtid": "0-1-7", "master.journal.name": "bin.1", "master.position": "4"}, "bin.1:4"),
    ],
)
def test_where_it_begins(changes: dict[str, str], start: str | None) -> None:
    assert instance(changes).start == start


def test_the_source() -> None:
    settings = instance(
        {
            "master.address": "db1:3307",
            "dbUsername": "cdc",
            "dbPassword": "",
            "mysql.slaveId": "77",
            "network.soTimeout": "12",
            "master.sslMode": "VERIFY_CA",
        }
    )
    at = source(settings)
    assert (at.host, at.port, at.user, at.password.get_secret_value()) == ("db1", 3307, "cdc", "")
    assert (at.server_id, at.connect_timeout_s, at.tls) == (77, 12, "verify-ca")
    assert source(instance({"mysql.slaveId": "0"})).server_id is None
    assert source(instance({"master.address": "[::1]:3307"})).endpoint == ("::1", 3307)
    assert source(instance({"master.address": "db1"})).endpoint == ("db1", 3306)


def test_a_standby_counts_when_canal_would_switch() -> None:
    given = {"standby.address": "db2:3306", "standby.sslMode": "REQUIRED", "fallbackIntervalInSeconds": "90"}
    assert instance(given).standby is None
    enabled = {"detecting.enable": "true", "detecting.heartbeatHaEnable": "true", "detecting.sql": "SELECT 2"}
    settings = instance(given | enabled | {"detecting.interval.time": "5", "detecting.retry.threshold": "4"})
    assert settings.standby is not None
    assert (settings.standby.host, settings.standby.user, settings.standby.tls) == ("db2", "canal", "required")
    failover = settings.failover
    assert (failover.query, failover.interval_s, failover.retries, failover.window_s) == ("SELECT 2", 5, 4, 90)


def test_filters() -> None:
    settings = instance(
        {
            "filter.regex": "shop\\..*,crm\\.a",
            "filter.black.regex": "",
            "filter.field": "shop.a:id/name",
            "filter.black.field": "shop.b:secret",
            "filter.query.dcl": "true",
            "filter.dml.delete": "TRUE",
            "filter.transaction.entry": "true",
        }
    )
    assert (settings.filter.allow, settings.filter.deny) == (("shop\\..*,crm\\.a",), ())
    assert [rule.table for rule in settings.filter.columns] == ["shop\\.a", "shop\\.b"]
    assert settings.filter.kinds == ("insert", "update", "ddl", "query", "transaction")
    assert settings.canal.transactions is False
    assert instance({"filter.rows": "true"}).filter.kinds == ("ddl", "query", "transaction")


def test_the_store() -> None:
    settings = instance({"memory.batch.mode": "ITEMSIZE", "memory.buffer.size": "1024", "get.ddl.isolation": "true"})
    assert (settings.store.slots, settings.store.memory, settings.canal.unit) == (1024, 64 << 20, "items")
    assert settings.canal.ddl_alone is True
    settings = instance({"memory.buffer.size": "4194304", "memory.buffer.memunit": "4096"})
    assert (settings.store.memory, settings.canal.unit_bytes) == (16 << 30, 4096), "canal's overflows here"
    assert instance({"memory.buffer.size": "16"}).store.memory == 1 << 16


def test_where_cursors_are_kept() -> None:
    xml = "canal.instance.global.spring.xml"
    settings = instance(shared={xml: "classpath:spring/default-instance.xml", "canal.zookeeper.flush.period": "500"})
    assert (settings.meta_kind, settings.meta.period_s, settings.zookeeper) == ("period-mixed", 0.5, "127.0.0.1:2181")
    settings = instance(shared={xml: "classpath:spring/default-instance.xml", "canal.zkServers": "zk1:2181,zk2:2181"})
    assert settings.zookeeper == "zk1:2181,zk2:2181"
    settings = instance(shared={xml: "classpath:spring/memory-instance.xml"})
    assert (settings.meta_kind, settings.data_dir) == ("memory", None)
    settings = instance(shared={xml: "memory-instance.xml", "canal.instance.example.spring.xml": "file-instance.xml"})
    assert settings.meta_kind == "file"
    assert instance(shared={"canal.file.data.dir": "../data"}).data_dir == Path("/opt/canal/data")
    assert instance(shared={"canal.file.data.dir": "/data"}).data_dir == Path("/data")
    assert instance(shared={"canal.auto.reset.latest.pos.mode": "true"}).on_purged == "latest"


@pytest.mark.parametrize(("working", "given"), [("/", "/conf"), ("", "conf"), ("bin", "../conf"), ("conf", ".")])
def test_cursors_are_found_by_whatever_path_the_folder_is_named(
    working: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "conf"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / working if working != "/" else "/")
    folder = Path(f"{tmp_path}{given}" if working == "/" else given)
    conf = tmp_path / "conf"
    for text, data_folder in (
        ("${canal.conf.dir}", conf),
        ("../conf", conf),
        ("../data", tmp_path / "data"),
        ("/d", "/d"),
    ):
        shared = SHIPPED_SERVER | {"canal.file.data.dir": text}
        for settings in (
            read_canal_server(shared, folder, {}).settings,
            read_canal_instance("example", SHIPPED_INSTANCE, shared, folder, {}).settings,
        ):
            assert settings["data_dir"] == Path(data_folder), (text, settings["data_dir"])


def test_a_conf_dir_that_is_another_folder_is_refused(tmp_path: Path) -> None:
    """canal has instances and cursors there; one that does not exist here was copied with the file."""
    for name in ("conf", "other"):
        (tmp_path / name).mkdir()
    for text in ("../conf", str(tmp_path / "conf"), "../conf/../conf", "/nowhere/conf"):
        imported = read_canal_server(SHIPPED_SERVER | {"canal.conf.dir": text}, tmp_path / "conf", {})
        assert imported.settings["data_dir"] == tmp_path / "conf"
    with pytest.raises(ConfigurationError, match=r"canal.conf.dir names .*other, and .*conf is served"):
        read_canal_server(SHIPPED_SERVER | {"canal.conf.dir": "../other"}, tmp_path / "conf", {})


def test_the_environment_counts_most_then_the_instance_then_the_destination() -> None:
    key = "canal.instance.filter.regex"
    for_one = {"canal.instance.shop.filter.regex": "b.b", key: "a.a"}
    imported = read_canal_instance("shop", {"canal.instance.master.address": "db"}, for_one, FOLDER, {})
    assert imported.settings["filter"]["allow"] == ["b.b"]
    own = {"canal.instance.master.address": "db", key: "c.c"}
    assert read_canal_instance("shop", own, for_one, FOLDER, {}).settings["filter"]["allow"] == ["c.c"]
    for name in (key, "CANAL_INSTANCE_FILTER_REGEX"):
        imported = read_canal_instance("shop", own, for_one, FOLDER, {name: "d.d"})
        assert imported.settings["filter"]["allow"] == ["d.d"]
    assert server(environment={"CANAL_PORT": "tcp://10.0.0.1:11111"}).canal.port == 11111, "Kubernetes' own variable"
    assert server(environment={"CANAL_PORT": "7"}).canal.port == 7


def test_a_destination_may_be_called_as_a_part_of_a_key() -> None:
    shared = {"canal.instance.master.address": "db1", "canal.instance.master.mode": "spring"}
    imported = read_canal_instance("master", {}, shared, FOLDER, {})
    assert imported.settings["source"]["host"] == "db1"


def test_the_server() -> None:
    settings = server({"canal.user": "canal", "canal.passwd": HASH, "canal.register.ip": "10.0.0.7"})
    assert settings.canal.stored_hash == bytes.fromhex(HASH)
    assert (settings.canal.allow_anonymous, settings.address) == (False, "10.0.0.7:11111")
    assert server({"canal.withoutNetty": "true"}).canal.port is None
    assert server({"canal.metrics.pull.port": "-1"}).admin.port is None
    assert server({"canal.admin.passwd": ""}).canal_admin.port is None
    assert server({"canal.zkServers": "zk:2181"}).zookeeper == "zk:2181"
    given = {"canal.auto.scan": "false", "canal.destinations": "a, b", "canal.destinations.expr": "s{1-2}"}
    assert (server(given).destinations, server(given).scan_s) == (("a", "b", "s1", "s2"), 0)
    given = {"canal.admin.manager": "127.0.0.1:8089", "canal.admin.register.auto": "true"}
    manager = server(given | {"canal.admin.register.cluster": "east"}).manager
    assert manager is not None
    assert (manager.url, manager.user, manager.announce) == ("http://127.0.0.1:8089", "admin", True)
    assert manager.stored_hash == bytes.fromhex(ADMIN_HASH)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"enableDruid": "true"}, "enableDruid: true is refused"),
        ({"multi.stream.on": "true"}, "PolarDB-X"),
        ({"master.trustCertificateKeyStoreUrl": "file:x.jks"}, "key stores are not supported"),
        ({"standby.clientCertificateKeyStoreUrl": "file:x.jks"}, "key stores are not supported"),
        ({"master1.address": "db1"}, "a group of sources"),
        ({"master.sslMode": "MAYBE"}, "it is one of DISABLED"),
        ({"master.address": ""}, "says no source"),
        ({"master.address": "db1:s3cret"}, "it is host:port"),
        ({"master.position": "s3cret"}, "it is a whole number"),
        ({"filter.rows": "s3cret"}, "it is true or false"),
        ({"memory.batch.mode": "s3cret"}, "MEMSIZE or ITEMSIZE"),
        ({"global.spring.xml": "classpath:spring/group-instance.xml"}, "group-instance.xml is not read"),
        ({"dbPassword": "s3cret${nowhere}"}, "dbPassword refers with"),
        ({"dbPassword": "s3cret${canal.instance.dbPassword}"}, "refers to itself"),
        ({"master.timestamp": "99999999999999999999"}, "milliseconds since 1970"),
    ],
)
def test_what_an_instance_is_refused_for(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as raised:
        instance(changes)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"canal.serverMode": "kafka"},
            "canal.serverMode: only tcp is accepted: Penstock does not write to message queues",
        ),
        ({"canal.zkServers": "a:2181;b:2181"}, "several clusters"),
        ({"canal.instance.global.mode": "manager"}, "canal.admin.manager says none"),
        ({"canal.instance.global.mode": "other"}, "spring or manager"),
        ({"canal.destinations": "a{1"}, "is no list of destinations"),
        ({"canal.port": "s3cret"}, "canal.port: it is a whole number"),
    ],
)
def test_what_a_server_is_refused_for(changes: dict[str, str], words: str) -> None:
    given = SHIPPED_SERVER | {"canal.instance.global.manager.address": ""} | changes
    with pytest.raises(ConfigurationError, match=words):
        read_canal_server(given, FOLDER, {})


@pytest.mark.parametrize("changes", [{"canal.user": "canal"}, {"canal.passwd": "s3cret"}])
def test_a_password_that_is_none(changes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="password") as raised:
        server(changes)
    assert "s3cret" not in str(raised.value)


def test_unknown_keys_are_reported_where_they_are() -> None:
    shared = {"canal.instance.filter.regexp": "a", "canal.x": "b", "canal.instance.shop.lazy": "true"}
    ignored = dict(read_canal_server(SHIPPED_SERVER | shared, FOLDER, {}).ignored)
    assert ignored["canal.x"] == ignored["canal.instance.filter.regexp"] == "not a property of canal"
    own = SHIPPED_INSTANCE | {"spring.x": "c", "canal.port": "1"}
    ignored = dict(read_canal_instance("shop", own, SHIPPED_SERVER | shared, FOLDER, {}).ignored)
    assert ignored["spring.x"] == "not a property of canal"
    assert ignored["canal.port"] == "it counts in canal.properties only"
    assert "canal.x" not in ignored


@pytest.mark.parametrize("is_own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize(
    ("name", "value", "manager", "refused", "ignored"),
    [
        ("mode", "spring", "", "", ""),
        ("mode", "manager", "m:8089", "", ""),
        ("mode", "Manager", "", "canal-admin provides all instances or none", ""),
        ("mode", "other", "", "spring or manager", ""),
        ("mode", "spring", "m:8089", "", "canal-admin provides all instances of this server"),
        ("manager.address", "m:8089", "m:8089", "", ""),
        ("manager.address", "${canal.admin.manager}", "m:8089", "", ""),
        ("manager.address", "n:8089", "m:8089", "and this is another", ""),
        ("manager.address", "n:8089", "", "", "this server has no canal-admin"),
        ("lazy", "true", "", "", "starts as soon as it is configured"),
        ("spring.xml", "classpath:spring/group-instance.xml", "", "group-instance.xml is not read", ""),
    ],
)
def test_what_is_said_for_one_destination_is_not_dropped(
    name: str, value: str, manager: str, refused: str, ignored: str, is_own: bool
) -> None:
    key, own = f"canal.instance.shop.{name}", {"canal.instance.master.address": "db"}
    shared = SHIPPED_SERVER | {"canal.admin.manager": manager}
    (own if is_own else shared)[key] = value

    def read(destination: str) -> dict[str, str]:
        of_server = () if is_own else read_canal_server(shared, FOLDER, {}).ignored
        return dict([*of_server, *read_canal_instance(destination, own, shared, FOLDER, {}).ignored])

    if refused:
        with pytest.raises(ConfigurationError, match=re.escape(refused)):
            read("shop")
    else:
        assert ignored in read("shop").get(key, "")
        assert bool(ignored) == (key in read("shop"))
    if not is_own:
        assert (name == "lazy") == (key in read("crm")), "it is not about that one"


def test_where_cursors_of_one_destination_are_kept() -> None:
    shared = SHIPPED_SERVER | {"canal.instance.shop.spring.xml": "classpath:spring/memory-instance.xml"}
    own = {"canal.instance.master.address": "db"}
    kinds = [read_canal_instance(name, own, shared, FOLDER, {}).settings["meta"]["kind"] for name in ("shop", "crm")]
    assert kinds == ["memory", "file"]


def test_the_store_has_keys_of_its_own() -> None:
    """Without them it is canal's: memory, and no client waits for another."""
    own = {
        "canal.instance.master.address": "db",
        "penstock.store.kind": "mixed",
        "penstock.store.memory": "64MiB",
    }
    own |= {"penstock.store.limit": "2GiB", "penstock.store.slow_clients": "backpressure"}
    shared = {"penstock.store.slow_clients": "catch_up", "penstock.store.absent_after_s": "30"}
    store = InstanceSettings.model_validate(read_canal_instance("shop", own, shared, FOLDER, {}).settings).store
    assert (store.kind, store.memory, store.limit, store.slots) == ("mixed", 64 << 20, 2 << 30, None)
    assert (store.slow_clients, store.absent_after_s) == ("backpressure", 30)
    canal = read_canal_instance("shop", {"canal.instance.master.address": "db"}, {}, FOLDER, {}).settings["store"]
    assert canal == {"slots": 16384, "memory": 16 << 20, "slow_clients": "catch_up"}


TABLE: list[tuple[str, Any]] = [*SERVER_KEYS.keys.items(), *INSTANCE_KEYS.keys.items()]


@pytest.mark.parametrize(("key", "rule"), TABLE, ids=[key for key, _ in TABLE])
def test_every_rule_does_what_it_says(key: str, rule: Honoured | Refused | Ignored) -> None:
    """An ignored one is reported; the others are not unknown."""

    def read() -> dict[str, str]:
        if key in SERVER_KEYS.keys:
            return dict(read_canal_server({key: "1"}, FOLDER, {}).ignored)
        given = {"canal.instance.master.address": "db1"} | {key: "1"}
        return dict(read_canal_instance("shop", given, {}, FOLDER, {}).ignored)

    if isinstance(rule, Ignored):
        assert read()[key] == rule.reason
    elif isinstance(rule, Refused):
        with pytest.raises(ConfigurationError, match=re.escape(rule.reason)):
            read()
    else:
        with suppress(ConfigurationError):  # 1 is no value for all of them
            assert read().get(key) != "not a property of canal"
