"""The URL of a search server: read exactly, shown without its password."""

import base64

import pytest

from penstock.errors import ConfigurationError
from penstock.search.http import HttpIndex
from penstock.search.transport import PooledTransport


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://localhost:9200", "http://localhost:9200"),
        ("https://me:se%20cret@search.example/", "https://search.example"),
        ("https://me:se%20cret@[::1]:9200/behind/proxy/", "https://[::1]:9200/behind/proxy"),
        ("http://me:se,cret@a:9200, https://me:secret@b", "http://a:9200, https://b"),
    ],
)
def test_the_address_is_shown_without_credentials(url: str, where: str) -> None:
    transport = PooledTransport(url)
    index = HttpIndex(transport, "things")
    assert transport.where == where
    for shown in (repr(transport), repr(index), str(vars(index)["_where"])):
        assert where in shown
        assert "cret" not in shown
        assert "me:" not in shown


def test_credentials_are_decoded_into_the_header() -> None:
    (node,) = PooledTransport("https://me:p%40ss%3Aword@search.example")._nodes
    assert base64.b64decode(node.headers["authorization"].removeprefix("Basic ")) == b"me:p@ss:word"


@pytest.mark.parametrize("key", ["aWQ6c2VjcmV0", "id:secret"])
def test_an_api_key_is_sent_encoded_to_every_node_and_shown_nowhere(key: str) -> None:
    transport = PooledTransport("https://a,https://b", api_key=key)
    assert [node.headers["authorization"] for node in transport._nodes] == ["ApiKey aWQ6c2VjcmV0"] * 2
    assert "aWQ6" not in repr(transport) + transport.where
    assert "secret" not in repr(transport) + transport.where


def test_an_api_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_INDEX_API_KEY", "id:secret")
    for given, sent in ((None, "ApiKey aWQ6c2VjcmV0"), ("own", "ApiKey own"), ("", None)):
        transport = HttpIndex.open("https://a", "things", api_key=given)._requests.transport
        assert isinstance(transport, PooledTransport)
        assert transport._nodes[0].headers.get("authorization") == sent


def test_an_authority_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_INDEX_CA", "/etc/ca.pem")
    for given, used in ((None, "/etc/ca.pem"), ("/own.pem", "/own.pem"), ("", None)):
        transport = HttpIndex.open("https://a", "things", ca_certs=given)._requests.transport
        assert isinstance(transport, PooledTransport)
        assert transport._pool.connection_pool_kw["ca_certs"] == used


@pytest.mark.parametrize("key", ["id: secret", "secret\r\nx: y", "secrét"])
def test_an_api_key_that_no_header_takes_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError, match="API key") as caught:
        PooledTransport("https://a", api_key=key)
    assert "secr" not in str(caught.value)


def test_a_user_and_an_api_key_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match=r"https://b has a user and an API key"):
        PooledTransport("https://a,https://me:pw@b", api_key="id:secret")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "search.example:9200",
        "ftp://me:secret@host",
        "http://",
        "http://me:secret@host:port",
        "http://me:secret@h/?q=1",
        "http://a:9200,http://",
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PooledTransport(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("name", ["", "*", "a,b", "_all", "-x", "A", "a/b", "a b", "..", "a?b", "a#b", "cluster:index"])
def test_a_name_is_of_one_index(name: str) -> None:
    with pytest.raises(ConfigurationError, match="one index"):
        HttpIndex(PooledTransport("http://localhost:9200"), name)


def test_nodes_that_failed_are_tried_last_until_their_time_is_over() -> None:
    now = [100.0]
    transport = PooledTransport("http://a,http://b,http://c", clock=lambda: now[0])
    assert transport._choose_nodes() == [0, 1, 2]
    transport._current = 1
    assert transport._choose_nodes() == [1, 2, 0]
    transport._leave_out(transport._nodes[1])
    assert transport._choose_nodes() == [2, 0, 1]
    now[0] += 0.5
    transport._leave_out(transport._nodes[2])
    transport._leave_out(transport._nodes[0])
    assert transport._choose_nodes() == [1, 2, 0]
    now[0] += 60.0
    assert transport._choose_nodes() == [1, 2, 0]
    for _ in range(20):
        transport._leave_out(transport._nodes[1])
    assert transport._nodes[1].left_out_until == now[0] + 30.0
