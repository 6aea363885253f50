"""Moves the aliases of indexes that a sync job has taken over from builds."""

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from penstock.client import FlightClient
from penstock.errors import FencedError, PenstockError
from penstock.model import Position
from penstock.search.writer_term import WriterTerm
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
        term: WriterTerm | None = None,
    ) -> None:
        """Move aliases for the job of a checkpoint, whose plans have the targets that are written now; after the end of
        a `term`, nothing is moved."""
        self._state, self._client, self._say, self._term = state, client, say, term
        self._progress: StreamProgress | None = None
        self._problem = ""  # that was said last
        self._build = SyncState(build_checkpoint(root))
        self._plans = {plan.spec.index: plan for plan in plans}

    def try_all(self, timeout_s: float = 0.0) -> None:
        """Move the aliases that can be moved within some seconds; the others stay for the next try."""
        pending: dict[str, Any] = self._state.read_build().get("pending") or {}
        for name, ended in pending.items():
            plan = self._plans.get(name)
            if plan is None:
                continue
            try:
                if ended is not None and not self._is_applied(Position.from_json(ended), timeout_s):
                    continue
                self._move(plan)
            except FencedError:
                raise
            except PenstockError as error:  # the server is away, or a person has to move something
                if not error.transient and str(error) != self._problem:
                    self._problem = str(error)
                    self._say(f"warning: the alias '{plan.spec.alias}' is not moved: {error}")
                continue
            self._state.update_build(lambda build, name=name: _without(build, name))

    def _is_applied(self, position: Position, timeout_s: float) -> bool:
        """Return whether all changes before a position are in the new index, by the build or by this job."""
        if self._progress is None or timeout_s:
            tables = self._state.tables_filter
            self._progress = StreamProgress(self._client, self._find_applied, tables, timeout_s=timeout_s)
            is_applied = not self._progress.wait_applied(position)
            self._progress = StreamProgress(self._client, self._find_applied, tables, timeout_s=0.0)
            return is_applied
        return not self._progress.wait_applied(position)

    def _find_applied(self) -> Position | None:
        """Return up to where changes are in the new index. A build may be removing its files."""
        ends = [self._state.applied_to]
        with suppress(PenstockError, OSError):
            ends.append(self._build.applied_to)
        return max((end for end in ends if end is not None), default=None)

    def _move(self, plan: SyncPlan) -> None:
        """Let the alias of a spec lead to its index."""
        alias, own = plan.spec.alias, plan.target.alias_owner
        if alias is None:
            return
        with closing(plan.target.open(self._term, read_only=True)) as index:
            index.refresh()  # readers of the index before have seen all that is in this one, too
            before = index.move_alias(alias)
        if before != (own,):
            self._say(f"alias '{alias}' leads to '{own}' now")


def _without(build: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what is known of builds, without an alias that is to be moved."""
    return {**build, "pending": {other: value for other, value in build["pending"].items() if other != name}}
