"""The demo: a private MariaDB with a small shop, the whole way of a change, and a page that shows it."""

from penstock.demo.run import run_demo

__all__ = ["run_demo"]
