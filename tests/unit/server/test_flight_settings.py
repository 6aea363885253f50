"""What Flight's settings ask for and is not built is refused, not forgotten."""

import pytest

from penstock.config import ServerSettings
from penstock.errors import ConfigurationError
from penstock.server import Server


@pytest.mark.parametrize("flight", [{"tokens": {"spark": "s3cret"}}, {"tls_cert": "a.pem", "tls_key": "b.pem"}])
def test_no_token_is_taken_that_nobody_would_ask_for(flight: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="not built yet"):
        Server(ServerSettings.model_validate({"flight": {"port": 0} | flight}))
