"""One destination of a server, and its instance: it runs here, or where an election says."""

import logging
import threading
from abc import ABC, abstractmethod
from typing import Protocol

from penstock.capture.state import InstanceState
from penstock.config import InstanceSettings
from penstock.coordinate import Election, Fence, LockFile
from penstock.coordinate.callbacks import OnRunning, OnStopped
from penstock.errors import NotRunningError
from penstock.instance import Instance
from penstock.instance.opening import check_settings
from penstock.server.expected import describe_start
from penstock.store import Start

log = logging.getLogger(__name__)


class Elections(Protocol):
    def join(self, instance: InstanceSettings, on_running: OnRunning, on_stopped: OnStopped) -> Election: ...

    def leave(self, instance: InstanceSettings) -> None: ...


class Destination(ABC):
    """What was stopped by hand stays so until somebody starts it, or its settings change."""

    def __init__(self, settings: InstanceSettings) -> None:
        self.name = settings.destination
        self._settings = settings
        self._turn = threading.Lock()  # of who changes it: the configuration, or somebody by hand
        self._halted: str | None = None  # why it was stopped by hand
        self._is_gone = False
        self._lock = threading.RLock()  # of starts and stops, one at a time
        self._instance: Instance | None = None
        self._file: LockFile | None = None

    @property
    def settings(self) -> InstanceSettings:
        return self._settings

    @property
    def instance(self) -> Instance | None:
        """What runs here, or did last."""
        return self._instance

    @property
    def halted(self) -> str | None:
        """Why it was stopped by hand; None when it was not."""
        return self._halted

    def running(self) -> Instance:
        """That may serve now; raises NotRunningError where there is none."""
        if self._halted is not None:
            raise NotRunningError(f"destination '{self.name}' was stopped {self._halted}")
        return self._running()

    @property
    def is_served(self) -> bool:
        """Whether somebody can read it, here or at the server that runs it."""
        try:
            return self.running().failure is None
        except NotRunningError:
            return False

    def start(self) -> None:
        with self._turn:
            self._begin(self._settings)

    def stop(self) -> None:
        """For good."""
        with self._turn:
            self._is_gone = True
            self._end()

    def reload(self, settings: InstanceSettings) -> None:
        """One that cannot start leaves the old one running, and raises."""
        with self._turn:
            if self._halted is None:
                self._reload(settings)
            else:
                self._come_back(settings)

    def halt(self, reason: str = "by hand") -> bool:
        """False when it was halted already."""
        with self._turn:
            if self._halted is not None or self._is_gone:
                return False
            self._halted = reason
            self._pause()
            log.info("destination halted destination=%s reason=%s", self.name, reason)
            return True

    def resume(self) -> bool:
        """False when it was not halted. What cannot start raises, and stays halted."""
        with self._turn:
            if self._halted is None or self._is_gone:
                return False
            self._come_back(self._settings)
            log.info("destination resumed destination=%s", self.name)
            return True

    def _come_back(self, settings: InstanceSettings) -> None:
        self._begin(settings)
        self._halted = None

    def _pause(self) -> None:
        self._end()

    @abstractmethod
    def _running(self) -> Instance: ...

    @abstractmethod
    def _begin(self, settings: InstanceSettings) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _reload(self, settings: InstanceSettings) -> None: ...

    def _open(self, settings: InstanceSettings, fence: Fence | None = None) -> None:
        with self._lock:
            if settings.data_dir is not None:
                self._file = LockFile(settings.data_dir / settings.destination)
                self._file.take()
            instance = Instance(settings)
            try:
                instance.start(fence)
            except BaseException:
                self._unlock()
                raise
            self._settings, self._instance = settings, instance

    def _close(self) -> None:
        with self._lock:
            if self._instance is not None:
                self._instance.stop()
            self._unlock()

    def _unlock(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _exchange(self, settings: InstanceSettings, fence: Fence | None = None) -> None:
        """The instance that runs for one with these settings; the same, if only the filter is another one. It is
        stopped only when its sources were tried with the new settings."""
        with self._lock:
            old = self._instance
            if old is None or old.failure is not None:
                self._close()
                self._open(settings, fence)
                return
            if old.settings.model_copy(update={"filter": settings.filter}) == settings:
                old.reload_filter(settings.filter)
                self._settings = settings
                return
            check_settings(settings)
            before, clients = self._settings, _Clients(old)
            self._close()
            try:
                self._open(clients.start_of(settings), fence)
                self._settings = settings
            except Exception:
                log.warning(
                    "destination reload failed destination=%s action=restart with the previous settings", self.name
                )
                self._open(clients.start_of(before), fence)
                self._settings = before
                raise
            finally:
                clients.join(self._instance)


class LocalDestination(Destination):
    """Nobody else has it."""

    def __init__(self, settings: InstanceSettings) -> None:
        super().__init__(settings)
        self._left: _Clients | None = None  # of the instance that was stopped by hand

    def _running(self) -> Instance:
        instance = self._instance
        if instance is None or instance.state is InstanceState.STOPPED:
            raise describe_start(self.name)
        return instance

    def _begin(self, settings: InstanceSettings) -> None:
        self._open(settings)

    def _end(self) -> None:
        self._close()

    def _pause(self) -> None:
        self._left = _Clients(self._instance) if self._instance is not None else None
        self._end()

    def _come_back(self, settings: InstanceSettings) -> None:
        left, self._left = self._left, None
        try:
            super()._come_back(left.start_of(settings) if left is not None else settings)
        except BaseException:
            self._left = left
            raise
        self._settings = settings
        if left is not None:
            left.join(self._instance)

    def _reload(self, settings: InstanceSettings) -> None:
        self._exchange(settings)


class ElectedDestination(Destination):
    """Of several servers the one that was elected runs it, for as long as its lease lasts."""

    def __init__(self, settings: InstanceSettings, elections: Elections) -> None:
        super().__init__(settings)
        self._elections = elections
        self.election = elections.join(settings, self._elected, self._ended)
        self._is_joined = True
        self.problem = ""  # why it could not run here when it was elected last

    @property
    def is_served(self) -> bool:
        return super().is_served or self.election.owner not in {None, self.election.address}

    def _running(self) -> Instance:
        instance = self._instance
        if not self.election.is_held():
            owner = self.election.owner
            where = f"; {owner} has it" if owner is not None and owner != self.election.address else ""
            raise NotRunningError(f"destination '{self.name}' does not run on this server{where}")
        if instance is None or instance.state is InstanceState.STOPPED:
            raise describe_start(self.name, self.problem)
        return instance

    def _begin(self, settings: InstanceSettings) -> None:
        self._settings = settings
        if not self._is_joined:
            self.election = self._elections.join(settings, self._elected, self._ended)
            self._is_joined = True
        self.election.start()

    def _end(self) -> None:
        self.election.close()
        self._elections.leave(self._settings)
        self._is_joined = False
        self._close()

    def _reload(self, settings: InstanceSettings) -> None:
        with self._lock:
            fence = self.election.fence
            if fence is not None and fence.is_held() and self._instance is not None:
                self._exchange(settings, fence)
            else:
                self._settings = settings

    def release(self) -> bool:
        """For another server to take; False when it was not ours, or is not given up yet."""
        return self.election.release()

    def look(self) -> None:
        """An instance that has failed is given up: another server may have more luck."""
        instance = self._instance
        if instance is not None and instance.failure is not None and self.election.is_held():
            self.problem = str(instance.failure)
            self.election.fail(instance.failure)

    def _elected(self, fence: Fence) -> None:
        try:
            self._open(self._settings, fence)
        except BaseException as error:
            self.problem = str(error) or type(error).__name__
            raise
        self.problem = ""

    def _ended(self, reason: str) -> None:
        log.info("destination released destination=%s reason=%s", self.name, reason)
        self._close()


class _Clients:
    """Of an instance that is about to stop: where its cursors are in memory only, they would be gone with it."""

    def __init__(self, instance: Instance) -> None:
        is_kept = instance.settings.meta_kind != "memory"
        self._cursors = {} if is_kept else instance.clients.cursors()
        self._filters = instance.clients.subscriptions()

    def start_of(self, settings: InstanceSettings) -> InstanceSettings:
        """From the lowest cursor on."""
        if not self._cursors or settings.meta_kind != "memory":
            return settings
        lowest = min(self._cursors.values())
        return settings.model_copy(update={"start": f"{lowest.file}:{lowest.offset}"})

    def join(self, instance: Instance | None) -> None:
        if instance is None:
            return
        for client_id, position in self._cursors.items():
            instance.clients.subscribe(client_id, self._filters.get(client_id, ""), Start.cursor(position))
            instance.clients.mark_absent(client_id)
