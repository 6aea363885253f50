"""A client of canal's protocol, with canal's calls."""

from penstock.client.canal.cluster import CanalCluster
from penstock.client.canal.connector import CanalConnector
from penstock.client.canal.message import CanalMessage

__all__ = ["CanalCluster", "CanalConnector", "CanalMessage"]
