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

_PATIENCE_S = 0.5


def __getattr__(name: str) -> Any:
    """Make `app`, with all commands, when somebody asks for it: `main` needs only the one that is run."""
    if name != "app":
        raise AttributeError(f"module 'penstock.cli' has no attribute {name!r}")
    from penstock.cli.commands import build_app  # noqa: PLC0415

    globals()["app"] = made = build_app()
    return made


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _complain(text: str) -> NoReturn:
    print(f"penstock: {text}", file=sys.stderr)
    sys.exit(1)


def _complain_of_settings(error: Any) -> None:
    """Print the first of pydantic's complaints as one line; return when the error is not pydantic's."""
    pydantic = sys.modules.get("pydantic")  # who has not loaded it cannot have got an error from it
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        _complain(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def _run(arguments: list[str]) -> None:
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
        _leave_threads(end)
        raise


def _leave_threads(end: BaseException) -> None:
    """End the process here, as Python would, if a thread of the command would be cut off by the interpreter's own
    end."""
    threads = sys.modules.get("penstock.cli.ordered_work")
    if threads is None or not threads.is_working(_PATIENCE_S):
        return
    code = 1
    with suppress(OSError, ValueError):  # nobody reads it any longer
        code = _exit_code(end)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _exit_code(end: BaseException) -> int:
    """Return the exit code of a process that ends by this, and print what Python prints then."""
    if not isinstance(end, SystemExit):
        sys.excepthook(type(end), end, end.__traceback__)
        return 1
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _run_guarded() -> None:
    signal.signal(signal.SIGTERM, _stop)
    keep_freed_memory()
    # Shells start background jobs with SIGINT ignored; a SIGINT that is sent all the same is meant.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _run(sys.argv[1:])
    except PenstockError as error:
        _complain(str(error))
    except OSError as error:
        _complain(f"{error.filename or 'the system'}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as error:  # pydantic's are
        _complain_of_settings(error)
        raise
