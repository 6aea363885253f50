"""How the command line logs: to stderr, one line each."""

import logging


def set_up_logging(*, is_verbose: bool) -> None:
    """Log warnings and worse; with `is_verbose` also what happens."""
    logging.basicConfig(
        level=logging.INFO if is_verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
