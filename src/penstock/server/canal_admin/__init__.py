"""canal's admin port: its console asks, starts and stops here."""

from penstock.server.canal_admin.listener import CanalAdminListener

__all__ = ["CanalAdminListener"]
