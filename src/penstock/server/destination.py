"""One destination (the name of a capture pipeline, as in canal; not a sink) of a server, with its instance, which runs
on this server, or on the server that an election chooses."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from penstock.capture.state import InstanceState
from penstock.config import InstanceSettings
from penstock.coordinate import Election, Fence, LockFile
from penstock.coordinate.callbacks import OnRunning, OnStopped
from penstock.errors import FencedError, NotRunningError, PenstockError
from penstock.instance import Instance
from penstock.instance.opening import check_startable
from penstock.server.expected import make_starting_error
from penstock.store import Start

log = logging.getLogger(__name__)


class Elections(Protocol):
    """Joins and leaves the elections of destinations; `Cluster` is one."""

    def join(self, instance: InstanceSettings, on_running: OnRunning, on_stopped: OnStopped) -> Election:
        """Return the election of a destination, with the callbacks that start and stop it on this server."""
        ...

    def leave(self, instance: InstanceSettings) -> None:
        """Forget a destination after its election was closed."""


class Destination(ABC):
    """One configured destination and its instance. After a manual stop it stays stopped until it is started manually,
    or its settings change."""

    def __init__(
        self, settings: InstanceSettings, make_instance: Callable[[InstanceSettings], Instance] = Instance
    ) -> None:
        self.name, self._make_instance = settings.destination, make_instance
        self._settings = settings
        self._change_lock = threading.Lock()  # of who changes it: the configuration, or somebody manually
        self._halt_reason: str | None = None  # why it was stopped manually
        self._is_gone = False
        self._lock = threading.RLock()  # of starts and stops, one at a time
        self._instance: Instance | None = None
        self._lock_file: LockFile | None = None

    @property
    def settings(self) -> InstanceSettings:
        """Return the settings that the destination runs with."""
        return self._settings

    @property
    def instance(self) -> Instance | None:
        """Return the instance that runs on this server, or ran last; None before the first start."""
        return self._instance

    @property
    def failure(self) -> PenstockError | None:
        """Return the error because of which the instance has stopped for good; None when it has not."""
        return None if self._instance is None else self._instance.failure

    @property
    def halt_reason(self) -> str | None:
        """Return why it was stopped manually; None when it was not."""
        return self._halt_reason

    def running_instance(self) -> Instance:
        """Return the instance that may serve clients now. Raises NotRunningError when there is none."""
        if self._halt_reason is not None:
            raise NotRunningError(f"destination '{self.name}' was stopped {self._halt_reason}")
        return self._running_instance()

    @property
    def is_served(self) -> bool:
        """Return whether clients can read the destination, on this server or on the one that runs it."""
        try:
            return self.running_instance().failure is None
        except NotRunningError:
            return False

    def start(self) -> None:
        """Start the instance of this destination; with ZooKeeper, run for its election, which starts the instance when
        this server wins."""
        with self._change_lock:
            self._start(self._settings)

    def stop(self) -> None:
        """Stop the destination for good: it was removed from the configuration, or the server stops."""
        with self._change_lock:
            self._is_gone = True
            self._stop()

    def reload(self, settings: InstanceSettings) -> None:
        """Run with other settings. If it cannot start with them, it continues with the old ones, and this raises."""
        with self._change_lock:
            if self._halt_reason is None:
                self._reload(settings)
            else:
                self._start_again(settings)

    def halt(self, reason: str = "manually") -> bool:
        """Stop the destination manually. False when that was done before."""
        with self._change_lock:
            if self._halt_reason is not None or self._is_gone:
                return False
            self._halt_reason = reason
            self._stop_by_hand()
            log.info("destination stopped manually destination=%s reason=%s", self.name, reason)
            return True

    def resume(self) -> bool:
        """Start the destination after it was stopped manually. False when it was not; if it cannot start, this raises
        and it stays stopped."""
        with self._change_lock:
            if self._halt_reason is None or self._is_gone:
                return False
            self._start_again(self._settings)
            log.info("destination restarted manually destination=%s", self.name)
            return True

    def _start_again(self, settings: InstanceSettings) -> None:
        """Start the destination after it was stopped manually."""
        self._start(settings)
        self._halt_reason = None

    def _stop_by_hand(self) -> None:
        """Stop the destination so that it can be started again."""
        self._stop()

    @abstractmethod
    def _running_instance(self) -> Instance:
        """Return the instance that may serve clients now. Raises NotRunningError."""

    @abstractmethod
    def _start(self, settings: InstanceSettings) -> None:
        """Start the instance, or join its election."""

    @abstractmethod
    def _stop(self) -> None:
        """Stop the instance, and leave its election."""

    @abstractmethod
    def _reload(self, settings: InstanceSettings) -> None:
        """Run with other settings, while it is not stopped manually."""

    def _open_instance(self, settings: InstanceSettings, fence: Fence | None = None) -> None:
        """Lock the data folder and start an instance with these settings."""
        with self._lock:
            if settings.data_dir is not None:
                self._lock_file = LockFile(settings.data_dir / settings.destination)
                self._lock_file.take()
            instance = self._make_instance(settings)
            try:
                instance.start(fence)
            except BaseException:
                self._release_lock_file()
                raise
            self._settings, self._instance = settings, instance

    def _close_instance(self) -> None:
        """Stop the instance and unlock its data folder."""
        with self._lock:
            if self._instance is not None:
                self._instance.stop()
            self._release_lock_file()

    def _release_lock_file(self) -> None:
        """Unlock the data folder."""
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def _replace_instance(self, settings: InstanceSettings, fence: Fence | None = None) -> None:
        """Replace the running instance by one with other settings, or only change its filter if nothing else differs.
        The old instance is stopped only after the sources were checked with the new settings; if the new one cannot
        start, the old settings are started again."""
        with self._lock:
            old = self._instance
            if old is None or old.failure is not None:
                self._close_instance()
                self._open_instance(settings, fence)
                return
            if old.settings.model_copy(update={"filter": settings.filter}) == settings:
                old.reload_filter(settings.filter)
                self._settings = settings
                return
            check_startable(settings)
            before, clients = self._settings, _ClientsToRestore(old)
            self._close_instance()
            try:
                self._open_instance(clients.start_at_lowest_cursor(settings), fence)
                self._settings = settings
            except Exception:
                log.warning(
                    "destination reload failed destination=%s: restarting it with the previous settings", self.name
                )
                self._open_instance(clients.start_at_lowest_cursor(before), fence)
                self._settings = before
                raise
            finally:
                clients.restore(self._instance)


class LocalDestination(Destination):
    """A destination that always runs on this server."""

    def __init__(
        self, settings: InstanceSettings, make_instance: Callable[[InstanceSettings], Instance] = Instance
    ) -> None:
        super().__init__(settings, make_instance)
        self._halted_clients: _ClientsToRestore | None = None  # of the instance that was stopped manually

    def _running_instance(self) -> Instance:
        instance = self._instance
        if instance is None or instance.state is InstanceState.STOPPED:
            raise make_starting_error(self.name)
        return instance

    def _start(self, settings: InstanceSettings) -> None:
        self._open_instance(settings)

    def _stop(self) -> None:
        self._close_instance()

    def _stop_by_hand(self) -> None:
        self._halted_clients = _ClientsToRestore(self._instance) if self._instance is not None else None
        self._stop()

    def _start_again(self, settings: InstanceSettings) -> None:
        clients, self._halted_clients = self._halted_clients, None
        try:
            super()._start_again(clients.start_at_lowest_cursor(settings) if clients is not None else settings)
        except BaseException:
            self._halted_clients = clients
            raise
        self._settings = settings
        if clients is not None:
            clients.restore(self._instance)

    def _reload(self, settings: InstanceSettings) -> None:
        self._replace_instance(settings)


class ElectedDestination(Destination):
    """A destination that several servers could run: it runs on this server while this server is elected and its lease
    lasts."""

    def __init__(
        self,
        settings: InstanceSettings,
        elections: Elections,
        make_instance: Callable[[InstanceSettings], Instance] = Instance,
    ) -> None:
        super().__init__(settings, make_instance)
        self._elections = elections
        self.election = elections.join(settings, self._on_elected, self._on_term_ended)
        self._is_joined = True
        self.problem = ""  # why it could not run on this server when that was elected last

    @property
    def failure(self) -> PenstockError | None:
        """The error of the instance, unless it was fenced: then the term has ended, and this server stays a
        candidate for the next one."""
        failure = super().failure
        return None if isinstance(failure, FencedError) else failure

    @property
    def is_served(self) -> bool:
        """Return whether clients can read the destination on this server, or another server runs it."""
        return super().is_served or self.election.owner not in {None, self.election.address}

    def _running_instance(self) -> Instance:
        instance = self._instance
        if not self.election.is_held():
            owner = self.election.owner
            where = f"; {owner} has it" if owner is not None and owner != self.election.address else ""
            raise NotRunningError(f"destination '{self.name}' does not run on this server{where}")
        if instance is None or instance.state is InstanceState.STOPPED:
            raise make_starting_error(self.name, self.problem)
        return instance

    def _start(self, settings: InstanceSettings) -> None:
        self._settings = settings
        if not self._is_joined:
            self.election = self._elections.join(settings, self._on_elected, self._on_term_ended)
            self._is_joined = True
        self.election.start()

    def _stop(self) -> None:
        self.election.close()
        self._elections.leave(self._settings)
        self._is_joined = False
        self._close_instance()

    def _reload(self, settings: InstanceSettings) -> None:
        with self._lock:
            fence = self.election.fence
            if fence is not None and fence.is_held() and self._instance is not None:
                self._replace_instance(settings, fence)
            else:
                self._settings = settings

    def release(self) -> bool:
        """Release the destination, so that another server is elected to run it. False when it did not run on this
        server, or is not released in time."""
        return self.election.release()

    def release_if_failed(self) -> None:
        """Release the destination if its instance has failed: it may work on another server."""
        failure = self.failure
        if failure is not None and self.election.is_held():
            self.problem = str(failure)
            self.election.fail(failure)

    def _on_elected(self, fence: Fence) -> None:
        """Start the instance with the fence of the election that was won."""
        with self._lock:
            self._instance = None  # that of an earlier term may have failed, which says nothing about this one
        try:
            self._open_instance(self._settings, fence)
        except BaseException as error:
            self.problem = str(error) or type(error).__name__
            raise
        self.problem = ""

    def _on_term_ended(self, reason: str) -> None:
        """Stop the instance because this server no longer holds the election."""
        log.info("destination stopped because its election term ended destination=%s reason=%s", self.name, reason)
        self._close_instance()


class _ClientsToRestore:
    """The clients of an instance that is about to be replaced. Cursors that are only in memory would be lost with
    it."""

    def __init__(self, instance: Instance) -> None:
        is_persisted = instance.settings.meta_kind != "memory"
        self._cursors = {} if is_persisted else instance.clients.cursors()
        self._filters = instance.clients.subscriptions()

    def start_at_lowest_cursor(self, settings: InstanceSettings) -> InstanceSettings:
        """Return the settings with the lowest cursor as the start position, if cursors are only in memory."""
        if not self._cursors or settings.meta_kind != "memory":
            return settings
        lowest = min(self._cursors.values())
        return settings.model_copy(update={"start": f"{lowest.file}:{lowest.offset}"})

    def restore(self, instance: Instance | None) -> None:
        """Subscribe the clients at the new instance, at their old cursors."""
        if instance is None:
            return
        for client_id, position in self._cursors.items():
            instance.clients.subscribe(client_id, self._filters.get(client_id, ""), Start.cursor(position))
            instance.clients.mark_absent(client_id)
