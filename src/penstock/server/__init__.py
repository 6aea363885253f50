"""Serves instances to clients: canal's protocol, Arrow Flight and HTTP for operators."""

from penstock.server.server import Server

__all__ = ["Server"]
