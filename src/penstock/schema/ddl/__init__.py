"""The part of SQL that changes columns, keys, names and charsets: tokens, kinds of statements, and one parser each."""

from penstock.schema.ddl.kind import StatementKind, kind_of
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.statement import Statement, parse

__all__ = ["DdlError", "Statement", "StatementKind", "kind_of", "parse"]
