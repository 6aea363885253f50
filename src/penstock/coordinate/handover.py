"""What the last election left behind, read and written: it decides whether others may begin at once, soon, or not yet.

…/term holds {"epoch":7,"address":"ip:port","session":"0x…","released":false}. It is written with the claim of the
epoch, and again, as released, in the transaction that removes the running node. Not released and its session gone means
a crash. Not released and its session alive means that an operator removed the node, and the server that made it may not
know yet: while that session lives the destination is its to take back, or to waive.
"""

from collections.abc import Callable
from dataclasses import replace

from penstock.coordinate.election_nodes import ElectionNodes
from penstock.coordinate.term import Term
from penstock.coordinate.tree import Wake, ZkNode
from penstock.coordinate.zk_session import ZkNodes


def term_writer(session: ZkNodes, nodes: ElectionNodes, address: str) -> Callable[[int], dict[str, bytes]]:
    """Return a function that gives, for an epoch that is being claimed, the term of this server under its path: both
    are written in one transaction."""
    return lambda epoch: {nodes.term: Term(epoch, address, session.session_id).to_bytes()}


def release_term(session: ZkNodes, nodes: ElectionNodes, address: str, node: ZkNode, epoch: int) -> None:
    """Remove the running node, and note the term as released; FencedError when the node has changed meanwhile."""
    changes: dict[str, bytes | None] = {nodes.running: None}
    if epoch:
        changes[nodes.term] = Term(epoch, address, session.session_id, is_released=True).to_bytes()
    session.commit(changes, (nodes.running, node.version))


def read_last_term(session: ZkNodes, nodes: ElectionNodes, wake: Wake | None = None) -> Term | None:
    """Return the term of the last election; None when there was none, or when it cannot be read."""
    node = session.get_node(nodes.term, wake)
    return None if node is None else Term.from_bytes(node.value)


def waive_term(session: ZkNodes, nodes: ElectionNodes, term: Term) -> None:
    """Note a term of this server as released, after its node was removed: it has stopped and cannot take it back."""
    node = session.get_node(nodes.term)
    if node is not None and Term.from_bytes(node.value) == term:
        session.commit({nodes.term: replace(term, is_released=True).to_bytes()}, (nodes.term, node.version))


def remove_ended(session: ZkNodes, nodes: ElectionNodes, node: ZkNode, epoch: int) -> bool:
    """Remove the running node and the membership node of the winner of an election, whose process is known to have
    ended. False when the running node is of another election."""
    term = read_last_term(session, nodes)
    if term is None or (term.epoch, term.session_id) != (epoch, node.owner):
        return False
    member = session.get_node(nodes.member(term.address))
    if member is not None and member.owner == term.session_id:
        session.delete(nodes.member(term.address), member.version)
    return session.delete(nodes.running, node.version)


def is_winner_alive(session: ZkNodes, nodes: ElectionNodes, term: Term | None, wake: Wake) -> bool:
    """Return whether the session that won a term lives: its membership node is still there."""
    if term is None:
        return False
    member = session.get_node(nodes.member(term.address), wake)
    return member is not None and member.owner == term.session_id
