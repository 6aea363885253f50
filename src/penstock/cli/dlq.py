"""penstock dlq"""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.index_options import Index, IndexApiKey, IndexCa
from penstock.cli.output import Output, OutputFormat, table_lines
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.search.dead_letter_retry import TransformText
    from penstock.search.dead_letters import DeadLetter, DeadLetters

app = typer.Typer(
    help="List the documents that a search index refused (dead letters), write them again, or drop them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Checkpoint = Annotated[Path, typer.Argument(help="The checkpoint folder of `penstock sync`.", show_default=False)]
Number = Annotated[int, typer.Argument(min=1, help="The number of a dead letter, from `list`.", show_default=False)]
Numbers = Annotated[
    list[int] | None, typer.Argument(min=1, help="Numbers of dead letters, from `list`.", show_default=False)
]
Name = Annotated[str | None, typer.Option(help="Only the dead letters of this index.", show_default=False)]
_REASON_CHARS = 100


@app.command("list")
def list_(
    checkpoint: Checkpoint,
    name: Name = None,
    after: Annotated[int, typer.Option(min=0, help="List dead letters with higher numbers than this.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters to list.")] = 100,
    output: OutputFormat = "text",
) -> None:
    """List the documents that an index refused, the first one first, without their content.

    Examples:

        penstock dlq list /var/lib/penstock/product

        penstock dlq list /var/lib/penstock/product --after 100 --output json
    """
    with _open_letters(checkpoint) as letters:
        count, page = letters.count(name), letters.read_page(after, limit, name)
    data = {"count": count, "letters": [_describe(letter, with_document=False) for letter in page]}
    Output(output).print_result(data, lambda: _list_lines(page, count))


@app.command()
def show(checkpoint: Checkpoint, number: Number, output: OutputFormat = "text") -> None:
    """Show one dead letter with its document, the error and where in the binlog it came from.

    Examples:

        penstock dlq show /var/lib/penstock/product 7

        penstock dlq show /var/lib/penstock/product 7 --output json
    """
    with _open_letters(checkpoint) as letters:
        letter = _find_letter(letters, number)
    Output(output).print_result(_describe(letter), lambda: _letter_lines(letter))


@app.command()
def retry(
    checkpoint: Checkpoint,
    numbers: Numbers = None,
    *,
    index: Index,
    index_api_key: IndexApiKey = None,
    index_ca: IndexCa = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            help="Document spec with a `transform`, which is run again on letters of its index; may be repeated.",
            show_default=False,
        ),
    ] = None,
    name: Name = None,
    output: OutputFormat = "text",
) -> None:
    """Write dead letters again: those with these numbers, or all. `penstock sync` may run meanwhile.

    Each keeps its version: where the index has the document in a newer state, that state stays, and the dead letter is
    done. What is taken is removed; what is refused again stays, and the command ends with 1. Where a spec has a
    transform, dead letters have the document from before it: with `--spec` it runs again, as it is now.

    Examples:

        penstock dlq retry /var/lib/penstock/product --index http://127.0.0.1:9200

        penstock dlq retry /var/lib/penstock/product 7 8 --index http://127.0.0.1:9200

        penstock dlq retry /var/lib/penstock/product --index http://127.0.0.1:9200 --spec product.yml
    """
    from penstock.coordinate.term_files import read_generations  # noqa: PLC0415 - Arrow takes time to load
    from penstock.search.dead_letter_retry import RetryReport, retry_letters  # noqa: PLC0415
    from penstock.search.opening import is_http, locate_generation, open_index  # noqa: PLC0415

    report, transforms = RetryReport(), _load_transforms(spec or [])
    generations = read_generations(checkpoint.absolute())
    with _open_letters(checkpoint) as letters:
        if not is_http(index) and name is None and len(names := letters.index_names()) > 1:
            raise ConfigurationError(f"a folder holds one index, but there are dead letters of {names}: use --name")
        for index_name, chosen in groupby(_choose_letters(letters, numbers, name), key=lambda letter: letter.index):
            location = locate_generation(index, index_name, generations.get(index_name, ""))
            with closing(open_index(*location, api_key=index_api_key, ca_certs=index_ca)) as target:
                report += retry_letters(letters, target, chosen, transforms.get(index_name))
    refused = [{"number": letter.number, "id": letter.id, "reason": reason} for letter, reason in report.refused]
    data = {"written": report.written, "stale": report.stale, "refused": refused}
    Output(output).print_result(data, lambda: _retry_lines(report.written, report.stale, refused))
    if refused:
        raise typer.Exit(1)


@app.command()
def drop(
    checkpoint: Checkpoint,
    numbers: Numbers = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Drop all dead letters.")] = False,
    name: Name = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: OutputFormat = "text",
) -> None:
    """Drop dead letters: their documents stay out of the index until their rows change again.

    Examples:

        penstock dlq drop /var/lib/penstock/product 7 8

        penstock dlq drop /var/lib/penstock/product --all --yes
    """
    if bool(numbers) == every:
        raise ConfigurationError("name the numbers to drop, or use --all")
    printer = Output(output)
    with _open_letters(checkpoint) as letters:
        chosen = [letter.number for letter in _choose_letters(letters, numbers, name)]
        is_wanted = bool(chosen) and (yes or printer.confirm(f"Drop {len(chosen)} of {letters.count(name)}?"))
        dropped = letters.drop(chosen) if is_wanted else 0
    printer.print_result({"dropped": dropped}, lambda: [f"dropped {dropped}"])


@contextmanager
def _open_letters(checkpoint: Path) -> "Generator[DeadLetters]":
    """Open the dead letters beside a checkpoint. The file is left to `penstock sync` to create, as its owner."""
    from penstock.coordinate.term_files import find_newest_checkpoint  # noqa: PLC0415 - Arrow takes time to load
    from penstock.search.dead_letters import DeadLetters, dead_letters_path  # noqa: PLC0415

    path = dead_letters_path(find_newest_checkpoint(checkpoint.absolute()))
    if not path.exists() and not checkpoint.is_dir():
        raise ConfigurationError(f"there is no checkpoint {checkpoint}: name the one that `penstock sync` has")
    with DeadLetters.open(path, is_created=False) as letters:
        yield letters


def _load_transforms(specs: list[Path]) -> "dict[str, TransformText]":
    """Return the transforms of specs by their indexes; where a spec has none, documents stay as they are."""
    if not specs:
        return {}
    from penstock.document.spec_location import load_located_spec  # noqa: PLC0415 - numba takes a second to load
    from penstock.document.transform import DocumentTransform  # noqa: PLC0415

    transforms: dict[str, TransformText] = {}
    for spec in map(load_located_spec, specs):
        function = spec.transform.python if spec.transform is not None else None
        transforms[spec.index] = str if function is None else DocumentTransform(function).transform_text
    return transforms


def _choose_letters(letters: "DeadLetters", numbers: list[int] | None, name: str | None) -> "Iterator[DeadLetter]":
    """Yield the dead letters with these numbers, or all, by index; only those of one index, if that is given."""
    from penstock.search.dead_letter_retry import read_letters  # noqa: PLC0415 - Arrow takes time to load

    if numbers:
        chosen = [_find_letter(letters, number) for number in sorted(set(numbers))]
        yield from sorted(
            (letter for letter in chosen if name in (None, letter.index)), key=lambda letter: letter.index
        )
        return
    for index_name in [name] if name else letters.index_names():
        yield from read_letters(letters, index_name)


def _find_letter(letters: "DeadLetters", number: int) -> "DeadLetter":
    """Return the dead letter with this number, or raise."""
    letter = letters.get(number)
    if letter is None:
        raise ConfigurationError(
            f"there is no dead letter {number}: it was dropped, written or superseded; `penstock dlq list` has the rest"
        )
    return letter


def _describe(letter: "DeadLetter", *, with_document: bool = True) -> dict[str, Any]:
    """Return a dead letter as JSON has it; times are ISO 8601 in UTC."""
    data = asdict(letter)
    if not with_document:
        del data["document"]
    return data | {"first_at": _format_time(letter.first_at), "last_at": _format_time(letter.last_at)}


def _list_lines(page: "list[DeadLetter]", count: int) -> Iterator[str]:
    """Yield the dead letters of a page as a table."""
    if not page:
        yield f"no dead letters here, {count} in all" if count else "no dead letters"
        return
    rows = [["number", "index", "id", "version", "attempts", "last at", "position", "reason"]]
    for letter in page:
        reason = letter.reason if len(letter.reason) <= _REASON_CHARS else f"{letter.reason[:_REASON_CHARS]}…"
        numbers = (str(letter.version), str(letter.attempts), _format_time(letter.last_at), letter.position)
        rows.append([str(letter.number), letter.index, _one_line(letter.id), *numbers, _one_line(reason)])
    yield from table_lines(rows)
    if count > len(page):
        yield f"{len(page)} of {count}; the next ones: --after {page[-1].number}"


def _letter_lines(letter: "DeadLetter") -> Iterator[str]:
    """Yield one dead letter as lines of text, the document last."""
    data = _describe(letter)
    document, before_transform = data.pop("document"), data.pop("before_transform")
    for key, value in data.items():
        if value not in (None, ""):
            yield f"{key}: {value}"
    label = "document before its transform" if before_transform else "document"
    yield f"{label}: {document}" if document is not None else "a delete, without a document"


def _retry_lines(written: int, stale: int, refused: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what became of the dead letters that were written again: how many were written, how many the index has
    newer, and a line for each that was refused again."""
    yield f"written {written}, newer in the index {stale}, refused again {len(refused)}"
    for entry in refused:
        yield f"{entry['number']}  {_one_line(entry['id'])}  {_one_line(entry['reason'])}"


def _one_line(text: str) -> str:
    """Return a text that fits into a line."""
    return text.replace("\n", " ")


def _format_time(seconds: float) -> str:
    """Return a time as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
