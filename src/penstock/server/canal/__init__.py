"""The port of canal's protocol, over which canal's clients subscribe, get, ack and roll back."""

from penstock.server.canal.listener import CanalListener

__all__ = ["CanalListener"]
