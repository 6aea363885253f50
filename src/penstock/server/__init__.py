"""Serves instances: canal's protocol, Arrow Flight."""

from penstock.server.server import Server

__all__ = ["Server"]
