"""HTTP as it is on the wire: certificates are verified, redirects are not followed, secrets stay secret."""

import http.server
import ipaddress
import logging
import pickle
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock.errors import SinkError, SinkUnavailableError
from penstock.search.transport import PooledTransport


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every GET, with a redirect on /elsewhere and with `status` otherwise; notes who asked."""

    asked: list[tuple[str, str | None]]
    status = 200

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["authorization"]))
        if not self.status:  # break the connection
            self.close_connection = True
            return
        self.send_response(302 if self.path == "/elsewhere" else self.status)
        if self.path == "/elsewhere":
            self.send_header("location", "/other")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(
    certificate: Path | None = None, *, status: int = 200, port: int = 0
) -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    asked: list[tuple[str, str | None]] = []
    noting = type("Noting", (Handler,), {"asked": asked, "status": status})
    with http.server.HTTPServer(("127.0.0.1", port), noting) as server:
        # A client that refuses the certificate ends the handshake; that is its business.
        server.handle_error = lambda *_: None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="test-http")
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join(10)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody but its owner has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "penstock test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


def test_a_certificate_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with serving(certificate) as (port, asked):
        transport = PooledTransport(f"https://me:secret@127.0.0.1:{port}", timeout_s=10)
        with pytest.raises(SinkError, match="no trusted connection") as caught:
            transport.request("GET", "/")
        transport.close()
    assert not caught.value.transient
    assert asked == []


def test_a_named_authority_is_trusted(certificate: Path) -> None:
    with serving(certificate) as (port, asked):
        transport = PooledTransport(f"https://me:secret@127.0.0.1:{port}", timeout_s=10, ca_certs=str(certificate))
        assert transport.request("GET", "/x").status == 200
        transport.close()
    assert asked == [("/x", "Basic bWU6c2VjcmV0")]


def test_a_redirect_is_not_followed() -> None:
    with serving() as (port, asked):
        transport = PooledTransport(f"http://me:secret@127.0.0.1:{port}/base", timeout_s=10)
        assert transport.request("GET", "/y").status == 200
        transport.close()
        other = PooledTransport(f"http://127.0.0.1:{port}", timeout_s=10)
        assert other.request("GET", "/elsewhere").status == 302
        other.close()
    assert [path for path, _ in asked] == ["/base/y", "/elsewhere"]


def test_nobody_there_is_transient_and_keeps_the_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(SinkUnavailableError) as caught:
        PooledTransport("http://me:secret@127.0.0.1:1", timeout_s=1).request("GET", "/")
    assert "secret" not in str(caught.value) + repr(caught.value.__cause__) + caplog.text
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args  # noqa: S301 - our own


def nodes(*ports: int) -> str:
    return ",".join(f"http://me:secret@127.0.0.1:{port}" for port in ports)


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_node_that_is_down_is_passed_over(closed_port: int, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as (port, asked), caplog.at_level(logging.WARNING):
        transport = PooledTransport(nodes(closed_port, port), timeout_s=10)
        assert [transport.request("GET", path).status for path in ("/a", "/b")] == [200, 200]
        transport.close()
    assert [path for path, _ in asked] == ["/a", "/b"]
    assert caplog.text.count("search node failed, not used until its next try") == 1
    assert "secret" not in caplog.text


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_node_that_cannot_answer_is_passed_over(status: int) -> None:
    with serving(status=status) as (bad, refused), serving() as (good, asked):
        transport = PooledTransport(nodes(bad, good), timeout_s=10)
        assert [transport.request("GET", path).status for path in ("/a", "/b")] == [200, 200]
        assert (len(refused), len(asked)) == (1, 2)
        transport.close()


@pytest.mark.parametrize(("status", "is_repeatable"), [(500, True), (429, True), (404, True), (503, False), (0, True)])
def test_what_another_node_would_not_answer_better_is_asked_once(status: int, is_repeatable: bool) -> None:
    with serving(status=status) as (bad, refused), serving() as (good, asked):
        transport = PooledTransport(nodes(bad, good), timeout_s=10)
        if status:
            assert transport.request("GET", "/a", is_repeatable=is_repeatable).status == status
        else:
            with pytest.raises(SinkUnavailableError):
                transport.request("GET", "/a")
        assert (len(refused), len(asked)) == (1, 0)
        transport.close()


def test_the_last_answer_counts_when_no_node_can_answer(closed_port: int) -> None:
    with serving(status=503) as (bad, refused), serving(status=502) as (worse, asked):
        transport = PooledTransport(nodes(bad, worse), timeout_s=10)
        assert [transport.request("GET", "/a").status for _ in range(2)] == [502, 502]
        assert (len(refused), len(asked)) == (2, 2)
        transport.close()
    transport = PooledTransport(nodes(closed_port, closed_port), timeout_s=10)
    with pytest.raises(SinkUnavailableError, match=f"no answer from http://127.0.0.1:{closed_port}") as caught:
        transport.request("GET", "/a")
    assert "secret" not in str(caught.value)
    transport.close()


def test_a_node_that_returns_is_used_again() -> None:
    now = [0.0]
    with serving() as (second, asked):
        with serving() as (first, _):
            transport = PooledTransport(nodes(first, second), timeout_s=10, clock=lambda: now[0])
            assert transport.request("GET", "/a").status == 200
            assert asked == []
        transport.request("GET", "/b")  # the first one is down
        with serving(port=first) as (_, returned):
            transport.request("GET", "/c")
            assert ([path for path, _ in asked], returned) == (["/b", "/c"], [])
            now[0] += 100.0
            transport._leave_out(transport._nodes[1])
            transport.request("GET", "/d")
            assert [path for path, _ in returned] == ["/d"]
            transport.close()
