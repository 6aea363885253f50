"""Three servers, to which anything may happen at any time: never two at once, and in the end one."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.coordinate import Election, ElectionSettings, Fence
from penstock.coordinate.canal import election_nodes, fencing_epoch_path, running_path
from tests.support.fake_zookeeper import FakeClock, FakeNodes, FakeSessions, FakeZooKeeper

NUMBERS = st.integers(0, 2)
RUNNING = running_path("shop")


class Server:
    def __init__(self, shop: "ElectionMachine", number: int) -> None:
        self.shop, self.is_stopped, self.fails = shop, False, False
        self.session = FakeSessions(shop.zookeeper)
        options: dict[str, Any] = {"settings": ElectionSettings(), "clock": shop.zookeeper.clock}
        self.running = Election(
            self.session, election_nodes("shop"), f"{number}:1", self._start, lambda _: None, **options
        )
        self.running._callbacks.start()
        self.session.listen(self.running)

    def _start(self, fence: Fence) -> None:
        self.shop.epochs.append(fence.epoch)
        if self.fails:
            raise ValueError("no")

    def step(self) -> None:
        """What a process does that is not stopped: its session first."""
        if self.is_stopped:
            return
        session = self.session.current
        if session is not None and not session.lease.is_held():
            self.session.lose()
        elif session is None and not self.shop.is_cut(self):
            self.session.come_back()
        self.running.step()
        assert self.running._callbacks.wait(5)


class ElectionMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.zookeeper = FakeZooKeeper(FakeClock())
        self.epochs: list[int] = []
        self.cut = set[int]()
        self.servers = [Server(self, number) for number in range(3)]
        for number in range(3):
            self.step(number, 3)

    def is_cut(self, server: Server) -> bool:
        return self.servers.index(server) in self.cut

    def _link(self, number: int) -> FakeNodes | None:
        return self.servers[number].session.current

    @rule(number=NUMBERS, times=st.integers(1, 4))
    def step(self, number: int, times: int) -> None:
        for _ in range(times):
            self.servers[number].step()

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 1.1, 2.0, 3.9, 4.0, 6.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.zookeeper.advance(seconds)

    @rule(number=NUMBERS)
    def cut_off(self, number: int) -> None:
        self.cut.add(number)
        if (session := self._link(number)) is not None:
            session.fails = True

    @rule(number=NUMBERS)
    def reconnect(self, number: int) -> None:
        self.cut.discard(number)
        if (session := self._link(number)) is not None:
            session.fails = self.servers[number].is_stopped

    @rule(number=NUMBERS, continues=st.booleans())
    def stop(self, number: int, *, continues: bool) -> None:
        """SIGSTOP, SIGCONT."""
        self.servers[number].is_stopped = not continues
        if (session := self._link(number)) is not None:
            session.fails = not continues or number in self.cut

    @rule(number=NUMBERS, seconds=st.sampled_from([1.0, 4.0, 7.0]), others=st.lists(NUMBERS, max_size=8))
    def stop_in_the_middle(self, number: int, seconds: float, others: list[int]) -> None:
        """Between a decision and the request that follows from it."""
        session = self._link(number)

        def stall() -> None:
            assert session is not None
            session.fails = True
            self.zookeeper.advance(seconds)
            for other in others:
                if other != number:
                    self.servers[other].step()
                    self.zookeeper.advance(1.0)
                    self.servers[other].step()
            session.fails = number in self.cut

        if session is not None and not self.servers[number].is_stopped:
            session.stall = stall
            self.servers[number].step()
            session.stall = None

    @rule(number=NUMBERS)
    def release(self, number: int) -> None:
        self.servers[number].running.release(timeout_s=0)

    @rule(number=NUMBERS, fails=st.booleans())
    def fail(self, number: int, *, fails: bool) -> None:
        self.servers[number].fails = fails
        if fails:
            self.servers[number].running.fail(ValueError("broken"))

    @rule(what=st.sampled_from(["remove", "remove", "pause", "resume", "claim"]))
    def operate(self, what: str) -> None:
        node = self.zookeeper.nodes.get(RUNNING)
        if node is None:
            return
        if what == "remove":
            self.zookeeper.put(RUNNING, None)
        elif what == "claim":
            epoch = self.zookeeper.nodes.get(fencing_epoch_path("shop"))
            self.zookeeper.put(fencing_epoch_path("shop"), str(int(epoch.value if epoch else 0) + 1).encode())
        else:
            words = (b"true", b"false") if what == "pause" else (b"false", b"true")
            self.zookeeper.put(RUNNING, node.value.replace(*words))

    @invariant()
    def never_two(self) -> None:
        if not hasattr(self, "servers"):
            return
        held = [server.running.address for server in self.servers if server.running.is_held()]
        assert len(held) <= 1, held
        assert self.epochs == sorted(set(self.epochs)), self.epochs

    def teardown(self) -> None:
        if not hasattr(self, "servers"):
            return
        for number, server in enumerate(self.servers):
            server.fails = False
            self.stop(number, continues=True)
            self.reconnect(number)
        self.operate("resume")
        for _ in range(200):
            self.zookeeper.advance(0.5)
            for server in self.servers:
                server.step()
                server.step()
        held = [server for server in self.servers if server.running.is_held()]
        assert len(held) == 1
        for server in self.servers:
            server.running.close()


TestElection = ElectionMachine.TestCase
TestElection.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
