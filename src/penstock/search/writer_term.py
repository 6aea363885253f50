"""The term of a writer: of several processes that could write to an index, the one that may do so now.

Each process that takes over from another has a higher number. The index remembers the highest one beside its epoch, so
that a process that was frozen and does not know yet that another has taken over is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import FencedError


@dataclass(frozen=True, slots=True)
class WriterTerm:
    """The right of one process of a pipeline to write; `require` raises FencedError when it has ended.

    index = HttpIndex.open("http://127.0.0.1:9200", "product", term=WriterTerm("product", 7, fence.require))
    """

    pipeline: str
    number: int
    require: Callable[[], None]

    def check(self, seen: int, where: str) -> None:
        """Raise FencedError if an index was written in a later term of the pipeline."""
        if self.number < seen:
            raise FencedError(
                f"{where} was written in term {seen} of pipeline '{self.pipeline}', and this is term {self.number}:"
                f" another process has taken over. If none has, ZooKeeper has lost what it knew: write {seen} into the"
                " node `epoch` of the pipeline"
            )
