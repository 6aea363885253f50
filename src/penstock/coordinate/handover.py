"""What is known of the last election when the running node is gone: whether others may begin at once, soon, or not yet.

…/term holds {"epoch":7,"address":"ip:port","session":"0x…","released":false}: written with the claim of the epoch, and
again, as released, in the step that removes the running node. Not released, and its session is gone: a crash. Not
released, and its session lives: an operator has removed the node, and the one that had it may not have heard of it;
for as long as that session lives it is his to take back, or to waive.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.coordinate import canal
from penstock.coordinate.link import Node, Nodes, Wake


@dataclass(frozen=True, slots=True)
class Term:
    epoch: int
    address: str
    session_id: int
    is_released: bool = False

    def to_bytes(self) -> bytes:
        about = {"epoch": self.epoch, "address": self.address, "session": hex(self.session_id)}
        return json.dumps(about | {"released": self.is_released}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Term | None":
        try:
            found = json.loads(raw)
            session_id = int(found["session"], 16)
            return cls(int(found["epoch"]), str(found["address"]), session_id, bool(found.get("released")))
        except (ValueError, TypeError, KeyError):
            return None


def announced(link: Nodes, destination: str, address: str) -> Callable[[int], dict[str, bytes]]:
    """What goes with the claim of an epoch."""
    path = canal.term_path(destination)
    return lambda epoch: {path: Term(epoch, address, link.session_id).to_bytes()}


def give_up(link: Nodes, destination: str, address: str, node: Node, epoch: int) -> None:
    """Remove the running node; FencedError: it is not what it was."""
    path = canal.running_path(destination)
    changes: dict[str, bytes | None] = {path: None}
    if epoch:
        changes[canal.term_path(destination)] = Term(epoch, address, link.session_id, is_released=True).to_bytes()
    link.commit(changes, (path, node.version))


def last_term(link: Nodes, destination: str, wake: Wake | None = None) -> Term | None:
    node = link.look(canal.term_path(destination), wake)
    return None if node is None else Term.from_bytes(node.value)


def waive(link: Nodes, destination: str, term: Term) -> None:
    """The node of this election, which was ours, is gone, we have stopped, and cannot take it back now."""
    path = canal.term_path(destination)
    node = link.look(path)
    if node is not None and Term.from_bytes(node.value) == term:
        link.commit({path: replace(term, is_released=True).to_bytes()}, (path, node.version))


def is_alive(link: Nodes, destination: str, term: Term, wake: Wake) -> bool:
    """The session of that server: its other node is still there."""
    member = link.look(f"{canal.members_path(destination)}/{term.address}", wake)
    return member is not None and member.owner == term.session_id
