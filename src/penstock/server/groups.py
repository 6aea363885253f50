"""Groups of a server: several of its destinations, which canal's clients see as one.

A member is a destination like others: it is started, reloaded, shown and stopped by its own name. The group rests on
the instances that run; when one of them is another one, so is the group.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from penstock.config import GroupSettings
from penstock.errors import ConfigurationError
from penstock.group import Group
from penstock.instance import Instance


class ServedGroup(Group):
    """Serves several running instances as one destination."""

    def __init__(self, settings: GroupSettings, instances: Mapping[str, Instance]) -> None:
        super().__init__(settings.destination, instances, hold_s=settings.hold_s)
        self.settings, self.instances = settings, dict(instances)

    @property
    def clients(self) -> Self:
        return self


class Groups:
    """Any thread may call it."""

    def __init__(self, groups: Sequence[GroupSettings], instance_of: Callable[[str], Instance]) -> None:
        self._settings = {one.destination: one for one in groups}
        self._group_of = {name: one.destination for one in groups for name in one.member_names.values()}
        self._instance_of = instance_of
        self._lock = threading.Lock()  # of the next
        self._made: dict[str, ServedGroup] = {}

    def served(self, destination: str) -> Instance | ServedGroup:
        """What canal's clients may get now; raises why there is nothing."""
        settings = self._settings.get(destination)
        if settings is not None:
            return self._group(settings)
        if destination in self._group_of:
            group = self._group_of[destination]
            raise ConfigurationError(f"destination '{destination}' is a part of '{group}': subscribe to that")
        return self._instance_of(destination)

    def _group(self, settings: GroupSettings) -> ServedGroup:
        name = settings.destination
        with self._lock:
            instances = {member: self._instance_of(full) for member, full in settings.member_names.items()}
            last = self._made.get(name)
            if last is not None and last.instances == instances:
                return last
            if last is not None:
                last.hand_over(member for member, one in instances.items() if last.instances[member] is one)
            made = self._made[name] = ServedGroup(settings, instances)
            return made
