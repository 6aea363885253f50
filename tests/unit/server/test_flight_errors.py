"""What a call of Flight that fails says to its client, and to the log of the server."""

import json
import logging

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


def test_keys_of_rows_are_not_logged() -> None:
    request = FlightRequest("shop", (TableName("shop", "person"),), end="latest", chunk=(("alice",), None))
    assert json.loads(request.describe()) == {
        "destination": "shop", "form": "decoded", "tables": ["shop.person"], "start": "latest", "end": "latest"
    }  # fmt: skip
