"""The part of SQL that changes columns, keys, names and charsets: tokens, kinds of statements, and one parser each."""

from penstock.schema.ddl.kind import StatementKind, classify_statement_text
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.statement import Statement, parse_statement

__all__ = ["DdlError", "Statement", "StatementKind", "classify_statement_text", "parse_statement"]
