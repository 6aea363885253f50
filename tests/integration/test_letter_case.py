"""Tables that are named in other letters than the log has them are refused: their stream would stay empty."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import penstock
from penstock.client import FlightClient
from penstock.config import InstanceSettings, ServerSettings
from penstock.errors import SchemaError
from penstock.server import Server
from penstock.spark.layout import TableLayout
from penstock.spark.options import ReadOptions
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of


def columns_of(server: Server, **options: str) -> list[str]:
    """Return the columns that a Spark query would have."""
    client = FlightClient(server.address)
    try:
        return TableLayout.ask(ReadOptions.of({"server": server.address, **options}), client).schema.names
    finally:
        client.close()


@pytest.mark.mariadb
def test_a_table_in_other_letters_than_the_log_has_is_refused(private_server: Callable[..., Any]) -> None:
    source = private_server("mariadb", options={"lower_case_table_names": 1})
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.item (id INT PRIMARY KEY)", "CREATE TABLE d.size (id INT)")
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(source))))
    server.start()
    try:
        assert columns_of(server, table="d.item")[0] == "id"
        refusal = r"has d\.Item as d\.item \(lower_case_table_names=1\): write it in lower case"
        for options in ({"table": "d.Item"}, {"tables": "d.size,d.Item"}):
            with pytest.raises(SchemaError, match=refusal):
                columns_of(server, **options)
        with penstock.connect(server.address) as there:
            for tables in (["d.Item"], ["d.size", "d.Item"]):
                with pytest.raises(SchemaError, match=refusal):
                    there.changes(*tables)
            there.subscribe(7, tables=["d.size", "d.item"]).close()
            with pytest.raises(SchemaError, match=refusal):
                there.subscribe(7, tables=["d.size", "d.Item"])
    finally:
        server.stop()


def test_capital_letters_are_taken_where_they_count(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    schema = database(mariadb)
    execute(mariadb, f"CREATE TABLE {schema}.Item (id INT PRIMARY KEY)")
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    server.start()
    try:
        assert columns_of(server, table=f"{schema}.Item")[0] == "id"
        with penstock.connect(server.address) as there:
            start = end_of(mariadb)
            execute(mariadb, f"INSERT INTO {schema}.Item VALUES (7)")
            with there.changes(f"{schema}.Item", f"{schema}.size", start=str(start)) as changes:
                (row,) = next(iter(changes)).to_pylist()
            assert json.loads(row["row"]) == {"id": 7}
    finally:
        server.stop()
