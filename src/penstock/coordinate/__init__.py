"""ZooKeeper: what several servers agree on; and without it, one process per folder."""

from penstock.coordinate.balancer import Balancer, BalancerSettings
from penstock.coordinate.candidacy_backoff import ElectionSettings
from penstock.coordinate.client_lock import ClientLock
from penstock.coordinate.election import Election
from penstock.coordinate.election_nodes import ElectionNodes
from penstock.coordinate.election_state import ElectionState
from penstock.coordinate.fence import Fence, claim
from penstock.coordinate.lease_file import LeaseFile, LeasePublisher
from penstock.coordinate.lock_file import LockFile, LockWords
from penstock.coordinate.lookup import ServerLookup, cluster_servers, running_server
from penstock.coordinate.running_lookup import RunningLookup, RunningServer, shared_lookup
from penstock.coordinate.session_manager import SessionManager
from penstock.coordinate.tree import Tree, ZooKeeperTree

__all__ = [
    "Balancer",
    "BalancerSettings",
    "ClientLock",
    "Election",
    "ElectionNodes",
    "ElectionSettings",
    "ElectionState",
    "Fence",
    "LeaseFile",
    "LeasePublisher",
    "LockFile",
    "LockWords",
    "RunningLookup",
    "RunningServer",
    "ServerLookup",
    "SessionManager",
    "Tree",
    "ZooKeeperTree",
    "claim",
    "cluster_servers",
    "running_server",
    "shared_lookup",
]
