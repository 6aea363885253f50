"""What a call of Flight that fails says to its client, and to the log of the server."""

import json
import logging
from collections.abc import Iterator

import pyarrow.flight as fl
import pytest

from penstock.errors import NotRunningError, PositionLostError
from penstock.model import TableName
from penstock.server.flight.errors import FlightCall, translate_errors
from penstock.server.flight.request import FlightRequest


def test_an_error_inside_of_the_server_is_logged_with_the_call_that_it_broke(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    call = FlightCall("do_get", "10.0.0.9:40112")
    call.set_request("shop", '{"client": 1001}', 1001)
    with (
        pytest.raises(fl.FlightInternalError, match="an error inside of the server: its log says more"),
        translate_errors(call),
    ):
        raise KeyError("secret")
    (record,) = caplog.records
    assert record.getMessage() == (
        "flight call failed destination=shop call=do_get client=1001 peer=10.0.0.9:40112 request={\"client\": 1001}"
    )  # fmt: skip
    assert record.exc_info


@pytest.mark.parametrize(
    ("error", "kind"),
    [(NotRunningError("it starts"), fl.FlightUnavailableError), (PositionLostError("purged"), fl.FlightServerError)],
)
def test_an_error_of_penstock_reaches_the_client_with_its_class_and_is_not_logged(
    error: Exception, kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(kind) as raised, translate_errors(FlightCall("do_action", "here", "status")):
        raise error
    assert json.loads(raised.value.extra_info) == {"error": type(error).__name__, "message": str(error)}
    assert not caplog.records


class _RefusingServer(fl.FlightServerBase):
    """Refuses every action with the text that it is given."""

    def do_action(self, context: fl.ServerCallContext, action: fl.Action) -> Iterator[fl.Result]:
        del context
        with translate_errors(FlightCall("do_action", "here")):
            raise PositionLostError(action.body.to_pybytes().decode())
        yield fl.Result(b"")


def refuse(text: str) -> str:
    """Return the text of a refusal as it reaches a client."""
    with _RefusingServer("grpc://127.0.0.1:0") as server, fl.connect(f"grpc://127.0.0.1:{server.port}") as client:
        with pytest.raises(fl.FlightServerError) as refused:
            list(client.do_action(fl.Action("refuse", text.encode())))
        refusal = json.loads(refused.value.extra_info)
        assert refusal["error"] == "PositionLostError"
        assert refusal["message"] in str(refused.value)
        return refusal["message"]


def gtids(count: int) -> str:
    return ",".join(f"3e11fa47-71ca-11e1-9e33-c80aa94{number:05}:1-{10**9 + number}" for number in range(count))


def test_a_position_of_many_gtids_reaches_the_client_as_a_whole() -> None:
    text = f"it is lost: begin with startingPosition gtid:{gtids(40)}"
    assert len(text) > 2000
    assert refuse(text) == text


@pytest.mark.parametrize("letter", ["a", "%", "ä", "€", "𝄞", '"'])
def test_a_text_that_is_too_long_for_a_client_is_cut_between_words_and_says_so(letter: str) -> None:
    """A part of a GTID set would be a valid position, and an earlier one."""
    told = refuse(f"table {letter * 100} is lost: begin with startingPosition gtid:{gtids(2000)} {letter * 9000}")
    assert told == f"table {letter * 100} is lost: begin with startingPosition … (the rest is left out)"
    words = " ".join([letter] * 9000)
    told = refuse(words)
    assert told.endswith(f" {letter} … (the rest is left out)")
    assert words.startswith(told.removesuffix(" … (the rest is left out)"))
    assert len(told) > 400


def test_keys_of_rows_are_not_logged() -> None:
    request = FlightRequest("shop", (TableName("shop", "person"),), end="latest", chunk=(("alice",), None))
    assert json.loads(request.describe()) == {
        "destination": "shop", "form": "decoded", "tables": ["shop.person"], "start": "latest", "end": "latest"
    }  # fmt: skip
