"""The lines of a document spec: where in its file each part of it stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SpecLines:
    """The parts of one YAML file with their lines.

    SpecLines.read(Path("product.yml")).find_line(("root", "joins", "store", "on"))
    """

    root: yaml.Node | None

    @classmethod
    def read(cls, path: Path) -> "SpecLines":
        """Read the parts of a file that was read as YAML before."""
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        try:
            return cls(loader.get_single_node())
        finally:
            loader.dispose()

    def follow(self, path: Sequence[str | int]) -> tuple[int, KeyPath]:
        """Return the line of the part with this path, and how much of the path the file has."""
        node, line, followed = self.root, 1, 0
        for step in path:
            below = None if node is None else _find_below(node, step)
            if below is None:
                break
            node, line = below
            followed += 1
        return line, tuple(path[:followed])

    def find_line(self, path: Sequence[str | int], name: str = "") -> int:
        """Return the line of the part with this path; with a name, of the first text in that part that equals it,
        ignoring case."""
        line, followed = self.follow(path)
        node = self.root
        for step in followed:
            node = (_find_below(node, step) or (None,))[0] if node is not None else None
        if name and node is not None:
            texts = (text for text in _texts(node) if text.value.removeprefix("-").casefold() == name.casefold())
            first = next(texts, None)
            line = line if first is None else first.start_mark.line + 1
        return line


def _find_below(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    """Return the part of a mapping with a key, or of a list with a number or a name, and its line."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line + 1
        merged = [value for key, value in node.value if key.value == "<<"]
        return next((below for value in merged if (below := _find_below(value, step)) is not None), None)
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            if number == step or (isinstance(item, yaml.ScalarNode) and item.value == step):
                return item, item.start_mark.line + 1
            if isinstance(item, yaml.MappingNode) and (below := _find_below(item, step)) is not None:
                return below
    return None


def _texts(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield all keys and values in a part that are not parts themselves, those of joins below it last."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _texts(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in sorted(node.value, key=lambda pair: pair[0].value == "joins"):
            yield from _texts(key)
            yield from _texts(value)
