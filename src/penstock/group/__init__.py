"""Several sources as one destination: their transactions in one order, by time.

group = Group("all", {"east": east, "west": west})  # two instances that were started
"""

from penstock.group.group import Group, GroupBatch

__all__ = ["Group", "GroupBatch"]
