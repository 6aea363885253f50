"""What a log stream refuses before it connects."""

import pytest

from penstock.config import SourceSettings
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.source.stream import BinlogStream


def test_a_position_beyond_4_gib_cannot_be_asked_for() -> None:
    stream = BinlogStream(SourceSettings(host="127.0.0.1", port=1), Position("binlog.000007", 1 << 32))
    with pytest.raises(PositionLostError, match=r"1:1 cannot be asked for binlog\.000007:4294967296: .*next file"):
        stream.__enter__()
