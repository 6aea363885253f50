"""What a subscription takes besides its client is said by name."""

from pathlib import Path

import pytest

import penstock
from tests.support.admin_support import served, settings_with, shop_folder


def test_all_but_the_client_is_said_by_name(tmp_path: Path) -> None:
    with (
        served(settings_with(shop_folder(tmp_path / "logs"))) as server,
        penstock.connect(server.address, destination="shop") as there,
    ):
        with pytest.raises(TypeError, match="positional argument"):
            there.subscribe(7, "shop\\..*")  # type: ignore[misc]
        with there.subscribe(7, filter="shop\\..*", tables=["shop.product"], start="earliest") as changes:
            assert next(batch.num_rows for batch in changes if batch.num_rows) > 0
