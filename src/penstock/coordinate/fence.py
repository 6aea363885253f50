"""Fencing: only the server that claimed an epoch last may write. The writes of an older one are refused."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.coordinate.lease import LeaseGuard
from penstock.coordinate.tree import Tree
from penstock.errors import CoordinationError, FencedError

ExtraWrites = Callable[[int], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Fence:
    """The right of one winner to write. `epoch` rises with every claim, and `check` goes with every write, so that the
    writes of an older winner fail. An elected server holds it while its lease lasts, and writes nothing afterwards.

        fence = claim(tree, path)
        tree.commit({node: value}, fence.check())
    """

    epoch: int
    path: str
    version: int
    guard: LeaseGuard | None = field(default=None, compare=False)

    def is_held(self) -> bool:
        """Return whether the lease behind the fence lasts; a fence without a lease is always held."""
        return self.guard is None or self.guard.is_held()

    @property
    def held_until(self) -> float:
        """The time at which the lease behind the fence ends, as far as it is renewed by now; 0 when it has ended, and
        infinite without a lease."""
        return math.inf if self.guard is None else self.guard.held_until

    @property
    def check(self) -> tuple[str, int]:
        """The path and the version that every write must find unchanged. Raises FencedError when the fence is no longer
        held."""
        self.require()
        return self.path, self.version

    def require(self) -> None:
        """Raise FencedError if the fence is no longer held."""
        if not self.is_held():
            raise FencedError(f"{self.path}: what was elected as number {self.epoch} has ended, another may run by now")


def claim(tree: Tree, path: str, guard: LeaseGuard | None = None, extra_writes: ExtraWrites = lambda _: {}) -> Fence:
    """Claim the next epoch: from now on writes with an older fence are refused. `extra_writes`
    returns, for an epoch, what else to write in the same transaction."""
    for _ in range(10):
        stored = tree.read(path)
        if stored is None:
            tree.create(path, b"0")  # and never over one that somebody else has made and raised
            continue
        raw, version = stored
        if not (raw or b"0").isdigit():
            raise CoordinationError(f"{path} holds no number, but {raw[:40]!r}: put there one that was never used")
        epoch = int(raw or b"0") + 1
        try:
            tree.commit({path: str(epoch).encode(), **extra_writes(epoch)}, (path, version))
        except FencedError:
            continue  # somebody else was quicker
        return Fence(epoch, path, version + 1, guard)
    raise CoordinationError(f"{path} is claimed by others all the time")
