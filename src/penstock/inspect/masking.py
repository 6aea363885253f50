"""Statements without the passwords in them."""

import re
from dataclasses import replace

from penstock.binlog.events.statement import StatementEvent

_MAY_HAVE_SECRETS = re.compile(r"IDENTIFIED|PASSWORD", re.IGNORECASE)


def mask_secrets(statement: StatementEvent, server_version: str) -> StatementEvent:
    """Return the statement with `'***'` for passwords and their hashes, if it has any."""
    if not _MAY_HAVE_SECRETS.search(statement.text):
        return statement
    from penstock.schema.ddl import classify_statement_text  # noqa: PLC0415 - most logs have no such statement
    from penstock.schema.ddl.secret import mask_secrets  # noqa: PLC0415
    from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession  # noqa: PLC0415

    dialect = SqlDialect(ServerProfile.from_version_text(server_version), SqlSession(SqlMode(statement.sql_mode or 0)))
    masked = mask_secrets(statement.text, classify_statement_text(statement.text, dialect), dialect)
    return statement if masked == statement.text else replace(statement, text=masked, is_masked=True)
