"""Builds a new generation of an index beside the one that readers search, proves that it is equal to the database, and
lets the alias lead to it.

    load → follow changes → compare with the database → move the alias → until `penstock sync` follows it

Whatever is killed, the same command resumes. Readers find the last generation, which its own sync job keeps equal to
the database, until the alias is moved in one step; the build follows the new one until that job does.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from penstock.coordinate import LockFile
from penstock.coordinate.term_files import find_newest_checkpoint
from penstock.document.spec_hash import hash_spec
from penstock.document.spec_location import load_located_spec
from penstock.document.verify import VerifyResult
from penstock.errors import ConfigurationError, IndexDifferentError, PenstockError
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import SearchIndex
from penstock.spark.checkpoint_lock import lock_build, lock_checkpoint
from penstock.spark.index_comparison import IndexComparison
from penstock.spark.index_generation import (
    TakeOver,
    build_checkpoint,
    copy_letters_of,
    letters_before,
    name_generation,
    read_take_over,
    remove_build,
)
from penstock.spark.index_target import IndexTarget
from penstock.spark.sync_job import SyncJob, SyncPlan, wait_for
from penstock.spark.sync_output import SyncOutput
from penstock.spark.sync_run import SyncRun
from penstock.spark.sync_settings import SyncSettings
from penstock.spark.sync_state import SyncState
from penstock.spark.sync_terms import SyncTerm

log = logging.getLogger(__name__)

_NOT_TAKEN = {TakeOver.NONE, TakeOver.REFUSED}
_LOOK_S = 0.2
_ADOPTED_S = 60.0  # in which a sync job that runs takes over


class IndexBuild:
    """Builds a new generation of the index of one spec, or goes back to the one before.

    IndexBuild(settings, output).run()
    """

    def __init__(self, settings: SyncSettings, output: SyncOutput, *, is_verified: bool = True) -> None:
        """Build for the sync job of these settings, whose checkpoint is that of `penstock sync`."""
        (self._file,) = settings.spec_files
        self._root, self._settings, self._output = settings.checkpoint, settings, output
        self._spec = load_located_spec(self._file)
        if self._spec.alias is None:
            raise ConfigurationError(
                f"{self._file} has no `alias`: readers need one that can be moved from the present index to the new"
                " one. Add it, and let them search it"
            )
        self._alias = self._spec.alias
        self._checkpoint = build_checkpoint(self._root)
        self._state = SyncState(self._checkpoint)
        self._is_verified = is_verified
        self._spec_hash = hash_spec(self._file, self._spec)
        self._stopped = threading.Event()  # told to stop, or failed
        self._followed = threading.Event()  # changes are followed here no more
        self._is_interrupted = False
        self._failure: BaseException | None = None

    def stop(self) -> None:
        """Let `run` return soon. It may be called by a signal handler."""
        self._is_interrupted = True
        self._stopped.set()
        self._followed.set()

    @property
    def is_interrupted(self) -> bool:
        """Return whether it was told to stop before it was done."""
        return self._is_interrupted

    def run(self, *, restart: bool = False) -> None:
        """Build, or resume a build that was interrupted; with `restart`, begin a new one instead. Return when the sync
        job follows the index. Raises PenstockError for what only a person can solve, and IndexDifferentError for a
        build that is not equal to the database."""
        with self._lock():
            if restart:
                self._drop()
            elif self._is_done():
                return
            if self._stopped.is_set():
                return
            self._begin(self._spec.index)
            self._work()

    def roll_back(self) -> None:
        """Let the alias lead to the generation from before the last build, once that has caught up with the log."""
        index = self._spec.index
        with self._lock():
            if self._is_done():
                return
            root, content = SyncState(find_newest_checkpoint(self._root)), self._state.read_build()
            if content.get("kind") == "build" and self._can_give_up(content):
                if self._give_up(root, index):
                    remove_build(self._root)
                return
            if content.get("kind") != "rollback":
                self._check_unfinished()
                self._begin_rollback(root, index)
            self._is_verified = False
            self._work()

    def _is_done(self) -> bool:
        """Return whether the build that was begun is done, and sync follows its index; then nothing of it is left."""
        if read_take_over(self._root) is not TakeOver.FOLLOWED:
            return False
        remove_build(self._root)
        self._output.tell("what was begun is done already: `penstock sync` follows the index")
        return True

    def _drop(self) -> None:
        """Drop an unfinished build; readers find the index before again."""
        index, content = self._spec.index, self._state.read_build()
        if not content:
            return
        root, generation = SyncState(find_newest_checkpoint(self._root)), self._state.generation(index)
        if self._can_give_up(content) and index in root.loaded and not self._give_up(root, index):
            return
        target, in_use = self._target_of(generation), root.generation(index) == generation and index in root.loaded
        owners = self._wait_for(lambda: self._find_owners(target))
        remove_build(self._root)
        if owners is not None and target.alias_owner not in owners and not in_use:
            self._output.tell(f"the unfinished index '{target.alias_owner}' is not used any more: delete it")

    def _can_give_up(self, content: dict[str, Any]) -> bool:
        """Return whether readers may find the new index, or have begun to be led back, and no sync job follows it."""
        return "giving_up" in content or ("promotion" in content and read_take_over(self._root) in _NOT_TAKEN)

    def _find_owners(self, target: IndexTarget) -> tuple[str, ...]:
        """Return the names of the indexes that the alias leads to."""
        with closing(target.open()) as search:
            return search.find_owners(self._alias)

    def _lock(self) -> LockFile:
        """Return the lock of the build."""
        self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
        return lock_build(self._checkpoint)

    def _begin(self, index: str) -> None:
        """Persist what is built, unless that was begun before."""
        content, spec = self._state.read_build(), self._spec_hash
        if "giving_up" in content:
            raise ConfigurationError(
                f"{self._checkpoint} has a build that is being rolled back: finish that with `penstock index rollback`"
            )
        if content and (content["index"], content["spec"], content["kind"]) != (index, spec, "build"):
            what = f"an unfinished {content['kind']} of index '{content['index']}'"
            raise ConfigurationError(
                f"{self._checkpoint} has {what}{' with another spec' if content['spec'] != spec else ''}: finish it, or"
                " say --restart to drop it"
            )
        if not content:
            remove_build(self._root)  # what a crash may have left
            generation = name_generation()
            with closing(self._target_of(generation).open()) as search:
                search.check_alias(self._alias)
            self._state.make_folder()
            self._state.remember_generation(index, generation)
            self._state.update_build(lambda _: {"index": index, "spec": spec, "kind": "build"})
        self._output.tell(f"building {self._state.generation(index)}, the next generation of index '{index}'")

    def _check_unfinished(self) -> None:
        """Raise ConfigurationError when there is a build that is not done."""
        content = self._state.read_build()
        if content and not self._is_followed():
            raise ConfigurationError(
                f"{self._checkpoint} has an unfinished build of index '{content['index']}', to which the alias"
                " does not lead yet: there is nothing to roll back. Say `penstock index build --restart` to drop it"
            )

    def _begin_rollback(self, root: SyncState, index: str) -> None:
        """Persist that the generation from before the last build is followed from where its sync job left it."""
        before: dict[str, Any] | None = root.read_build().get("previous", {}).get(index)
        if before is None:
            raise ConfigurationError(f"{self._root} knows of no generation of index '{index}' before the present one")
        spec = self._spec_hash
        if before["spec"] not in {None, spec}:
            raise ConfigurationError(
                f"the generation before of index '{index}' was filled with another spec than {self._file}: name that"
                " one"
            )
        remove_build(self._root)
        self._state.make_folder()
        if (tables := root.known_tables(index)) is not None:
            self._state.remember_tables(index, tables)
        with (
            DeadLetters.open(letters_before(root), is_created=False) as before_letters,
            DeadLetters.open(self._state.dead_letters) as letters,
        ):
            copy_letters_of(before_letters, letters, index)
        build = {"index": index, "spec": spec, "kind": "rollback"}
        self._state.adopt(index, before, before["offset"], build)  # last: from now on it is a rollback

    def _give_up(self, root: SyncState, index: str) -> bool:
        """Let the alias lead back to the generation that the sync job still follows; return False when told to stop
        before."""
        if index not in root.loaded:
            raise ConfigurationError(f"{self._root} knows of no generation of index '{index}' before the present one")
        target = self._target_of(root.generation(index))
        # No sync job takes over from now on; whatever fails, giving up resumes.
        self._state.update_build(
            lambda build: {"giving_up": True, **{key: value for key, value in build.items() if key != "promotion"}}
        )

        def move() -> tuple[str, ...]:
            with closing(target.open(read_only=True)) as search:
                return search.move_alias(self._alias)

        if self._wait_for(move) is None:
            return False
        self._output.tell(f"alias '{self._alias}' leads to '{target.alias_owner}' again, which sync follows")
        return True

    def _target_of(self, generation: str) -> IndexTarget:
        """Return where a generation of the index is."""
        return self._settings.target.of_index(self._spec.index, is_alone=True).of_generation(generation)

    def _work(self) -> None:
        """Load and follow the index in this thread, while another one proves and promotes it."""
        settings = replace(self._settings, checkpoint=self._checkpoint)
        job = SyncJob.prepare(settings, self._output.tell, self._stopped)
        if self._stopped.is_set():
            return
        promoter = threading.Thread(target=self._promote, args=(job.plans[0],), name="promote-build")
        promoter.start()
        try:
            SyncRun(job, SyncTerm(self._checkpoint, self._followed), self._output, is_build=True).run()
        except BaseException:
            self._stopped.set()
            raise
        finally:
            promoter.join()
        if self._failure is not None:
            raise self._failure
        if self._is_followed():
            remove_build(self._root)
        elif self._is_interrupted and "promotion" in self._state.read_build():
            self._output.tell(
                "readers find the new index, or soon will, and nobody follows changes into it until `penstock sync` is"
                " started with this spec, or this command again"
            )

    def _promote(self, plan: SyncPlan) -> None:
        """Prove that the index is equal to the database, move the alias, and wait for the sync job to take over."""
        try:
            generation = self._state.generation(self._spec.index)
            self._prove_and_move(replace(plan, target=plan.target.of_generation(generation)))
        except BaseException as error:  # noqa: BLE001 - raised in the thread of `run`
            self._failure = error
        finally:
            self._followed.set()

    def _prove_and_move(self, plan: SyncPlan) -> None:
        if not self._wait_until(lambda: self._spec.index in self._state.loaded):
            return
        proof = IndexComparison(replace(self._settings, checkpoint=self._checkpoint), plan, self._state, self._stopped)
        if "promotion" not in self._state.read_build():
            result = self._wait_for(proof.compare if self._is_verified else proof.wait_until_current)
            if self._stopped.is_set():
                return
            if isinstance(result, VerifyResult):
                self._judge(result, plan)
            promotion = secrets.token_hex(8)
            self._state.update_build(lambda build: {**build, "promotion": promotion})
        if not self._is_running_sync_there() or not self._is_adopted_soon():
            self._move_when_current(proof, plan)
        if not plan.target.is_shared and self._wait_until(self._is_adopted):
            self._followed.set()  # an index in a folder has one writer, and that is sync from now on
        if self._wait_until(self._is_followed) and self._wait_for(lambda: self._wait_for_sync(plan)):
            self._move_alias(plan)
            self._output.tell("`penstock sync` follows the index: done")

    def _is_followed(self) -> bool:
        """Return whether the sync job follows the index that was built."""
        return read_take_over(self._root) is TakeOver.FOLLOWED

    def _is_adopted(self) -> bool:
        """Return whether the sync job is about to follow the index that was built."""
        return read_take_over(self._root) in {TakeOver.ADOPTED, TakeOver.FOLLOWED}

    def _is_running_sync_there(self) -> bool:
        """Return whether a process on this machine has the checkpoint of the sync job."""
        try:
            with lock_checkpoint(self._root, is_shared=False):
                return False
        except PenstockError:
            return True

    def _is_adopted_soon(self) -> bool:
        """Wait for the running sync job to take over, and return whether it does. Then it moves the alias."""
        deadline = time.monotonic() + _ADOPTED_S
        while (step := read_take_over(self._root)) is TakeOver.NONE and time.monotonic() < deadline:
            if self._stopped.wait(_LOOK_S):
                return True  # it resumes when it is started again
        return step in {TakeOver.ADOPTED, TakeOver.FOLLOWED}

    def _move_when_current(self, proof: IndexComparison, plan: SyncPlan) -> None:
        """Move the alias here, because no sync job does."""
        if self._wait_for(proof.wait_until_current):
            self._move_alias(plan)
            self._output.tell(
                f"start `penstock sync` with this spec and --checkpoint {self._root}: it takes over. Until then,"
                " changes are followed here"
            )

    def _wait_for_sync(self, plan: SyncPlan) -> bool:
        """Return True when the sync job has applied all that the log has now; False when told to stop."""
        state = SyncState(find_newest_checkpoint(self._root))
        return IndexComparison(self._settings, plan, state, self._stopped).wait_until_current()

    def _judge(self, result: VerifyResult, plan: SyncPlan) -> None:
        """Raise IndexDifferentError unless the index is equal to the database, up to what it refuses."""
        unexplained = result.unexplained
        if result.unsettled or unexplained:
            first = f", the first {result.first_unexplained}" if unexplained else ""
            raise IndexDifferentError(
                f"the new index '{plan.target.alias_owner}' is not proved to be equal to the database, so the alias was"
                f" not moved: {unexplained} documents differ{first}; {result.unsettled} are not"
                f" settled{': ' if result.unsettled_reason else ''}{result.unsettled_reason}. The same command compares"
                " again; with --restart, it builds again"
            )
        count = sum(result.counts.values())
        refused = f", {count:,} of them refused by the index (`penstock dlq list {self._checkpoint}`)" if count else ""
        self._output.tell(f"equal to the database: {result.documents:,} documents{refused}")

    def _move_alias(self, plan: SyncPlan) -> None:
        """Let the alias lead to the new index alone, if it does not yet."""

        def move() -> tuple[str, ...]:
            index: SearchIndex
            with closing(plan.target.open(read_only=True)) as index:
                index.refresh()
                return index.move_alias(self._alias)

        before, own = self._wait_for(move), plan.target.alias_owner
        if before is not None and before != (own,):
            others = " and ".join(f"'{name}'" for name in before)
            self._output.tell(
                f"alias '{self._alias}' leads to '{own}' now" + (f", and no longer to {others}" if others else "")
            )

    def _wait_for(self, action: Callable[[], Any]) -> Any:
        """Return what an action returns; None when told to stop while it failed."""
        what = f"index '{self._spec.index}', the Penstock server or the database"
        return wait_for(action, what, self._stopped, self._output.tell)

    def _wait_until(self, condition: Callable[[], bool]) -> bool:
        """Return True as soon as a condition holds, and False when told to stop."""
        while not condition():
            if self._stopped.wait(_LOOK_S):
                return False
        return True
