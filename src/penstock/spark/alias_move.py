"""Moves the aliases of indexes that a sync job has taken over from builds."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.client import FlightClient
from penstock.errors import PenstockError
from penstock.model import Position
from penstock.spark.applied_changes import StreamProgress
from penstock.spark.index_generation import build_checkpoint
from penstock.spark.sync_job import SyncPlan
from penstock.spark.sync_state import SyncState


class AliasMoves:
    """The aliases that are to lead to other indexes as soon as these have all changes that the ones before have, which
    are written no more: so that no reader sees a document go back in time.

    AliasMoves(root, state, plans, client, say).try_all(timeout_s=10)
    """

    def __init__(
        self,
        root: Path,
        state: SyncState,
        plans: Sequence[SyncPlan],
        client: FlightClient,
        say: Callable[[str], None],
    ) -> None:
        """Move aliases for the job of a checkpoint, whose plans have the targets that are written now."""
        self._state, self._client, self._say = state, client, say
        self._build = SyncState(build_checkpoint(root))
        self._plans = {plan.spec.index: plan for plan in plans}

    def try_all(self, timeout_s: float = 0.0) -> None:
        """Move the aliases that can be moved within some seconds; the others stay for the next try."""
        pending: dict[str, Any] = self._state.read_build().get("pending") or {}
        for name, ended in pending.items():
            plan = self._plans.get(name)
            if plan is None or (ended is not None and not self._is_applied(Position.from_json(ended), timeout_s)):
                continue
            try:
                self._move(plan)
            except PenstockError as error:
                if not error.transient:
                    raise
                continue
            build = self._state.read_build()
            left = {other: value for other, value in build["pending"].items() if other != name}
            self._state.remember_build({**build, "pending": left})

    def _is_applied(self, position: Position, timeout_s: float) -> bool:
        """Return whether all changes before a position are in the new index, by the build or by this job."""

        def find_applied() -> Position | None:
            ends = [end for end in (self._state.applied_to, self._build.applied_to) if end is not None]
            return max(ends, default=None)

        changes = StreamProgress(self._client, find_applied, self._state.tables_filter, timeout_s=timeout_s)
        return not changes.wait_applied(position)

    def _move(self, plan: SyncPlan) -> None:
        """Let the alias of a spec lead to its index."""
        alias, own = plan.spec.alias, plan.target.alias_owner
        if alias is None:
            return
        with closing(plan.target.open(read_only=True)) as index:
            index.refresh()  # readers of the index before have seen all that is in this one, too
            before = index.move_alias(alias)
        if before != (own,):
            self._say(f"alias '{alias}' leads to '{own}' now")
