"""One process of the campaign: `python -m tests.campaign.worker SEED FIRST STOP STEP STATUS`.

Says in the file STATUS what it is at and how mutants ended, and prints each failure as a line of JSON.
"""

import json
import re
import resource
import sys
import traceback
from pathlib import Path

from tests.campaign.command import COMMANDS
from tests.campaign.logs import assembled, sized, source_logs
from tests.campaign.mutant import Mutant, mutant
from tests.campaign.reading import outcome_of
from tests.campaign.status import Status

_MEMORY_BYTES = 8 << 30  # a mutant that asks for more is a failure, not a reason to fill the machine


def main(arguments: list[str]) -> None:
    seed, first, stop, step = map(int, arguments[:4])
    with Status.opened(Path(arguments[4])) as status:
        warm_up()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        for number in range(first, stop, step):
            status.begin(number)
            status.end(number, _run(mutant(seed, number), number))


def warm_up() -> None:
    """Read every log as it is, in every way, so that no mutant has to wait for a kernel."""
    for i, log in enumerate(source_logs()):
        events = [*log.opening, *(event for transaction in log.transactions for event in transaction)]
        raw = [sized(event, is_checksummed=log.is_checksummed) for event in events]
        data = assembled(raw, is_checksummed=log.is_checksummed)
        for command in COMMANDS if "built" not in log.name else COMMANDS[i % len(COMMANDS) :][:1]:
            _run(Mutant(log.name, (), data, verify=True, command=command), None)


def _run(mutation: Mutant, number: int | None) -> str:
    try:
        return outcome_of(mutation)
    except BaseException as error:  # whatever it is, it is what we look for
        if isinstance(error, KeyboardInterrupt):
            raise
        if number is not None:
            trace = "".join(traceback.format_exception(error))
            print(json.dumps({"number": number, "where": _where(error), "trace": trace}), flush=True)
        return "failed"


def _where(error: BaseException) -> str:
    """Failures of one kind at one place are one finding."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if {"penstock", "campaign"} & set(Path(frame.filename).parts)] or frames
    message = re.sub(r"[-\d.]*\d", "N", str(error).partition("\n")[0])[:80]
    return f"{type(error).__name__} in {Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}: {message}"


if __name__ == "__main__":
    main(sys.argv[1:])
