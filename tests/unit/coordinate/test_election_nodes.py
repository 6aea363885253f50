"""Elections of destinations and of pipelines: the same rules, in nodes of their own."""

import logging

import pytest

from penstock.coordinate import Election, ElectionNodes
from penstock.coordinate.canal import election_nodes
from tests.support.fake_zookeeper import FakeClock, FakeSessions, FakeZooKeeper


def test_a_destination_is_elected_where_canal_looks() -> None:
    nodes = election_nodes("shop")
    assert nodes.running == "/otter/canal/destinations/shop/running"
    assert nodes.member("10.0.0.1:11111") == "/otter/canal/destinations/shop/cluster/10.0.0.1:11111"
    assert nodes.epoch == "/otter/canal/destinations/shop/epoch"


@pytest.mark.parametrize(
    ("nodes", "label"),
    [(election_nodes("orders"), "destination=orders"), (ElectionNodes.of_pipeline("orders"), "pipeline=orders")],
    ids=["destination", "pipeline"],
)
def test_a_destination_and_a_pipeline_of_one_name_do_not_meet(
    nodes: ElectionNodes, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    zookeeper = FakeZooKeeper(FakeClock())
    election = Election(FakeSessions(zookeeper), nodes, "a:1", lambda _: None, lambda _: None, clock=zookeeper.clock)
    election._callbacks.start()
    while not election.is_held():
        election.step()
    assert zookeeper.nodes.keys() == {nodes.running, nodes.member("a:1"), nodes.epoch, nodes.term}
    assert any(label in line and "state=running" in line for line in caplog.messages)
    election.close()
