"""Without the optional libraries the package imports, and each adapter says what to install."""

import importlib
import sys

import pytest

import penstock
import penstock.search
from penstock.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("embedded", "tantivy", "embedded"),
        ("embedded", "orjson", "search"),
        ("http", "orjson", "search"),
        ("http", "urllib3", "search"),
    ],
)
def test_an_adapter_names_its_extra(monkeypatch: pytest.MonkeyPatch, module: str, library: str, extra: str) -> None:
    # Importing the package again also hangs the new one into `penstock`; this puts the old one back.
    monkeypatch.setattr(penstock, "search", sys.modules["penstock.search"])
    for name in [name for name in sys.modules if name.startswith("penstock.search")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    importlib.import_module("penstock.search")
    with pytest.raises(MissingExtraError, match=rf"penstock\[{extra}\]"):
        importlib.import_module(f"penstock.search.{module}")
