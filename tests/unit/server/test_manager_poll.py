"""An HTTP manager that is asked as canal's admin is: by checksum, with a login."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from penstock.backoff import Backoff
from penstock.config import ManagerSettings
from penstock.errors import ConfigurationError
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.config_source import open_config_source
from penstock.server.manager_poll import ManagerConfigSource
from tests.support.recorded_destinations import RecordedDestinations, poll

HASH = "4acfe3202a5ff5cf467898fc58aab1d615029441"  # of the password admin
PREFIX = "/api/v1/config/"


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()  # noqa: S324 - what canal-admin compares


class Manager(ThreadingHTTPServer):
    """What canal-admin does: content only for another checksum, and an error code in the body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.server_text = "canal.port=11111\ncanal.instance.global.spring.xml=classpath:spring/memory-instance.xml\n"
        self.instances: dict[str, str] = {}
        self.stopped: set[str] = set()
        self.listed: str | None = None
        self.asked: list[tuple[str, dict[str, str], bool]] = []
        self.raw: bytes | None = None
        self.redirect: str | None = None

    def content(self, what: str) -> str | None:
        if what == "server_polling":
            return self.server_text
        if what == "instances_polling":
            return ",".join(self.instances) if self.listed is None else self.listed
        return self.instances.get(what.removeprefix("instance_polling/"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Manager

    def do_GET(self) -> None:
        manager, parts = self.server, urlsplit(self.path)
        what = unquote(parts.path.removeprefix(PREFIX))
        query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if manager.redirect:
            self.send_response(302)
            self.send_header("Location", manager.redirect)
            self.end_headers()
            return
        if (self.headers["user"], self.headers["passwd"]) != ("admin", HASH):
            answer: dict[str, Any] = {"code": 50000, "message": "auth :admin is failed"}
        else:
            content = manager.content(what)
            is_new = content is not None and md5(content) != query["md5"]
            manager.asked.append((what, query, is_new))
            status = "0" if what.rpartition("/")[2] in manager.stopped else "1"
            answer = {"code": 20000, "data": {"content": content, "status": status} if is_new else None}
        body = json.dumps(answer).encode() if manager.raw is None else manager.raw
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        pass


@pytest.fixture
def manager() -> Iterator[Manager]:
    with Manager() as manager:
        thread = threading.Thread(target=manager.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield manager
        manager.shutdown()
        thread.join(10)


def of(manager: Manager, tmp_path: Path, local: dict[str, str] | None = None, **changes: Any) -> ManagerConfigSource:
    login = {"user": "admin", "password": "admin"} | changes
    settings = ManagerSettings.model_validate({"url": manager.url} | login)
    return ManagerConfigSource(settings, ("10.0.0.7", 11110), tmp_path, local or {}, {})


def instance(host: str) -> str:
    return f"canal.instance.master.address={host}:3306\ncanal.instance.filter.regex=shop\\\\..*\n"


def test_what_the_manager_says(manager: Manager, tmp_path: Path) -> None:
    manager.instances = {"a": instance("db1"), "b": "canal.instance.enableDruid=true", "c": instance("db3")}
    manager.stopped = {"c"}
    snapshot = of(manager, tmp_path, {"canal.port": "7"}, announce=True, cluster="east", name="one").read()
    assert snapshot.server.canal.port == 7, "the local file counts for more"
    assert [*snapshot.instances] == ["a", "b"]
    settings = snapshot.instances["a"].settings
    assert settings is not None
    assert (settings.source.address, settings.filter.allow, settings.meta_kind) == (
        "db1:3306",
        ("shop\\..*",),
        "memory",
    )
    assert "enableDruid: true is refused" in str(snapshot.instances["b"].error)
    what, query, _ = manager.asked[0]
    assert (what, query) == (
        "server_polling",
        {"ip": "10.0.0.7", "port": "11110", "md5": "", "register": "1", "cluster": "east", "name": "one"},
    )


def test_only_what_changed_is_read_again(manager: Manager, tmp_path: Path) -> None:
    manager.instances = {"a": instance("db1"), "b": instance("db2")}
    asking = of(manager, tmp_path)
    first = asking.read()
    assert all(is_new for _, _, is_new in manager.asked)
    manager.asked.clear()
    assert asking.read() == first
    assert [is_new for _, _, is_new in manager.asked] == [False] * 4
    manager.instances["b"] = instance("db9")
    manager.asked.clear()
    snapshot = asking.read()
    assert [what for what, _, is_new in manager.asked if is_new] == ["instance_polling/b"]
    changed = {name for name in "ab" if snapshot.instances[name].checksum != first.instances[name].checksum}
    assert changed == {"b"}
    del manager.instances["a"]
    assert [*asking.read().instances] == ["b"]
    manager.instances.clear()
    assert asking.read().instances == {}


def test_an_instance_that_cannot_be_had_is_its_own_problem(manager: Manager, tmp_path: Path) -> None:
    manager.instances = {"a": instance("db1")}
    manager.listed = "a,gone,../../etc"
    snapshot = of(manager, tmp_path).read()
    assert snapshot.instances["a"].settings is not None
    assert "has nothing for gone" in str(snapshot.instances["gone"].error)
    assert snapshot.instances["../../etc"].error


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"<html>", "does not answer as canal-admin does"),
        (b"[]", "does not answer as canal-admin does"),
        (b'{"code": 20000, "data": "x"}', "does not answer as canal-admin does"),
        (b'{"code": 1, "message": "no\\nway"}', "refuses, with code 1: no way"),
        (b"x" * ((4 << 20) + 1), "more than 4194304 bytes"),
    ],
)
def test_strange_answers(manager: Manager, tmp_path: Path, raw: bytes, words: str) -> None:
    manager.raw = raw
    with pytest.raises(ConfigurationError, match=words) as raised:
        of(manager, tmp_path).read()
    assert "\n" not in str(raised.value)


def test_a_wrong_password_and_no_manager(manager: Manager, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="auth :admin is failed") as raised:
        of(manager, tmp_path, password="s3cret").read()
    assert "s3cret" not in str(raised.value)
    settings = ManagerSettings.model_validate({"url": "http://127.0.0.1:1", "password": "s3cret"})
    with pytest.raises(ConfigurationError, match=r"http://127\.0\.0\.1:1 cannot be asked"):
        ManagerConfigSource(settings, ("127.0.0.1", 1), tmp_path, {}, {}).read()


def test_the_login_goes_to_nobody_else(manager: Manager, tmp_path: Path) -> None:
    with Manager() as other:
        manager.redirect = f"{other.url}{PREFIX}server_polling"
        with pytest.raises(ConfigurationError, match="answers 302"):
            of(manager, tmp_path).read()
        assert other.asked == []


def test_files_that_name_a_manager(manager: Manager, tmp_path: Path) -> None:
    manager.instances = {"a": instance("db1")}
    local = f"canal.admin.manager={manager.url}\ncanal.admin.passwd={HASH}\ncanal.register.ip=10.0.0.9\ncanal.port=7\n"
    (tmp_path / "canal.properties").write_text(local, encoding="utf-8")
    conf, every_s = open_config_source(tmp_path)
    snapshot = conf.read()
    assert ([*snapshot.instances], snapshot.server.canal.port, every_s) == (["a"], 7, 5)
    assert manager.asked[0][1]["ip"] == "10.0.0.9"
    assert not conf.has_changed()
    (tmp_path / "canal.properties").unlink()
    manager.server_text = "canal.port=8\n"
    login = f"{{url: '{manager.url}', user: admin, password: admin, poll_s: 3}}"
    yaml = f"data_dir: /data\ncanal: {{port: 9}}\nmanager: {login}"
    (tmp_path / "server.yml").write_text(yaml, encoding="utf-8")
    conf, every_s = open_config_source(tmp_path / "server.yml")
    snapshot = conf.read()
    assert ([*snapshot.instances], snapshot.server.canal.port, every_s) == (["a"], 9, 3)
    settings = snapshot.instances["a"].settings
    assert settings is not None
    assert (settings.meta_kind, str(settings.data_dir)) == ("file", "/data")
    (tmp_path / "server.yml").write_text("scan_s: 2", encoding="utf-8")
    conf, every_s = open_config_source(tmp_path)
    assert (conf.read().server.scan_s, every_s) == (2, 2)


def test_the_monitor_runs_what_the_manager_says(manager: Manager, tmp_path: Path) -> None:
    manager.instances = {"a": instance("db1")}
    runs = RecordedDestinations()
    monitor = ConfigMonitor(of(manager, tmp_path), runs, 0.02, backoff=Backoff(0.002, 0.02))
    monitor.start()
    try:
        assert poll(lambda: runs.called("start", "a"))
        manager.raw = b"broken"
        assert poll(lambda: monitor.problems)
        assert [*runs.running] == ["a"]
        manager.raw = None
        manager.instances = {"a": instance("db2"), "b": instance("db3")}
        assert poll(lambda: runs.called("reload", "a") and runs.called("start", "b"))
        manager.stopped = {"b"}
        manager.instances["b"] = instance("db4")
        assert poll(lambda: runs.called("stop", "b") and not monitor.problems)
    finally:
        monitor.stop()
