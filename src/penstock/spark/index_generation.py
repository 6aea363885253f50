"""Generations of an index: `penstock index build` fills a new one, and the sync job that wrote the last one takes over.

    product                     the index that `penstock sync` has made
    product-20261118-143000     one that was built; the alias leads to it from the moment when it is proved to be equal

A build has a checkpoint of its own, CHECKPOINT.build, and follows the changes itself until the sync job of CHECKPOINT
follows them: it begins where the build or itself has ended, whichever is earlier. Changes that are applied twice change
nothing. A job that runs moves the alias when it takes over: it writes the old index no more, and the new one has all
that the old one has, so that no reader sees a document go back in time.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from penstock.coordinate.term_files import STATE_SUFFIX, find_newest_checkpoint
from penstock.errors import ConfigurationError
from penstock.model import Position
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import Rejection
from penstock.spark.checkpoint_lock import lock_build
from penstock.spark.sync_job import SyncPlan
from penstock.spark.sync_state import SyncState

_LETTERS_PER_PAGE = 500
_ANY_VERSION = (1 << 63) - 1


def build_checkpoint(root: Path) -> Path:
    """Return the checkpoint of a build beside that of the sync job."""
    return root.with_name(f"{root.name}.build")


def name_generation() -> str:
    """Return the name of a new generation, by the time of its begin."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def remove_build(root: Path) -> None:
    """Remove the checkpoint of a build and all files beside it, the state first."""
    folder = build_checkpoint(root)
    with suppress(FileNotFoundError):
        SyncState(folder).file.unlink()
    for path in folder.parent.glob(f"{folder.name}*"):
        if path == folder or (path.name.startswith(f"{folder.name}.") and not path.name.endswith(".lock")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def remove_abandoned_build(root: Path) -> None:
    """Remove the build that a sync job follows now, if no process is there that would do it."""
    if read_take_over(root) is not TakeOver.FOLLOWED:
        return
    with suppress(ConfigurationError), lock_build(build_checkpoint(root)):
        remove_build(root)


class FinishedBuild:
    """The build beside a sync job, when it is done and the job does not follow its index yet.

    if (build := FinishedBuild.find(root, state)) is not None and build.fits(plans):
        build.hand_over(state, letters)
    """

    def __init__(self, state: SyncState, content: dict[str, Any]) -> None:
        self._state, self._content = state, content
        self.index: str = content["index"]

    @classmethod
    def find(cls, root: Path, state: SyncState) -> "FinishedBuild | None":
        """Return the build that is done and not taken over; None if there is none."""
        build = SyncState(build_checkpoint(root))
        content = build.read_build() if build.file.exists() else {}
        promotion = content.get("promotion")
        if promotion is None or promotion == state.read_build().get("adopted", {}).get(content["index"]):
            return None
        return cls(build, content)

    @property
    def load_id(self) -> str:
        """Return the id of the load that has filled the index."""
        return self._state.load_id(self.index)

    @property
    def generation(self) -> str:
        """Return the generation that was built."""
        return self._state.generation(self.index)

    @property
    def promotion(self) -> str:
        """Return the id of this take-over."""
        return self._content["promotion"]

    def fits(self, plans: Sequence[SyncPlan]) -> bool:
        """Return whether a job has the spec that the index was built with."""
        return any(plan.spec.index == self.index and plan.spec_hash == self._content["spec"] for plan in plans)

    def hand_over(self, state: SyncState, letters: DeadLetters) -> None:
        """Let the state of a sync job follow the index that was built, with its dead letters."""
        index, described, before = self.index, self._state.describe_generation(self.index), state.describe_generation
        # Other indexes of the job need what comes after its own end; this one has all up to the end of the build.
        is_alone = all(name == index for name in (*state.loaded, *state.loading))
        ends = [end for end in (described["offset"], None if is_alone else before(index)["offset"]) if end is not None]
        build = state.read_build()
        adopted = {**build.get("adopted", {}), index: self._content["promotion"]}
        specs, previous = {**build.get("specs", {})}, {**build.get("previous", {})}
        if index in state.loaded:
            previous[index] = {**before(index), "spec": specs.get(index)}
        pending: dict[str, Any] = dict(build.get("pending") or {})
        pending[index] = state.find_planned_end() if index in state.loaded else None
        specs[index] = self._content["spec"]
        if build.get("letters_kept") != self.promotion:  # a take-over that was killed has replaced them already
            copy_letters_of(letters, letters_before(state), index)
            state.update_build(lambda content: {**content, "letters_kept": self.promotion})
        with DeadLetters.open(self._state.dead_letters, is_created=False) as built:
            copy_letters_of(built, letters, index)
        if (tables := self._state.known_tables(index)) is not None:
            state.remember_tables(index, tables)
        state.adopt(
            index,
            described,
            min(ends, key=Position.from_json),
            {**build, "adopted": adopted, "specs": specs, "previous": previous, "pending": pending},
        )


def remember_spec(state: SyncState, index: str, spec_hash: str) -> None:
    """Persist with which spec the present generation of an index was filled."""
    state.update_build(lambda build: {**build, "specs": {**build.get("specs", {}), index: spec_hash}})


def refuse_build(state: SyncState, build: FinishedBuild) -> None:
    """Persist that the sync job has another spec than a build: it will not take over before it is started with that."""
    state.update_build(lambda content: {**content, "refused": build.promotion})


def is_refused(state: SyncState, build: FinishedBuild) -> bool:
    """Return whether the sync job has refused a build before; it looks at it again when it is started."""
    return state.read_build().get("refused") == build.promotion


def remember_following(state: SyncState) -> None:
    """Persist that the stream of a sync job follows the indexes that it has taken over from builds."""
    build = state.read_build()
    if build.get("adopted") != build.get("followed"):
        state.update_build(lambda content: {**content, "followed": content.get("adopted")})


class TakeOver(StrEnum):
    """The steps in which a sync job takes over the index of a build."""

    NONE = "none"
    REFUSED = "refused"  # it has another spec
    ADOPTED = "adopted"  # it will begin to follow
    FOLLOWED = "followed"


def read_take_over(root: Path) -> TakeOver:
    """Return how far the sync job of a checkpoint is with taking over the build beside it."""
    build = SyncState(build_checkpoint(root))
    content: dict[str, Any] = build.read_build() if build.file.exists() else {}
    job: dict[str, Any] = SyncState(find_newest_checkpoint(root)).read_build()
    if (promotion := content.get("promotion")) is None:
        return TakeOver.NONE
    for step in (TakeOver.FOLLOWED, TakeOver.ADOPTED):
        taken: dict[str, str] = job.get(step) or {}
        if taken.get(content["index"]) == promotion:
            return step
    return TakeOver.REFUSED if job.get("refused") == promotion else TakeOver.NONE


def watch_builds(root: Path, state: SyncState) -> Callable[[], FinishedBuild | None]:
    """Return what finds a finished build beside a sync job, and reads its state only when that has changed."""
    file = build_checkpoint(root).with_name(f"{root.name}.build{STATE_SUFFIX}")
    seen: list[float] = []

    def look() -> FinishedBuild | None:
        try:
            changed = file.stat().st_mtime
        except OSError:
            return None
        if seen == [changed]:
            return None
        seen[:] = [changed]
        return FinishedBuild.find(root, state)

    return look


def letters_before(state: SyncState) -> Path:
    """Return the file with the dead letters of the generation of an index before the present one."""
    return state.dead_letters.with_name(f"{state.dead_letters.name}.before")


def copy_letters_of(source: DeadLetters, target: DeadLetters | Path, index: str) -> None:
    """Replace the dead letters of an index by those that another file has of it."""
    if isinstance(target, Path):
        with DeadLetters.open(target) as opened:
            copy_letters_of(source, opened, index)
        return
    target.forget_before(index, _ANY_VERSION)
    after = 0
    while page := source.read_page(after, _LETTERS_PER_PAGE, index):
        after = page[-1].number
        for letter in page:
            refused = Rejection(
                *(letter.id, letter.reason, letter.version, letter.routing, letter.document),
                before_transform=letter.before_transform,
            )
            target.add(index, [refused], letter.position, letter.gtid)
