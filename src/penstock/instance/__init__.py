"""One capture pipeline: source → blocks → store."""

from penstock.instance.group import Group
from penstock.instance.instance import Instance
from penstock.instance.state import InstanceState

__all__ = ["Group", "Instance", "InstanceState"]
