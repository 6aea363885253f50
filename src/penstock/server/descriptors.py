"""How many file descriptors a server needs, and how many instances fit into the limit of the process.

Each connection, lock and open file takes one. A process that has none left can neither connect to a source nor accept a
client, and says so in errors that look like anything else: so the limit is raised, and checked before.
"""

import logging
import resource
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config import InstanceSettings, ServerSettings

log = logging.getLogger(__name__)

_PROCESS = 40  # standard streams, ports, event loops, log files
_SOURCE = 2  # the log, and one more connection for questions
_FILES = 4  # below data_dir: two locks of cursors, the lock and the file of the schema history
_STORE_FILES = 3  # lock, the segment that is written, one that is read
_ZOOKEEPER = 5  # a connection of its own, with what wakes it up
_USUAL_INSTANCE = _SOURCE + _FILES
_MAX_LIMIT = 1 << 20
_MIN_FOR_CLIENTS = 16


@dataclass(frozen=True, slots=True)
class DescriptorBudget:
    """Describes how many file descriptors the process may open, and what the configuration needs: `needed` is an upper
    estimate, `for_clients` the part of it for clients, `fitting` how many instances would fit."""

    limit: int
    needed: int
    for_clients: int
    instances: int
    fitting: int

    @property
    def is_enough(self) -> bool:
        """Return whether the limit covers what the configuration needs."""
        return self.needed <= self.limit

    def __str__(self) -> str:
        room = f"file descriptors: {self.limit}, enough for about {self.fitting} instances such as these"
        if self.is_enough:
            return room
        return (
            f"{self.instances} INSTANCES AND {self.for_clients} CLIENTS NEED ABOUT {self.needed} FILE DESCRIPTORS, AND"
            f" THE LIMIT IS {self.limit}: about {self.fitting} instances fit; raise the hard limit (`ulimit -Hn`,"
            " LimitNOFILE of systemd, --ulimit nofile of Docker), or spread the destinations over several servers"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the budget, and what is open now, as plain data for a status."""
        return {
            "limit": self.limit,
            "open": count_open_descriptors(),
            "needed": self.needed,
            "instances_that_fit": self.fitting,
        }


def log_budget(budget: DescriptorBudget) -> None:
    """Log how many instances fit; a warning when what is configured does not."""
    level = logging.INFO if budget.is_enough else logging.WARNING
    counts = (budget.limit, budget.needed, budget.instances, budget.fitting)
    log.log(level, "open-file budget limit=%d needed=%d instances=%d fitting=%d: %s", *counts, budget)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of this process to its hard limit, and return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MAX_LIMIT if hard == resource.RLIM_INFINITY else min(hard, _MAX_LIMIT)
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (OSError, ValueError) as error:
            log.warning("open-file limit not raised limit=%s target=%s reason=%s", soft, target, error)
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many files this process may have open: its soft limit, with a bound where that is unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_LIMIT if soft == resource.RLIM_INFINITY else soft


def count_open_descriptors() -> int | None:
    """Return how many descriptors are open now; None where the system does not tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1
    except OSError:
        return None


def plan_descriptors(
    settings: ServerSettings, instances: Collection[InstanceSettings], limit: int | None = None
) -> DescriptorBudget:
    """Estimate what a server with these instances needs, and how many of their kind fit."""
    limit = descriptor_limit() if limit is None else limit
    connections = 0 if settings.canal.port is None else settings.canal.connections
    for_clients = max(_MIN_FOR_CLIENTS, min(connections + settings.flight.streams, limit // 4))
    estimates = [estimate_descriptors(instance) for instance in instances]
    per_instance = sum(estimates) / len(estimates) if estimates else _USUAL_INSTANCE
    left = limit - _PROCESS - for_clients
    needed = _PROCESS + for_clients + sum(estimates)
    return DescriptorBudget(limit, needed, for_clients, len(estimates), max(0, int(left / per_instance)))


def estimate_descriptors(settings: InstanceSettings) -> int:
    """Return how many descriptors an instance takes at most while it runs."""
    files = _FILES if settings.data_dir is not None else 0
    store = _STORE_FILES if settings.store.kind != "memory" else 0
    return _SOURCE + files + store + (_ZOOKEEPER if settings.zookeeper is not None else 0)
