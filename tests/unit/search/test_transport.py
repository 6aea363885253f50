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
    ],
)
def test_the_place_is_shown_without_credentials(url: str, where: str) -> None:
    transport = PooledTransport(url)
    index = HttpIndex(transport, "things")
    assert transport.where == where
    for shown in (repr(transport), repr(index), str(vars(index)["_where"])):
        assert where in shown
        assert "cret" not in shown
        assert "me:" not in shown


def test_credentials_are_decoded_into_the_header() -> None:
    headers = PooledTransport("https://me:p%40ss%3Aword@search.example")._pool.headers
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"me:p@ss:word"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "search.example:9200",
        "ftp://me:secret@host",
        "http://",
        "http://me:secret@host:port",
        "http://me:secret@h/?q=1",
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
