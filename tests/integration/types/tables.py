"""Which tables a server gets: all column types that it has."""

from collections.abc import Sequence

from tests.integration.types.catalogue import document, label, layout, moment, number, shape, special, text
from tests.integration.types.column import Table


def tables_of(name: str, charsets: Sequence[str]) -> list[Table]:
    """`charsets` are those of the server, without `binary`."""
    is_mariadb = name.startswith("mariadb")
    tables = [
        number.integers(),
        number.bits(),
        number.decimals(largest_scale=38 if is_mariadb else 30),
        number.reals(),
        moment.moments(),
        moment.odd_dates(),
        text.texts(),
        text.binaries(),
        text.charsets(charsets),
        label.labels(),
        shape.shapes(columns_have_srid=name in {"mysql80", "mysql9"}),
        layout.nulls(),
        layout.generated(has_invisible=name in {"mariadb", "mariadb11", "mysql9"}),
        *layout.keyed(),
    ]
    if is_mariadb:
        tables += [document.text_documents(), special.addresses(), special.compressed()]
    else:
        tables += [document.documents(), document.patched()]
    if name == "mysql9":
        tables += [special.vectors(), layout.indexed_expressions()]
    return tables
