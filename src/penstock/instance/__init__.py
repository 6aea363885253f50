"""One capture pipeline: source → blocks → store."""

from penstock.instance.instance import Instance, InstanceState

__all__ = ["Instance", "InstanceState"]
