"""An explained document spec as a picture: SVG with a box for each table, and an arrow for each join.

The root is on the left; the tables that are joined to a table are to its right. Widths are estimated from the number of
letters, because a text has no width before it is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from penstock.document.explain import IndexReport, NodeReport

_LINE, _PADDING, _MARGIN = 17, 12, 28
_LETTER, _SMALL_LETTER = 7.4, 6.3  # of a width that no text exceeds by much
_ROW_GAP, _COLUMN_GAP = 26, 60
_MOST_FIELDS_WIDTH = 30
_MOST_FIELD_LINES = 6
_STYLE = """
  text { font-family: 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 12px; fill: #1f2933; }
  .title { font-size: 18px; font-weight: 600; }
  .name { font-weight: 600; fill: #ffffff; }
  .small { font-size: 11px; fill: #52606d; }
  .label { font-size: 11px; fill: #334e68; }
  .slow { fill: #b44d12; font-weight: 600; }
"""
_COLOURS = {"root": "#0b69a3", "one": "#3e6b89", "many": "#2d7d6f", "parent": "#829ab1"}
_KINDS = {"root": "one document per row", "one": "object", "many": "array", "parent": "foreign keys only"}


@dataclass(slots=True)
class _Box:
    """A table in the picture."""

    node: NodeReport
    lines: list[str]
    is_slow: bool
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def draw_report(report: IndexReport) -> str:
    """Return the picture of a report as SVG."""
    slow = {
        touch.node.removesuffix(", link table") for touch in report.touches if touch.query and touch.query.has_full_scan
    }
    boxes = {node.path: _make_box(node, report, slow) for node in report.nodes}
    _place_columns(boxes)
    _place_rows(boxes, (), _MARGIN + 40)
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    title = f"Index '{report.index}'"
    width = max(width, _MARGIN * 2 + len(title) * 11)
    height = max(box.y + box.height for box in boxes.values()) + _MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8"'
            ' orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#627d98"/></marker></defs>'
        ),
        '<rect width="100%" height="100%" fill="#f7f9fb"/>',
        f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 12}">{escape(title)}</text>',
    ]
    for path, box in boxes.items():
        if path:
            parts += _draw_join(boxes[path[:-1]], box)
    for box in boxes.values():
        parts += _draw_box(box)
    return "\n".join([*parts, "</svg>", ""])


def _make_box(node: NodeReport, report: IndexReport, slow: set[str]) -> _Box:
    """Return the box of a table, without its place."""
    lines = [node.table, *_wrap_names(node.fields)]
    condition = report.condition if not node.path else node.filter
    if condition:
        lines.append(f"where {_shorten(condition)}")
    if node.order:
        lines.append(_shorten(f"order {', '.join(node.order)}"))
    if node.limit:
        lines.append(f"limit {node.limit}")
    if report.transform is not None and not node.path:
        lines.append(_shorten(f"transform {report.transform.python}"))
        lines += _wrap_names(tuple(f"+ {path}" for path in report.transform.fields))
    name = node.path[-1] if node.path else "root"
    head = len(f"{name}  {_KINDS[node.join]}") * _LETTER + 20
    box = _Box(node, lines, ".".join(node.path) in slow)
    box.width = max(head, max(len(line) for line in lines) * _SMALL_LETTER) + 2 * _PADDING
    box.height = (len(lines) + 1) * _LINE + 2 * _PADDING
    return box


def _wrap_names(names: tuple[str, ...]) -> list[str]:
    """Return names in lines, the last of which may count those that are left out."""
    lines: list[str] = []
    for number, name in enumerate(names):
        if lines and len(lines[-1]) + len(name) + 2 <= _MOST_FIELDS_WIDTH:
            lines[-1] += f", {name}"
        elif len(lines) == _MOST_FIELD_LINES:
            return [*lines, f"and {len(names) - number} more"]
        else:
            lines.append(name)
    return lines


def _shorten(text: str) -> str:
    """Return a text that fits into a box."""
    return text if len(text) <= _MOST_FIELDS_WIDTH + 6 else f"{text[: _MOST_FIELDS_WIDTH + 5]}…"


def _label_of(node: NodeReport) -> list[str]:
    """Return what stands at an arrow."""
    if node.through:
        return [*node.through_on, f"through {node.through}", *node.through_to]
    return list(node.on)


def _place_columns(boxes: dict[tuple[str, ...], _Box]) -> None:
    """Give boxes their distance from the left: those of one depth stand below each other."""
    x = float(_MARGIN)
    for depth in range(max(map(len, boxes)) + 1):
        column = [box for path, box in boxes.items() if len(path) == depth]
        if depth:
            label = max(len(text) for box in column for text in _label_of(box.node))
            x += label * _SMALL_LETTER + _COLUMN_GAP
        width = max(box.width for box in column)
        for box in column:
            box.x, box.width = x, width
        x += width


def _place_rows(boxes: dict[tuple[str, ...], _Box], path: tuple[str, ...], y: float) -> float:
    """Give a box and all below it their distance from the top; return where the next one may begin."""
    box = boxes[path]
    children = [other for other in boxes if other[:-1] == path and other != path]
    label = len(_label_of(box.node)) * _LINE
    below = y
    for child in children:
        below = _place_rows(boxes, child, below)
    if children:
        first, last = boxes[children[0]], boxes[children[-1]]
        box.y = max(y, (first.middle + last.middle) / 2 - box.height / 2)
    else:
        box.y = y + max(0.0, (label - box.height) / 2)
    return max(below, box.y + box.height + _ROW_GAP)


def _draw_join(parent: _Box, child: _Box) -> Iterator[str]:
    """Yield the arrow of a join with its columns."""
    x1, y1, x2, y2 = parent.x + parent.width, parent.middle, child.x, child.middle
    bend = x1 + 24
    colour = "#de6b1f" if child.is_slow else "#627d98"
    dash = ' stroke-dasharray="5 4"' if child.node.join == "parent" else ""
    yield (
        f'<path d="M{x1:.0f},{y1:.0f} C{bend:.0f},{y1:.0f} {x1 + 6:.0f},{y2:.0f} {x1 + 34:.0f},{y2:.0f}'
        f' L{x2 - 1:.0f},{y2:.0f}" fill="none" stroke="{colour}" stroke-width="1.5"{dash} marker-end="url(#arrow)"/>'
    )
    labels = _label_of(child.node)
    text_x = x1 + 40
    for number, text in enumerate(labels):
        # One line above the arrow, the others below it.
        y = y2 - 5 if not number else y2 + 14 + (number - 1) * (_LINE - 3)
        yield f'<text class="label" x="{text_x:.0f}" y="{y:.0f}">{escape(text)}</text>'
    if child.is_slow:
        y = y2 + 14 + max(0, len(labels) - 1) * (_LINE - 3)
        yield f'<text class="label slow" x="{text_x:.0f}" y="{y:.0f}">full scan</text>'


def _draw_box(box: _Box) -> Iterator[str]:
    """Yield the box of a table."""
    node, head = box.node, _LINE + _PADDING
    colour = _COLOURS[node.join]
    dash = ' stroke-dasharray="5 4"' if node.join == "parent" else ""
    x, y, width, height = box.x, box.y, box.width, box.height
    if node.join == "many":  # a second sheet behind the first
        yield f'<rect x="{x + 4:.0f}" y="{y + 4:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" fill="#d9e2ec"/>'
    yield (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" fill="#ffffff"'
        f' stroke="{colour}" stroke-width="1.2"{dash}/>'
    )
    yield (
        f'<path d="M{x:.0f},{y + head:.0f} v-{head - 6:.0f} q0,-6 6,-6 h{width - 12:.0f} q6,0 6,6 v{head - 6:.0f} z"'
        f' fill="{colour}"/>'
    )
    name = node.path[-1] if node.path else "root"
    yield f'<text class="name" x="{x + _PADDING:.0f}" y="{y + 19:.0f}">{escape(name)}</text>'
    yield (
        f'<text class="small" style="fill:#ffffff" x="{x + width - _PADDING:.0f}" y="{y + 19:.0f}"'
        f' text-anchor="end">{_KINDS[node.join]}</text>'
    )
    for number, line in enumerate(box.lines):
        line_y = y + head + (number + 1) * _LINE
        style = "" if not number else ' class="small"'
        yield f'<text{style} x="{x + _PADDING:.0f}" y="{line_y:.0f}">{escape(line)}</text>'
