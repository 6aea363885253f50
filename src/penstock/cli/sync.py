"""penstock sync"""

import threading
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Output, OutputFormat
from penstock.cli.signals import handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings


def sync(
    spec: Annotated[Path, typer.Argument(help="The document spec, YAML.")],
    index: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_INDEX",
            show_envvar=True,
            help="URL of OpenSearch or Elasticsearch, or a folder for an embedded index."
            " A URL with a password is better given in the environment.",
        ),
    ],
    checkpoint: Annotated[Path, typer.Option(help="Folder that remembers how far the stream is.")],
    server: Annotated[
        str,
        typer.Option(
            help="HOST:PORT of `penstock serve`, or grpc+tls://HOST:PORT; several servers as HOST:PORT,HOST:PORT, or"
            " the ZooKeeper that knows the running one as zookeeper://HOST:PORT."
        ),
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
    output: OutputFormat = "text",
) -> None:
    """Keep a search index equal to the database: first load, then every change.

    A new checkpoint begins with a full load; a later run resumes where the last one stopped.

    Examples:

        penstock sync product.yml --index http://127.0.0.1:9200 --checkpoint /var/lib/penstock/product

        penstock sync product.yml --index ./product-index --checkpoint ./product-checkpoint
    """
    from penstock.client import ServerAddress  # noqa: PLC0415 - so does Arrow
    from penstock.spark.sync_job import SyncJob, open_index  # noqa: PLC0415 - Spark takes seconds to load

    printer = Output(output)
    source = build_source_settings(host, port, user, password)
    stopped = threading.Event()
    handle_stop_signals(stopped.set)
    job = SyncJob.prepare(spec, source, ServerAddress(server, token, tls_ca), destination)
    with open_index(index, job.plan.spec.index) as target:
        job.run(
            target,
            checkpoint.absolute(),
            stopped,
            lambda text: printer.print_event("progress", text, index=job.plan.spec.index, message=text.strip()),
        )
