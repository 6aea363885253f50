"""The ZooKeeper nodes of one election, whatever it is about; all of them lie under one path.

PATH/running             ephemeral, {"active":true,"address":"…"}: who runs it
PATH/cluster/{address}   ephemeral: who could run it
PATH/epoch               the number of the last election
PATH/term                who won it, and whether it was released (handover.py)

The servers of a destination are elected in canal's nodes (canal.py), the drivers of a pipeline in
/penstock/pipelines/{name}.
"""

from dataclasses import dataclass

PIPELINES = "/penstock/pipelines"


@dataclass(frozen=True, slots=True)
class ElectionNodes:
    """The paths of the nodes of one election.

    nodes = ElectionNodes.of_pipeline("orders")
    """

    kind: str  # of what is run, as log lines name it
    name: str
    path: str

    @classmethod
    def of_pipeline(cls, name: str) -> "ElectionNodes":
        """Return the nodes in which the driver of a pipeline is elected."""
        return cls("pipeline", name, f"{PIPELINES}/{name}")

    @property
    def label(self) -> str:
        """What the election is about, as log lines have it: `destination=shop`."""
        return f"{self.kind}={self.name}"

    @property
    def running(self) -> str:
        """The path of the node that names the process that runs it."""
        return f"{self.path}/running"

    @property
    def members(self) -> str:
        """The path of the node whose children are the processes that could run it."""
        return f"{self.path}/cluster"

    def member(self, address: str) -> str:
        """Return the path of the node of one process that could run it."""
        return f"{self.members}/{address}"

    @property
    def epoch(self) -> str:
        """The path of the node that holds the number of the last election."""
        return f"{self.path}/epoch"

    @property
    def term(self) -> str:
        """The path of the node that says who won the last election, and whether the winner has released it."""
        return f"{self.path}/term"
