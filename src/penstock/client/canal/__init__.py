"""A client of canal's protocol, with canal's calls."""

from penstock.client.canal.connector import CanalConnector
from penstock.client.canal.message import Message

__all__ = ["CanalConnector", "Message"]
