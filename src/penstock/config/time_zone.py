"""The time zone in which canal's clients see TIMESTAMP values: a name, or `local` for that of this machine.

canal writes a TIMESTAMP in the default zone of its Java machine, so what it wrote depends on where it ran. The zone of
this machine is found as Java finds it: TZ of the environment, then the system's own setting.
"""

import os
import time
import zoneinfo
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import ConfigurationError

LOCAL = "local"
_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_HOUR_S = 3600


def zone_name(text: str) -> str:
    """Return the name of the zone that a setting means; raise when there is none."""
    if text == LOCAL:
        return machine_zone()
    if not _is_zone(text):
        raise ConfigurationError(f"there is no time zone {text!r}: write it as Asia/Shanghai, UTC, or {LOCAL}")
    return text


def machine_zone(
    environment: Mapping[str, str] = os.environ, localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE
) -> str:
    """Return the name of this machine's zone, `Etc/GMT-8` where it has none and is ahead of UTC by whole hours."""
    if text := environment.get("TZ", "").removeprefix(":"):
        return text if _is_zone(text) else _fixed_offset(f"TZ={text}")
    return _linked_name(localtime) or _written_name(timezone, localtime) or _equal_name(localtime) or _fixed_offset("")


def _is_zone(text: str) -> bool:
    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _linked_name(localtime: Path) -> str | None:
    """/etc/localtime is a link to /usr/share/zoneinfo/NAME on most systems."""
    try:
        target = str(localtime.readlink())
    except OSError:
        return None
    name = target.rpartition("zoneinfo/")[2].removeprefix("posix/")
    return name if _is_zone(name) else None


def _written_name(timezone: Path, localtime: Path) -> str | None:
    """/etc/timezone has the name on Debian. It does not count where /etc/localtime is a file of another zone."""
    try:
        name = timezone.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not _is_zone(name):
        return None
    rules = _rules(localtime)
    return name if rules is None or rules == _rules_of(name) else None


def _equal_name(localtime: Path) -> str | None:
    """Containers often have the host's /etc/localtime mounted as a file: find a zone with the same rules."""
    rules = _rules(localtime)
    if rules is None:
        return None
    names = sorted(zoneinfo.available_timezones(), key=lambda name: ("/" not in name, name))
    return next((name for name in names if _rules_of(name) == rules), None)


def _rules_of(name: str) -> bytes | None:
    return next((rules for base in zoneinfo.TZPATH if (rules := _rules(Path(base) / name)) is not None), None)


def _rules(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _fixed_offset(source: str) -> str:
    """Java takes an offset that stays the same when the zone has no name."""
    offset = time.localtime().tm_gmtoff
    hours, rest = divmod(offset, _HOUR_S)
    if rest:
        raise ConfigurationError(
            f"this machine's time zone has no name ({source or f'{offset} s ahead of UTC'}): name one with"
            " canal.time_zone, or penstock.canal.time_zone in properties"
        )
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
