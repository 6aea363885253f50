"""Serves instances to clients, each by its name, the destination: canal's protocol, Arrow Flight and HTTP for
operators."""

from penstock.server.server import Server

__all__ = ["Server"]
