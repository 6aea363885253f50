"""ZooKeeper: what several servers agree on; and without it, one server per folder."""

from penstock.coordinate.balance import Balance, BalanceSettings
from penstock.coordinate.client_lock import ClientLock
from penstock.coordinate.fence import Fence, claim
from penstock.coordinate.lock_file import LockFile
from penstock.coordinate.lookup import Servers, cluster_servers, running_server
from penstock.coordinate.patience import RunningSettings
from penstock.coordinate.running import Running
from penstock.coordinate.session import Session
from penstock.coordinate.state import State
from penstock.coordinate.tree import Tree, ZooKeeperTree

__all__ = [
    "Balance",
    "BalanceSettings",
    "ClientLock",
    "Fence",
    "LockFile",
    "Running",
    "RunningSettings",
    "Servers",
    "Session",
    "State",
    "Tree",
    "ZooKeeperTree",
    "claim",
    "cluster_servers",
    "running_server",
]
