"""The groups of a server: several destinations that canal's clients see as one.

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
        """Return the group itself, which has the calls of an instance's clients."""
        return self


class Groups:
    """Finds what serves a destination on canal's port: an instance, or a group of instances. Any thread may call it."""

    def __init__(self, groups: Sequence[GroupSettings], get_instance: Callable[[str], Instance]) -> None:
        self._settings = {group.destination: group for group in groups}
        self._group_of = {name: group.destination for group in groups for name in group.member_names.values()}
        self._get_instance = get_instance
        self._lock = threading.Lock()  # of the next
        self._open: dict[str, ServedGroup] = {}

    def find_running(self, destination: str) -> Instance | ServedGroup:
        """Return the instance or the group that serves a destination to canal's clients now. Raises why there is
        none."""
        settings = self._settings.get(destination)
        if settings is not None:
            return self._open_group(settings)
        if destination in self._group_of:
            group = self._group_of[destination]
            raise ConfigurationError(f"destination '{destination}' is a part of '{group}': subscribe to that")
        return self._get_instance(destination)

    def _open_group(self, settings: GroupSettings) -> ServedGroup:
        """Return the group over the instances that run now. When one of them was restarted, the old group is retired
        and a new one made."""
        name = settings.destination
        with self._lock:
            instances = {member: self._get_instance(full) for member, full in settings.member_names.items()}
            last = self._open.get(name)
            if last is not None and last.instances == instances:
                return last
            if last is not None:
                last.retire(member for member, instance in instances.items() if last.instances[member] is instance)
            group = self._open[name] = ServedGroup(settings, instances)
            return group
