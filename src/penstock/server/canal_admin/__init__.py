"""canal's admin port, over which canal-admin asks for the state of destinations, and starts and stops them."""

from penstock.server.canal_admin.listener import CanalAdminListener

__all__ = ["CanalAdminListener"]
