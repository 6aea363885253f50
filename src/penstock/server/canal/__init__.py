"""canal's port: its clients subscribe, get, ack and roll back here."""

from penstock.server.canal.listener import CanalListener

__all__ = ["CanalListener"]
