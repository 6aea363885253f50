"""Options of commands that write to a search index."""

from typing import Annotated

import typer

Index = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_INDEX",
        show_envvar=True,
        help="URL of OpenSearch or Elasticsearch, several nodes separated by commas, or a folder for an embedded index."
        " Set a URL with a password in the environment.",
    ),
]
IndexApiKey = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_INDEX_API_KEY",
        show_envvar=True,
        show_default=False,
        help="API key of the search server, Base64-encoded or as ID:KEY, instead of a user in the URL.",
    ),
]
IndexCa = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_INDEX_CA",
        show_envvar=True,
        show_default=False,
        help="CA certificates, a PEM file, that the certificate of the search server is checked against.",
    ),
]
