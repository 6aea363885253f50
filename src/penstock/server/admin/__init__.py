"""The admin port: health, status and metrics over HTTP."""

from penstock.server.admin.admin_port import AdminPort

__all__ = ["AdminPort"]
