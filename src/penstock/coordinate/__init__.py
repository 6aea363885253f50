"""ZooKeeper: what several servers agree on."""

from penstock.coordinate.fence import Fence, claim
from penstock.coordinate.tree import Tree, ZooKeeperTree

__all__ = ["Fence", "Tree", "ZooKeeperTree", "claim"]
