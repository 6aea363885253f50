"""Penstock: change data capture for MySQL and MariaDB."""

__version__ = "0.1.0"

__all__ = ["__version__"]
