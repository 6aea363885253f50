"""What the last election left behind, read and written: it decides whether others may begin at once, soon, or not yet.

…/term holds {"epoch":7,"address":"ip:port","session":"0x…","released":false}. It is written with the claim of the
epoch, and again, as released, in the transaction that removes the running node. Not released and its session gone means
a crash. Not released and its session alive means that an operator removed the node, and the server that made it may not
know yet: while that session lives the destination is its to take back, or to waive.
"""

from collections.abc import Callable
from dataclasses import replace

from penstock.coordinate import canal
from penstock.coordinate.term import Term
from penstock.coordinate.tree import Wake, ZkNode
from penstock.coordinate.zk_session import ZkNodes


def term_writer(session: ZkNodes, destination: str, address: str) -> Callable[[int], dict[str, bytes]]:
    """Return a function that gives, for an epoch that is being claimed, the term of this server under its path: both
    are written in one transaction."""
    path = canal.term_path(destination)
    return lambda epoch: {path: Term(epoch, address, session.session_id).to_bytes()}


def release_destination(session: ZkNodes, destination: str, address: str, node: ZkNode, epoch: int) -> None:
    """Remove the running node, and note the term as released; FencedError when the node has changed meanwhile."""
    path = canal.running_path(destination)
    changes: dict[str, bytes | None] = {path: None}
    if epoch:
        changes[canal.term_path(destination)] = Term(epoch, address, session.session_id, is_released=True).to_bytes()
    session.commit(changes, (path, node.version))


def read_last_term(session: ZkNodes, destination: str, wake: Wake | None = None) -> Term | None:
    """Return the term of the last election; None when there was none, or when it cannot be read."""
    node = session.get_node(canal.term_path(destination), wake)
    return None if node is None else Term.from_bytes(node.value)


def waive_term(session: ZkNodes, destination: str, term: Term) -> None:
    """Note a term of this server as released, after its node was removed: it has stopped and cannot take it back."""
    path = canal.term_path(destination)
    node = session.get_node(path)
    if node is not None and Term.from_bytes(node.value) == term:
        session.commit({path: replace(term, is_released=True).to_bytes()}, (path, node.version))


def is_winner_alive(session: ZkNodes, destination: str, term: Term | None, wake: Wake) -> bool:
    """Return whether the session that won a term lives: its membership node is still there."""
    if term is None:
        return False
    member = session.get_node(canal.member_path(destination, term.address), wake)
    return member is not None and member.owner == term.session_id
