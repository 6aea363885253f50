"""The examples in docstrings of classes are right: they are Python, and use parameters and methods that there are."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"
CODE = re.compile(r"^(>>> )?(with |for |class |if |[\w.]+(, \w+)* = |[\w.]+\(|[\w.]+\[)")

LATER = {"spark"}  # not yet held to it


@dataclass
class ClassOutline:
    """What can be asked of a class: its parameters, None where they are not known, and its public members."""

    parameters: set[str] | None
    members: set[str] = field(default_factory=set[str])
    bases: list[str] = field(default_factory=list[str])


def outline(node: ast.ClassDef) -> ClassOutline:
    """Return the outline of a class, without that of its bases."""
    fields = {
        line.target.id for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }
    functions = {line.name: line for line in node.body if isinstance(line, ast.FunctionDef)}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    init = functions.get("__init__")
    parameters = {each.arg for each in [*init.args.args, *init.args.kwonlyargs]} if init else fields or None
    if init and init.args.kwarg:
        parameters = None
    return ClassOutline(parameters, fields | set(functions) | attributes, [ast.unparse(base) for base in node.bases])


def example_of(node: ast.ClassDef) -> str:
    """Return the code in the docstring of a class; empty where there is none."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    code = [part for part in paragraphs if CODE.match(part.strip())]
    return "\n".join(
        re.sub(r"^ *(>>> |\.\.\. )?", "", line) if ">>>" in part else line for part in code for line in _dedented(part)
    )


def _dedented(text: str) -> list[str]:
    lines = text.splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]


CLASSES = [
    (path, node)
    for path in sorted(PACKAGE.rglob("*.py"))
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef)
]
OUTLINES = {node.name: outline(node) for _, node in CLASSES}


def members_of(name: str) -> set[str] | None:
    """Return the members of a class and of its bases; None if a base is not one of ours."""
    known = OUTLINES.get(name)
    if known is None:
        return set[str]() if name in {"Generic", "Protocol", "ABC"} else None
    members = set(known.members)
    for base in known.bases:
        inherited = members_of(base.partition("[")[0])
        if inherited is None:
            return None
        members |= inherited
    return members


def mistakes_in(code: str) -> Iterator[str]:
    """Yield what an example uses and there is not."""
    made = dict[str, str]()
    for node in ast.walk(ast.parse(code.replace("…", "..."))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            made |= {target.id: node.value.func.id for target in node.targets if isinstance(target, ast.Name)}
        if (
            isinstance(node, ast.withitem)
            and isinstance(node.context_expr, ast.Call)
            and isinstance(node.optional_vars, ast.Name)
        ):
            made[node.optional_vars.id] = ast.unparse(node.context_expr.func)
    for node in ast.walk(ast.parse(code.replace("…", "..."))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OUTLINES:
            parameters = OUTLINES[node.func.id].parameters
            if parameters is not None:
                yield from (
                    f"{node.func.id}({word.arg}=)" for word in node.keywords if word.arg and word.arg not in parameters
                )
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            kind = made.get(node.value.id, node.value.id)
            members = members_of(kind)
            if members is not None and node.attr not in members:
                yield f"{kind}.{node.attr}"


def test_examples_use_what_there_is() -> None:
    examples = [(path, node, example_of(node)) for path, node in CLASSES]
    assert sum(bool(code) for _, _, code in examples) > 150
    assert not [
        f"{path.relative_to(PACKAGE)} {node.name}: {mistake}"
        for path, node, code in examples
        if path.relative_to(PACKAGE).parts[0] not in LATER
        for mistake in mistakes_in(code)
    ]


def test_a_wrong_example_is_found() -> None:
    (wrong,) = mistakes_in("history = SchemaHistory(folder, first)\nhistory.at(position)")
    assert wrong == "SchemaHistory.at"
