"""Whatever a caller of Arrow Flight asks for is answered, or refused in one line, soon and without a traceback."""

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pyarrow.flight as fl
import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.capture import source_of

HUGE = 1 << 70
POSITION = {"epoch": 0, "file": "binlog.000001", "offset": 4}


@pytest.fixture(scope="module")
def client(mariadb: DatabaseServer) -> Iterator[fl.FlightClient]:
    running = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    running.start()
    client = fl.connect(f"grpc://{running.address}")
    yield client
    client.close()
    running.stop()


def refusal_of(error: Any) -> tuple[str, str]:
    refusal = json.loads(error.extra_info)
    return refusal["error"], refusal["message"]


@pytest.mark.parametrize(
    ("action", "request_"),
    [
        ("latest", {"start": POSITION | {"offset": -1}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"offset": HUGE}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"offset": True}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"epoch": -1}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"epoch": HUGE}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"gtids": "nonsense"}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"gtids": 7}, "max_bytes": 1}),
        ("latest", {"start": POSITION | {"file": ["x"]}, "max_bytes": 1}),
        ("latest", {"start": "binlog.000001:-4", "max_bytes": 1}),
        ("latest", {"start": POSITION, "acked": POSITION | {"offset": -1}, "max_bytes": 1}),
        ("latest", {"start": POSITION, "acked": 7, "max_bytes": 1}),
        ("latest", {"start": POSITION, "max_bytes": -1}),
        ("latest", {"start": POSITION, "max_bytes": 0}),
        ("latest", {"start": POSITION, "max_bytes": HUGE}),
        ("latest", {"start": POSITION, "max_bytes": 1, "wait_ms": "long"}),
        ("ack", {"end": POSITION | {"offset": -1}}),
        ("ack", {"client": 7, "batch": -HUGE}),
        ("rollback", {"client": 7, "batch": HUGE}),
        ("subscribe", {"client": 8, "start": POSITION | {"offset": -1}}),
        ("subscribe", {"client": 8, "start": "time:nonsense"}),
        ("subscribe", {"client": 8, "start": "gtid:nonsense"}),
        ("subscribe", {"client": 8, "start": 7}),
        ("subscribe", {"client": HUGE}),
        ("describe", {"tables": [f"shop.t{number}" for number in range(5000)]}),
    ],
)
def test_a_request_that_is_none_is_refused_in_one_line(
    client: fl.FlightClient, action: str, request_: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(fl.FlightError) as told:
        list(client.do_action(fl.Action(action, json.dumps(request_).encode())))
    name, message = refusal_of(told.value)
    assert name not in {"PenstockError", "StoreError"}, message
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("ticket", "reason"),
    [
        (json.dumps({"tables": [f"shop.t{number}" for number in range(5000)]}).encode(), "tables"),
        (json.dumps({"tables": ["shop.t"], "columns": [f"c{number}" for number in range(5000)]}).encode(), "columns"),
        (json.dumps({"start": "x" * (2 << 20)}).encode(), "bytes"),
        (b"shop." + b"x" * (2 << 20), "bytes"),
        (json.dumps({"start": POSITION | {"offset": -1}}).encode(), "offset"),
        (json.dumps({"start": POSITION, "end": POSITION | {"offset": -1}}).encode(), "offset"),
    ],
)
def test_a_ticket_has_bounds(client: fl.FlightClient, ticket: bytes, reason: str) -> None:
    began = time.monotonic()
    for call in (lambda: client.do_get(fl.Ticket(ticket)).read_chunk(), lambda: _info(client, ticket)):
        with pytest.raises(fl.FlightError, match=reason) as told:
            call()
        assert refusal_of(told.value)[0] == "ProtocolError"
    assert time.monotonic() - began < 5


def _info(client: fl.FlightClient, ticket: bytes) -> Any:
    return client.get_flight_info(fl.FlightDescriptor.for_command(ticket))
