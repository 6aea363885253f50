"""The `penstock` command: `main` runs it, `commands.py` lists what it can do."""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.cli.heap import keep_freed_memory
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import typer

    app: typer.Typer

_WORKING_TIMEOUT_S = 0.5


def __getattr__(name: str) -> Any:
    """Make `app`, with all commands, when somebody asks for it: `main` needs only the one that is run."""
    if name != "app":
        raise AttributeError(f"module 'penstock.cli' has no attribute {name!r}")
    from penstock.cli.commands import build_app  # noqa: PLC0415

    globals()["app"] = made = build_app()
    return made


def _exit_on_signal(number: int, _: FrameType | None) -> None:
    """Exit as a process that a signal ended."""
    raise SystemExit(128 + number)


def _exit_with_error(text: str) -> NoReturn:
    """Print an error as one line, and exit with 1."""
    print(f"penstock: {text}", file=sys.stderr)
    sys.exit(1)


def _exit_if_invalid_settings(error: Any) -> None:
    """Print the first of pydantic's errors as one line and exit; return if the error is not pydantic's."""
    pydantic = sys.modules.get("pydantic")  # who has not loaded it cannot have got an error from it
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        _exit_with_error(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def _run_command(arguments: list[str]) -> None:
    """Run the command that the arguments name, and import no other."""
    if arguments[:1] == ["binlog"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no linear algebra here: do not start its threads
        from penstock.cli.quick_binlog import run_quickly  # noqa: PLC0415

        run_quickly(arguments[1:])
    from penstock.cli.commands import build_app, find_command  # noqa: PLC0415

    name = find_command(arguments)
    (build_app((name,)) if name else build_app())()


def main() -> None:
    """Run the command that the arguments name. A known error is one line and exit code 1; Ctrl-C is 130, silently."""
    try:
        _run_guarded()
    except BaseException as end:
        _exit_without_threads(end)
        raise


def _exit_without_threads(end: BaseException) -> None:
    """End the process at once, as Python would, if a thread of the command would be cut off by the interpreter's own
    shutdown."""
    threads = sys.modules.get("penstock.cli.ordered_work")
    if threads is None or not threads.is_working(_WORKING_TIMEOUT_S):
        return
    code = 1
    with suppress(OSError, ValueError):  # nobody reads it any longer
        code = _exit_code(end)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _exit_code(end: BaseException) -> int:
    """Return the exit code of a process that ends by this exception, and print what Python prints then."""
    if not isinstance(end, SystemExit):
        sys.excepthook(type(end), end, end.__traceback__)
        return 1
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _run_guarded() -> None:
    """Run the command, and turn known errors into one line and an exit code."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    keep_freed_memory()
    # Shells start background jobs with SIGINT ignored; a SIGINT that is sent all the same is meant.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _run_command(sys.argv[1:])
    except PenstockError as error:
        _exit_with_error(str(error))
    except OSError as error:
        _exit_with_error(f"{error.filename or 'the system'}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as error:  # pydantic's are
        _exit_if_invalid_settings(error)
        raise
