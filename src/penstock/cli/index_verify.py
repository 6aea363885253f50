"""penstock index verify"""

import threading
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.index_options import Index, IndexApiKey, IndexCa
from penstock.cli.output import Output, OutputFormat
from penstock.cli.progress import ProgressLine
from penstock.cli.signals import handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.errors import PenstockError, TableAlteredError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.document.difference import Difference
    from penstock.document.difference_cause import DifferenceCause
    from penstock.document.verify import IndexVerifier, VerifyProgress, VerifyResult

EXIT_DIFFERENT, EXIT_UNSETTLED = 3, 4
MOST_EXPLAINED = 100


def verify(  # noqa: PLR0915, PLR0917 - one per option
    spec: Annotated[Path, typer.Argument(help="The document spec, a YAML file.", show_default=False)],
    index: Index,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint of the `penstock sync` that writes the index. With it, changes on their way to the index"
            " are told from differences with certainty.",
            show_default=False,
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option(help="Write the documents that differ as the database has them, and delete the extra ones.")
    ] = False,
    key_range: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="Compare only documents whose key begins with an integer in this range, such as 1000..1999 or 1000..",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            help="Compare only this share of the documents, such as 1% or 0.01: the same ones each time, chosen by a"
            " hash of their ids.",
            show_default=False,
        ),
    ] = None,
    documents_per_s: Annotated[
        float | None,
        typer.Option("--documents-per-s", min=10, help="Read at most this many documents per second from either side."),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            min=1, help="Compare again and again, with this many seconds from one comparison to the next, until Ctrl-C."
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say why the first 100 documents differ, by the changes of their rows in the log."
        ),
    ] = False,
    settle: Annotated[
        float,
        typer.Option(min=0.0, help="Without --checkpoint: seconds after which a change must have reached the index."),
    ] = 10.0,
    wait: Annotated[
        float, typer.Option(min=0.0, help="With --checkpoint: seconds to wait for sync to apply a change.")
    ] = 60.0,
    server: Annotated[
        str, typer.Option(help="HOST:PORT of `penstock serve`, as for `penstock sync`.")
    ] = "127.0.0.1:11115",
    token: Annotated[
        str, typer.Option(envvar="PENSTOCK_TOKEN", show_envvar=True, help="Token that the server accepts.")
    ] = "",
    tls_ca: Annotated[str, typer.Option(help="File with certificates to trust; makes the connection TLS.")] = "",
    destination: Annotated[str, typer.Option(help="Instance on that server.")] = "default",
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    api_key: IndexApiKey = None,
    index_ca: IndexCa = None,
    output: OutputFormat = "text",
) -> None:
    """Compare every document of an index with the database, while both change, and say which are missing, stale or
    extra.

    A document that is different because its change is on its way to the index is looked at again until that has
    arrived. The exit code is 0 when the index is equal to the database or was repaired, 3 when it differs, and 4 when
    some documents could not be settled: they changed all the time, or sync does not run.

    Examples:

        penstock index verify orders.yml --user penstock --index http://search:9200 --checkpoint /var/lib/orders

        penstock index verify orders.yml --user penstock --index http://search:9200 --repair --output json

        penstock index verify orders.yml --user penstock --index http://search:9200 --every 3600 --documents-per-s 2000

        penstock index verify orders.yml --user penstock --index http://search:9200 --sample 1% --explain
    """
    from penstock.client import FlightClient, ServerAddress  # noqa: PLC0415 - Arrow and kernels take a second to load
    from penstock.document import DOCUMENT_DECODING, DeadLetterOutcome, DocumentBuilder  # noqa: PLC0415
    from penstock.document.difference_check import DifferenceCheck  # noqa: PLC0415
    from penstock.document.document_sample import DocumentSample  # noqa: PLC0415
    from penstock.document.key_range import KeyRange  # noqa: PLC0415
    from penstock.document.spec_location import load_located_spec  # noqa: PLC0415
    from penstock.document.verify import IndexVerifier  # noqa: PLC0415
    from penstock.render.key_sample import parse_share  # noqa: PLC0415
    from penstock.search.dead_letters import DeadLetters  # noqa: PLC0415
    from penstock.snapshot.source_rows import SourceRows  # noqa: PLC0415
    from penstock.spark.applied_changes import SettleTime, StreamProgress, open_sync_state, read_applied_to  # noqa: PLC0415
    from penstock.spark.index_sync import table_filter  # noqa: PLC0415
    from penstock.spark.index_target import IndexTarget  # noqa: PLC0415
    from penstock.spark.log_history import LogHistory  # noqa: PLC0415
    from penstock.spark.resumable_load import estimate_documents  # noqa: PLC0415
    from penstock.spark.sync_job import LoadedGraphs  # noqa: PLC0415

    loaded_spec = load_located_spec(spec)
    share = None if sample is None else parse_share(sample)
    source = build_source_settings(host, port, user, password)
    stopped = threading.Event()
    handle_stop_signals(stopped.set)
    printer = VerifyPrinter(Output(output))

    def compare() -> int:
        """Compare once, with the tables as they are now, and return the exit code."""
        with ExitStack() as opened:
            state = None if checkpoint is None else open_sync_state(checkpoint, loaded_spec.index)
            graphs = LoadedGraphs(source, loaded_spec, None if state is None else state.known_tables(loaded_spec.index))
            loaded = graphs.load()
            keys = None if key_range is None else KeyRange.parse(key_range, loaded.graph)
            client = opened.enter_context(closing(FlightClient(ServerAddress(server, token, tls_ca), destination)))
            target = IndexTarget(index, api_key=api_key, ca_certs=index_ca).of_index(loaded_spec.index, is_alone=True)
            generation = None if state is None else state.generation(loaded_spec.index)
            target = target.behind_alias(loaded_spec.alias) if generation is None else target.of_generation(generation)
            search = opened.enter_context(closing(target.open(read_only=not repair)))
            rows = opened.enter_context(closing(SourceRows(source, DOCUMENT_DECODING)))
            builder = DocumentBuilder(loaded.graph, rows, loaded.missing)
            options: dict[str, Any] = {}
            if checkpoint is None or state is None:
                changes = SettleTime(client, settle_s=settle, stopped=stopped)
            else:
                letters = opened.enter_context(DeadLetters.open(state.dead_letters, is_created=repair))
                options["keep_rejected"] = DeadLetterOutcome(loaded_spec.index, letters, most_rejected=1.0).record
                options["explain"] = partial(letters.explain, loaded_spec.index)
                find_applied = partial(read_applied_to, checkpoint, loaded_spec.index)
                tables = table_filter(sorted(loaded.graph.tables))
                changes = StreamProgress(client, find_applied, tables, timeout_s=wait, stopped=stopped)

            def require_current() -> None:
                if graphs.load().fingerprint != loaded.fingerprint:
                    raise TableAlteredError(
                        f"tables of index '{loaded_spec.index}' were altered during the comparison: it proves nothing"
                        " and has stopped; start it again when sync has followed the statement"
                    )

            check = DifferenceCheck(
                *(builder, rows, search, changes), require_current=require_current, pause=stopped.wait, **options
            )
            estimated = estimate_documents(source, loaded.graph.root.table.name)
            sampled = None if share is None else DocumentSample.of(share, loaded.graph, rows, documents=estimated)
            verifier = IndexVerifier(
                *(builder, search, check, stopped),
                keys=keys,
                sample=sampled,
                documents_per_s=documents_per_s,
                estimated_documents=estimated,
                progress=printer.show,
                on_difference=printer.print_difference,
            )
            history = LogHistory(ServerAddress(server, token, tls_ca), destination, loaded.graph, rows)

            def print_causes(result: "VerifyResult") -> None:
                """Print why the first documents differ."""
                some = result.differences[:MOST_EXPLAINED]
                keys = {difference.id: check.find_key(difference.id) for difference in some}
                for cause in history.find_causes(some, keys) if some else ():
                    printer.print_cause(cause)

            after = [print_causes] if explain else []
            return compare_once(verifier, printer, stopped, repair=repair, after=after)

    code = compare() if every is None else compare_regularly(compare, every, printer, stopped)
    raise typer.Exit(130 if stopped.is_set() and every is None else code)


def compare_regularly(
    compare: "Callable[[], int]", every_s: float, printer: "VerifyPrinter", stopped: threading.Event
) -> int:
    """Compare again and again until stopped; what a later try may solve is printed. Return the last exit code."""
    code = 0
    while not stopped.is_set():
        try:
            code = compare()
        except PenstockError as error:
            if not error.transient:
                raise
            printer.print_failure(error, every_s)
        stopped.wait(every_s)
    return code


def compare_once(
    verifier: "IndexVerifier",
    printer: "VerifyPrinter",
    stopped: threading.Event,
    *,
    repair: bool,
    after: "Sequence[Callable[[VerifyResult], None]]" = (),
) -> int:
    """Compare an index once, print the result, and return the exit code for it. What is to be done with the differences
    before the result is printed is in `after`."""
    printer.begin()
    result = verifier.run(repair=repair)
    if stopped.is_set():
        return 0
    for use in after:
        try:
            use(result)
        except PenstockError as error:  # the result is not lost with it
            printer.print_note(f"differences are not explained: {error}")
    printer.print_result(result)
    if result.is_equal or (repair and not result.unrepaired and not result.unsettled):
        return 0
    return EXIT_DIFFERENT if any(result.counts.values()) else EXIT_UNSETTLED


class VerifyPrinter:
    """Prints what a comparison finds, as soon as it is certain."""

    MOST_LINES = 1_000

    def __init__(self, output: Output) -> None:
        self._output = output
        self._progress = ProgressLine()
        self._began = time.monotonic()
        self._lines = 0

    def begin(self) -> None:
        """Begin to print another comparison."""
        self._began, self._lines = time.monotonic(), 0

    def show(self, progress: "VerifyProgress") -> None:
        """Show how far the comparison is, on a terminal."""
        self._progress.show_rows(progress.done, progress.total, time.monotonic() - self._began, unit="documents")

    def print_difference(self, difference: "Difference") -> None:
        """Print a difference."""
        self._print_line(str(difference), asdict(difference))

    def _print_line(self, text: str, details: dict[str, Any]) -> None:
        """Print one difference of many; of very many, only the first as text."""
        self._progress.clear()
        self._lines += 1
        if self._output.is_json or self._lines <= self.MOST_LINES:
            self._output.print_event("difference", text, **details)
        elif self._lines == self.MOST_LINES + 1:
            self._output.print_note("more differences are counted, and not shown")

    def print_cause(self, cause: "DifferenceCause") -> None:
        """Print why a document differs."""
        self._output.print_event("cause", str(cause), **asdict(cause))

    def print_note(self, text: str) -> None:
        """Print what could not be done besides the comparison."""
        self._progress.clear()
        self._output.print_note(text)

    def print_failure(self, error: Exception, delay_s: float) -> None:
        """Print that a comparison could not be made, and when the next one is."""
        text = f"not compared, next try in {delay_s:.0f} s: {error}"
        self._output.print_event("failure", text, message=str(error), delay_s=delay_s)

    def print_result(self, result: "VerifyResult") -> None:
        """Print the result."""
        self._progress.clear()
        seconds = time.monotonic() - self._began
        summary = {
            "equal": result.is_equal, "documents": result.documents, "indexed": result.indexed, **result.counts,
            "unsettled": result.unsettled, "unsettled_reason": result.unsettled_reason, "repaired": result.repaired,
            "unrepaired": result.unrepaired, "checked": result.checked, "share": result.share,
            "seconds": round(seconds, 3),
        }  # fmt: skip
        self._output.print_event("result", "\n".join(_result_lines(result, seconds)), **summary)


def _result_lines(result: "VerifyResult", seconds: float) -> "Iterator[str]":
    """Yield the result as text."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.counts.items())
    verdict = "equal" if result.is_equal else "NOT equal" if any(result.counts.values()) else "not proved to be equal"
    yield (
        f"{verdict}: {result.documents:,} documents of the database, {result.indexed:,} of the index ({kinds};"
        f" {result.checked:,} checked one by one) in {seconds:,.1f} s"
    )
    if result.share < 1:
        yield f"a sample of {100 * result.share:g} % was compared, in both directions"
    if result.unsettled:
        yield f"{result.unsettled:,} documents could not be settled: {result.unsettled_reason}"
    if result.repaired or result.unrepaired:
        yield f"{result.repaired:,} documents repaired" + (
            f", {result.unrepaired:,} not: the index has newer versions of them, or refused them"
            if result.unrepaired
            else ""
        )
