"""The features of this machine's processor: read from /proc/cpuinfo on Linux; elsewhere from LLVM, which takes longer
to load."""

from functools import cache
from pathlib import Path

_KNOWN = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features")


@cache
def _lines() -> tuple[str, ...]:
    """Return the lines of /proc/cpuinfo that describe the first processor; none where that file does not exist."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(line for line in text.partition("\n\n")[0].splitlines() if line.startswith(_KNOWN))


@cache
def describe() -> str:
    """Return the name and features by which a compiler chooses instructions."""
    if _lines():
        return "\n".join(_lines())
    from llvmlite import binding  # noqa: PLC0415 - only where it must be

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def can_multiply_carryless() -> bool:
    """Tell whether it has x86's PCLMULQDQ."""
    flags = next((line for line in _lines() if line.startswith("flags")), None)
    if flags is not None:
        return "pclmulqdq" in flags.split()
    if _lines():  # another kind of processor
        return False
    from llvmlite import binding  # noqa: PLC0415 - only where it must be

    return bool(binding.get_host_cpu_features().get("pclmul"))
