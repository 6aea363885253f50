"""mysqlbinlog -vv as a second reader of the same file: its row images, value by value.

    ### UPDATE `shop`.`product`
    ### WHERE
    ###   @1=-1 (255) /* TINYINT meta=0 nullable=1 is_null=0 */
    ### SET
    ###   …

A column that an image does not carry has no line. MySQL's tool does not know GEOMETRY and gives up the row there.
A JSON document that is logged as differences is printed as `@3=JSON_REPLACE(@3, '$.a', 1)`, on several lines if long.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_STATEMENT = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`")
_VALUE = re.compile(rb"###   @(\d+)=(.*) /\* (.*) meta=(\d+) nullable=(\d) is_null=(\d) \*/", re.DOTALL)
_UNKNOWN = b"!! Don't know how to handle column type"
_CHANGES = {
    (b"INSERT INTO", b"SET"): "insert",
    (b"DELETE FROM", b"WHERE"): "delete",
    (b"UPDATE", b"WHERE"): "update_preimage",
    (b"UPDATE", b"SET"): "update_postimage",
}


@dataclass(frozen=True, slots=True)
class ToolValue:
    """`text` as printed; `kind` is the tool's name of the type, such as `VARSTRING(20)`."""

    text: bytes
    kind: str
    nullable: bool
    is_null: bool

    @property
    def is_whole(self) -> bool:
        """Not a list of differences to the document before."""
        return self.kind != "JSON" or self.text == b"NULL" or self.text.startswith(b"'")


@dataclass(frozen=True, slots=True)
class ToolImage:
    """`values` by column number, counted from 0; `gave_up` if the tool did not know a type."""

    change: str
    values: dict[int, ToolValue]
    gave_up: bool = False


def tool_images(command: Sequence[str], path: Path, database: str) -> Mapping[str, list[ToolImage]]:
    """Images by table, in the order of the log."""
    done = subprocess.run(
        [*command, "--no-defaults", "-vv", "--base64-output=DECODE-ROWS", str(path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    images: dict[str, list[ToolImage]] = {}
    for table, image in _images(done.stdout, database.encode()):
        images.setdefault(table, []).append(image)
    return images


def _images(output: bytes, database: bytes) -> Iterator[tuple[str, ToolImage]]:
    statement, table = b"", ""
    image: ToolImage | None = None
    # A value that continues in another line does so after a line break that no value holds otherwise.
    for line in output.replace(b"\n###      ", b" ").split(b"\n"):
        if not line.startswith(b"### "):
            continue
        if line in {b"### SET", b"### WHERE"}:
            if image:
                yield table, image
            image = ToolImage(_CHANGES[statement, line[4:]], {})
        elif started := _STATEMENT.fullmatch(line):
            if image:
                yield table, image
            image = None
            statement, owner, name = started.groups()
            assert owner == database, f"rows of another database: {owner!r}"
            table = name.decode()
        else:
            assert image
            image = _with_value(image, line)
    if image:
        yield table, image


def _with_value(image: ToolImage, line: bytes) -> ToolImage:
    value = _VALUE.fullmatch(line)
    if value is None:
        assert _UNKNOWN in line, line
        return ToolImage(image.change, image.values, gave_up=True)
    number, text, kind, _, nullable, is_null = value.groups()
    image.values[int(number) - 1] = ToolValue(text, kind.decode(), nullable == b"1", is_null == b"1")
    return image
