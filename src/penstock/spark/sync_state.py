"""What `penstock sync` remembers beside its checkpoint: where changes are followed from, and which indexes are loaded.

Spark's own offsets exist only from the first batch on; a load that was interrupted before must begin at the same
position again, or what was deleted in between would never be deleted in the index.
"""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.coordinate.term_files import STATE_SUFFIX
from penstock.disk import replace_file
from penstock.document import DocumentTables
from penstock.errors import ConfigurationError
from penstock.model import Position
from penstock.search.dead_letters import dead_letters_path
from penstock.spark.batch_range import read_offset
from penstock.spark.change_log import Offset

_LOCK = threading.RLock()  # for states of this process: each is one file, which is read and replaced
# What another checkpoint continues with, besides where the stream has ended.
_CARRIED = ("loaded", "loading", "loaded_until", "load_ids", "generations", "build")


class SyncState:
    """The state of a sync job, in a file beside its checkpoint.

    state = SyncState(Path("/var/lib/penstock/product"))
    state.remember_start(position)
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self.file = checkpoint.with_name(f"{checkpoint.name}{STATE_SUFFIX}")
        self.spark_log = checkpoint.with_name(f"{checkpoint.name}.spark.log")
        self.dead_letters = dead_letters_path(checkpoint)
        self.tables_file = checkpoint.with_name(f"{checkpoint.name}.tables.json")

    def make_folder(self) -> None:
        """Create the folder of the checkpoint. Raises ConfigurationError when that cannot be."""
        try:
            self._checkpoint.mkdir(parents=True, exist_ok=True)
            self.spark_log.touch()
        except OSError as error:
            raise ConfigurationError(f"cannot keep a checkpoint in {self._checkpoint}: {error.strerror}") from None

    @property
    def has_offsets(self) -> bool:
        """Return whether a stream has offsets of its own, from which it resumes."""
        return _has_offsets(self._folder)

    @property
    def _folder(self) -> Path:
        """Return the folder of the stream that ran last."""
        return self._checkpoint / self._read().get("folder", "")

    def open_stream(self, tables: str) -> tuple[Path, Offset | None]:
        """Return the checkpoint of a stream with this filter of tables, and where it starts if that is new.

        Spark has one checkpoint per query. A stream of other tables begins where the last one has ended.
        """
        with _LOCK:
            content = self._read()
            known = content.get("tables")
            if known is None or known == tables or not self.has_offsets:
                self._write({**content, "tables": tables})
                return self._folder, content.get("start")
            start = self._find_end()
            number = int(content.get("folder", "stream-0").removeprefix("stream-")) + 1
            self._write({**content, "tables": tables, "folder": f"stream-{number}", "start": start})
            return self._folder, start

    @property
    def tables_filter(self) -> str:
        """Return the filter of the tables that the stream follows; empty before its first start."""
        return self._read().get("tables", "")

    @property
    def applied_to(self) -> Position | None:
        """Return up to where the changes of the log are applied to the indexes; None before the first load is done."""
        end = self._find_end() if self.loaded else None
        return None if end is None else Position.from_json(end)

    def _find_end(self) -> Offset | None:
        """Return up to where batches are done: where the last one ended, or where changes are followed from."""
        return last_committed(self._folder) or self._read().get("start")

    @property
    def start(self) -> Position | None:
        """The position from which changes are followed, as remembered before the first load; None before that."""
        content = self._read()
        return Position.from_json(content["start"]) if "start" in content else None

    @property
    def loaded(self) -> dict[str, str]:
        """Return the indexes that were loaded, with the position that the load corresponds to."""
        return self._read().get("loaded", {})

    @property
    def loading(self) -> frozenset[str]:
        """Return the indexes whose load has begun and is not done."""
        return frozenset(self._read().get("loading", {}))

    def loading_since(self, index: str) -> Position | None:
        """Return the position that the load of an index corresponds to, which has begun and is not done."""
        position = self._read().get("loading", {}).get(index)
        return None if position is None else Position.from_json(position)

    def remember_start(self, position: Position) -> None:
        """Persist where changes will be followed from; a crash leaves the whole file, or none."""
        self._update(lambda content: {**content, "start": position.to_json()})

    def remember_loading(self, index: str, position: Position) -> None:
        """Persist that the load of an index begins: what it has from then on is ours, and is loaded again."""
        self._update(lambda content: {**content, "loading": {**content.get("loading", {}), index: position.to_json()}})

    def generation(self, index: str) -> str:
        """Return the generation of an index that this job writes; empty for the one with the name itself."""
        return self._read().get("generations", {}).get(index, "")

    def remember_generation(self, index: str, generation: str) -> None:
        """Persist which generation of an index this job writes."""
        self._update(lambda content: {**content, "generations": {**content.get("generations", {}), index: generation}})

    def read_build(self) -> dict[str, Any]:
        """Return what this state knows of builds of indexes (see `index_generation`), by its own names."""
        return self._read().get("build", {})

    def update_build(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Persist what a function makes of what is known of builds of indexes."""
        self._update(lambda content: {**content, "build": change(content.get("build", {}))})

    def loaded_until(self, index: str) -> Any:
        """Return the key behind which the load of an index resumes, which has begun and is not done; None for none."""
        return self._read().get("loaded_until", {}).get(index)

    def remember_part(self, index: str, key: Any) -> None:
        """Persist up to which key the documents of an index are loaded."""
        self._update(lambda content: {**content, "loaded_until": {**content.get("loaded_until", {}), index: key}})

    def describe_generation(self, index: str) -> dict[str, Any]:
        """Return what another state needs to follow the generation of an index that this one writes: `adopt` takes it.
        Its `offset` is where this one has ended."""
        return {
            "generation": self.generation(index),
            "loaded": self.loaded.get(index),
            "load_id": self.load_id(index),
            "offset": self._find_end(),
        }

    def adopt(self, index: str, described: dict[str, Any], start: Offset, build: dict[str, Any]) -> None:
        """Persist that another generation of an index is written from now on; the stream begins again at an offset,
        from which nothing is missing in any index. `build` is what is known of builds then."""
        content = self._read()
        number = int(content.get("folder", "stream-0").removeprefix("stream-")) + 1
        named = {
            name: {**content.get(name, {}), index: described[part]}
            for name, part in (("generations", "generation"), ("loaded", "loaded"), ("load_ids", "load_id"))
        }
        self._write({**content, **named, "folder": f"stream-{number}", "start": start, "build": build})

    def load_id(self, index: str) -> str:
        """Return the id of the load that has filled an index; empty when it is not known."""
        return self._read().get("load_ids", {}).get(index, "")

    def remember_loaded(self, index: str, position: Position, load_id: str) -> None:
        """Persist that an index was loaded, by the load with this id."""
        with _LOCK:
            content = self._read()
            loading, until = (
                {name: value for name, value in content.get(part, {}).items() if name != index}
                for part in ("loading", "loaded_until")
            )
            load_ids = {**content.get("load_ids", {}), index: load_id}
            loaded = {**self.loaded, index: str(position)}
            self._write({**content, "loading": loading, "loaded_until": until, "loaded": loaded, "load_ids": load_ids})

    def known_tables(self, index: str) -> DocumentTables | None:
        """Return what was known last of the tables of an index that is loaded, or whose load has begun; None for
        another."""
        if index not in self.loaded and self.loading_since(index) is None:
            return None
        plain = self._read_tables().get(index)
        return None if plain is None else DocumentTables.from_json(plain)

    def remember_tables(self, index: str, known: DocumentTables) -> None:
        """Persist what is known of the tables of an index."""
        replace_file(self.tables_file, json.dumps({**self._read_tables(), index: known.to_json()}).encode())

    def take_tables(self, other: "SyncState") -> None:
        """Persist what is known of tables in the state that this one continues."""
        if tables := other._read_tables():  # noqa: SLF001 - of the same class
            replace_file(self.tables_file, json.dumps(tables).encode())

    def _read_tables(self) -> dict[str, Any]:
        file = self.tables_file
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def hand_over(self, pipeline: str) -> dict[str, Any]:
        """Return the state in which another checkpoint continues this one: it resumes where this one has ended. Raises
        ConfigurationError when this one is of another pipeline."""
        content = self._read()
        if (owner := content.get("pipeline", pipeline)) != pipeline:
            raise ConfigurationError(
                f"{self.file} says that the pipeline '{owner}' has this checkpoint, and this one is '{pipeline}': give"
                " each a checkpoint of its own, or the same --name to all that share one"
            )
        carried = {name: content[name] for name in _CARRIED if name in content}
        start = self._find_end()
        return {"pipeline": pipeline, **carried, **({} if start is None else {"start": start})}

    def take_over(self, content: dict[str, Any]) -> None:
        """Persist what another checkpoint has handed over."""
        self._write(content)

    def find_planned_end(self) -> Offset | None:
        """Return where the last batch ends that was planned: what was stopped in its middle may be written in part."""
        planned = [int(path.name) for path in (self._folder / "offsets").glob("[0-9]*") if path.name.isdigit()]
        offset = read_offset(self._folder, max(planned)) if planned else None
        return self._find_end() if offset is None else Position.from_json(offset).to_json()

    def _read(self) -> dict[str, Any]:
        try:
            return json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def _write(self, content: dict[str, Any]) -> None:
        replace_file(self.file, json.dumps(content).encode())

    def _update(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Persist what a function makes of the content; other threads of this process wait meanwhile."""
        with _LOCK:
            self._write(change(self._read()))


def read_applied(folder: Path, start: Position) -> Position:
    """Return up to where the batches of a stream are done, which began at a position."""
    offset = last_committed(folder)
    return start if offset is None else Position.from_json(offset)


def _has_offsets(folder: Path) -> bool:
    """Return whether Spark has planned a batch with a checkpoint."""
    return any((folder / "offsets").glob("[0-9]*"))


def last_committed(folder: Path) -> Offset | None:
    """Return where the last batch of a checkpoint ended that was done, in which log; None when none was."""
    offset = find_last_offset(folder)
    if offset is None:
        return None
    identity = {"log": offset["log"]} if "log" in offset else {}
    return Position.from_json(offset).to_json() | identity


def find_last_offset(folder: Path) -> Offset | None:
    """Return the offset at which the last batch of a checkpoint ended that was done; None when none was. Raises
    ConfigurationError for a checkpoint that does not say it."""
    done = [int(path.name) for path in (folder / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not done:
        return None
    offset = read_offset(folder, max(done))
    if offset is None:
        raise ConfigurationError(
            f"Spark's checkpoint {folder} is damaged: it does not say where batch {max(done)} ends"
        )
    return offset
