"""Checks a folder of binlog files before capture starts, step by step; a step that fails ends the checks that depend on
it."""

from collections.abc import Iterator
from itertools import pairwise

from penstock.config import DirectorySettings
from penstock.errors import PenstockError
from penstock.model.position import file_number
from penstock.source.finding import Finding, Verdict
from penstock.source.folder import list_log_sizes, open_folder
from penstock.source.folder_source import FolderSource
from penstock.source.versions import check_version


def examine_folder(settings: DirectorySettings) -> Iterator[Finding]:
    """Yield findings about a folder of log files; it ends with the first problem after which nothing more can be found
    out."""
    try:
        sizes = list_log_sizes(open_folder(settings.path), settings.base)
    except PenstockError as error:
        yield Finding("folder", Verdict.FAIL, "not readable", str(error))
        return
    if not sizes:
        remedy = f"copy the files of a log to {settings.address}; their names end with a number, as binlog.000007"
        yield Finding("files", Verdict.FAIL, "none", remedy)
        return
    yield Finding("files", Verdict.OK, f"{len(sizes)}, {sum(sizes.values()):,} bytes")
    yield _check_missing_files(list(sizes))
    origin = FolderSource(settings)
    try:
        present = origin.sizes()
        heads = [origin.read_head_of(file) for file in present]
        end = origin.end()
    except PenstockError as error:
        yield Finding("reading the log", Verdict.FAIL, "refused", str(error))
        return
    yield check_version(heads[-1].server_version)
    if parts := [head.file_identity.file for head in heads[:-1] if head.is_open]:
        remedy = "they were copied while their server wrote them: copy them again, now that there are later ones"
        yield Finding("whole files", Verdict.WARN, f"not {', '.join(parts)}", remedy)
    gtids = f", after {end.gtids.text}" if end.gtids is not None and end.gtids.ranges else ""
    yield Finding("reading the log", Verdict.OK, f"{next(iter(present))}:4 to {end}{gtids}")


def _check_missing_files(files: list[str]) -> Finding:
    """Return a finding that says whether files are missing between the first and the last one."""
    gaps = [(before, after) for before, after in pairwise(files) if file_number(after) != file_number(before) + 1]
    if not gaps:
        return Finding("gaps between the files", Verdict.OK, "none")
    text = "; ".join(f"between {before} and {after}" for before, after in gaps)
    remedy = "bring back what is missing, or begin after it: what is in it is not captured, and capture stops before it"
    return Finding("gaps between the files", Verdict.FAIL, text, remedy)
