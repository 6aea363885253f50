"""Log files behind HTTP: a list of links, parts by Range."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from penstock.config import DirectorySettings
from penstock.errors import ConfigurationError, SourceConnectionError
from penstock.source.directory import DirectoryStream
from penstock.source.folder_source import FolderSource
from tests.support.log_folder import FIRST, NAMES, file_of, in_folder, positions, read, rotated


class Quiet(SimpleHTTPRequestHandler):
    """As it comes: it knows nothing of parts."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


class WithRanges(Quiet):
    def do_GET(self) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            super().do_GET()
            return
        first, last = int(wanted[1]), int(wanted[2])
        data = path.read_bytes()
        part = data[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    handler = partial(request.param, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def settings_of(url: str) -> DirectorySettings:
    return DirectorySettings(path=url, poll_s=0.01)


@pytest.mark.parametrize("served", [WithRanges], indirect=True)
def test_files_that_grow_are_followed(served: str, tmp_path: Path) -> None:
    source = tmp_path / "whole"
    source.mkdir()
    expected = positions(read(in_folder(source, [rotated(9, 40), file_of(10, 40)])))
    first, second = ((source / name).read_bytes() for name in NAMES[:2])
    (tmp_path / NAMES[0]).write_bytes(first[:2000])
    blocks, steps = [], iter([(NAMES[0], first), (NAMES[1], second[:900]), (NAMES[1], second)])
    with DirectoryStream(settings_of(served), FIRST) as stream:
        for block in stream:
            if block is not None:
                blocks.append(block)
            elif (step := next(steps, None)) is not None:
                (tmp_path / step[0]).write_bytes(step[1])
            elif len(positions(blocks)) == len(expected):
                break
    assert positions(blocks) == expected


@pytest.mark.parametrize("served", [Quiet], indirect=True)
def test_a_server_that_knows_no_parts_is_named(served: str, tmp_path: Path) -> None:
    in_folder(tmp_path, [file_of(9, 3)])
    with pytest.raises((ConfigurationError, SourceConnectionError), match="must know Range"):
        FolderSource(settings_of(served)).end()


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(SourceConnectionError, match=r"^http://127\.0\.0\.1:9 cannot be read"):
        FolderSource(settings_of("http://127.0.0.1:9")).end()
