"""What `penstock binlog` does, once its options are read.

What one format or mode needs is imported with it: a small log is read in less time than all of them take to load.
"""

import sys
from typing import TYPE_CHECKING

from penstock.binlog.events.file_log import FileLog
from penstock.cli.binlog_output import abandon_stdout, open_output, print_warning
from penstock.cli.binlog_reading import RequestedLog
from penstock.cli.binlog_request import INCIDENT_CODE, BinlogRequest
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.cli.binlog_single import SingleTableCheck
    from penstock.render.table_files import Kind


def run_request(request: BinlogRequest) -> int:
    """Run `penstock binlog` as the request says, and return the exit code."""
    if sys.stdout is None:
        raise ConfigurationError("the standard output is closed: open it, even if --to names a file")
    try:
        code = _run_mode(RequestedLog(request))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough.
        abandon_stdout()
        return 0
    except OSError as error:
        abandon_stdout()
        if error.filename is None and error.errno is not None:
            error.filename = str(request.target or "the standard output")
        raise
    return code


def _run_mode(log: RequestedLog) -> int:
    """Run the request of a log in its mode, and return the exit code."""
    mode = log.request.mode
    if mode == "verify":
        from penstock.cli.binlog_verify import verify_files  # noqa: PLC0415

        return verify_files(FileLog.checked(log.files), log.progress, log.show_warning, is_json=log.format == "json")
    try:
        {"show": _show_changes, "stats": _print_statistics, "flashback": _write_flashback}[mode](log)
    finally:
        log.progress.clear()
        log.warn_of_unnamed()
    log.selection.check_matches()
    if log.selection.matched and mode != "stats" and log.choice.unmatched_names:
        print_warning(f"--without {', '.join(log.choice.unmatched_names)}: no table that was shown has such a column")
    return INCIDENT_CODE if log.has_incidents else 0


def _show_changes(log: RequestedLog) -> None:
    """Write the log in the format that the request names."""
    kind = log.format
    if kind == "csv" or kind == "arrow" or kind == "parquet":  # noqa: PLR1714 - for the type
        _write_tables(log, kind)
        return
    from penstock.cli.binlog_lines import LineWriter  # noqa: PLC0415

    LineWriter(log).write_lines()


def _write_flashback(log: RequestedLog) -> None:
    """Write the SQL that undoes the log."""
    from penstock.cli.binlog_lines import LineWriter  # noqa: PLC0415

    LineWriter(log).write_flashback()


def _print_statistics(log: RequestedLog) -> None:
    """Print the statistics of the log."""
    from penstock.inspect.statistics import LogStatistics  # noqa: PLC0415
    from penstock.render.statistics import format_statistics, statistics_to_json  # noqa: PLC0415

    statistics = LogStatistics()
    for block in log.pick_blocks(for_counting=True):
        statistics.add_block(block)
        log.warn_of_incidents(block, range(len(block)))
    text = statistics_to_json(statistics) if log.format == "json" else format_statistics(statistics)
    with open_output(log.request.target) as out:
        out.write(text.encode())


def _write_tables(log: RequestedLog, kind: "Kind") -> None:
    """Write the log as CSV, Arrow or Parquet."""
    from penstock.cli.binlog_tables import TableWriter, open_table_writer  # noqa: PLC0415
    from penstock.deferred_signals import defer_signals  # noqa: PLC0415
    from penstock.inspect.unsettled import UnsettledTransactions  # noqa: PLC0415
    from penstock.render.table_files import OutputFiles  # noqa: PLC0415

    targets = OutputFiles(kind, log.request.target, sys.stdout.buffer)
    single = None if targets.is_folder or log.changes_left is not None else _check_single_table(log, kind)
    files = open_table_writer(kind, targets)
    tables = TableWriter(files, log.choice, log.shapes, log.changes_left)
    unsettled = UnsettledTransactions()
    try:
        for block in log.pick_blocks():
            unsettled.add_block(block, log.selection.xa)
            if single is not None:
                single.check_block(block)
            with defer_signals():
                tables.write_block(block)
            log.changes_left = tables.left
            log.warn_of_incidents(block, range(len(block)))
    finally:
        with defer_signals():
            files.close()
            targets.close()
    if str(unsettled):
        log.show_warning(f"there are rows of {unsettled}; --output json says which")


def _check_single_table(log: RequestedLog, kind: "Kind") -> "SingleTableCheck":
    """Check that the output is one table.

    Files are looked through first, without decoding rows, so that several tables are refused before anything is
    written. What comes from a server or a pipe can be read once, so there each block is checked before it is written.
    """
    from penstock.cli.binlog_single import SingleTableCheck  # noqa: PLC0415

    check = SingleTableCheck(kind, log.choice, log.shapes)
    if log.files and all(path.is_file() for path in log.files):
        check.check_log(log.pick_blocks_ahead())
    return check
