"""Who may write: the server that claimed last. An older one finds its writes refused."""

from dataclasses import dataclass

from penstock.coordinate.tree import Tree
from penstock.errors import CoordinationError, FencedError


@dataclass(frozen=True, slots=True)
class Fence:
    """`epoch` rises with every claim; `check` goes with every write."""

    epoch: int
    path: str
    version: int

    @property
    def check(self) -> tuple[str, int]:
        return self.path, self.version


def claim(tree: Tree, path: str) -> Fence:
    """Take over: from now on writes with an older fence are refused."""
    for _ in range(10):
        found = tree.read(path)
        if found is None:
            tree.create(path, b"0")  # and never over one that somebody else has made and raised
            continue
        raw, version = found
        if not (raw or b"0").isdigit():
            raise CoordinationError(f"{path} holds no number, but {raw[:40]!r}: put there one that was never used")
        epoch = int(raw or b"0") + 1
        try:
            tree.commit({path: str(epoch).encode()}, (path, version))
        except FencedError:
            continue  # somebody else was quicker
        return Fence(epoch, path, version + 1)
    raise CoordinationError(f"{path} is claimed by others all the time")
