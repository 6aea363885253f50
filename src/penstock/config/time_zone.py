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


def resolve_zone_name(text: str) -> str:
    """Return the name of the zone that a setting means. Raises ConfigurationError when there is none."""
    if text == LOCAL:
        return find_machine_zone()
    if not _is_zone(text):
        raise ConfigurationError(f"there is no time zone {text!r}: write it as Asia/Shanghai, UTC, or {LOCAL}")
    return text


def find_machine_zone(
    environment: Mapping[str, str] = os.environ, localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE
) -> str:
    """Return the name of this machine's zone; `Etc/GMT-8` where it has no name and is ahead of UTC by whole hours."""
    if text := environment.get("TZ", "").removeprefix(":"):
        return text if _is_zone(text) else _make_fixed_zone(f"TZ={text}")
    return (
        _find_linked_zone(localtime)
        or _read_zone_file(timezone, localtime)
        or _find_equal_zone(localtime)
        or _make_fixed_zone("")
    )


def _is_zone(text: str) -> bool:
    """Return whether a time zone of this name exists."""
    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _find_linked_zone(localtime: Path) -> str | None:
    """Return the zone that /etc/localtime links to: on most systems it is a link to /usr/share/zoneinfo/NAME."""
    try:
        target = str(localtime.readlink())
    except OSError:
        return None
    name = target.rpartition("zoneinfo/")[2].removeprefix("posix/")
    return name if _is_zone(name) else None


def _read_zone_file(timezone: Path, localtime: Path) -> str | None:
    """Return the zone in /etc/timezone, which Debian has; None if /etc/localtime is a file of another zone."""
    try:
        name = timezone.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not _is_zone(name):
        return None
    rules = _read_rules(localtime)
    return name if rules is None or rules == _read_zone_rules(name) else None


def _find_equal_zone(localtime: Path) -> str | None:
    """Return a zone with the same rules as /etc/localtime: containers often mount the host's as a file."""
    rules = _read_rules(localtime)
    if rules is None:
        return None
    names = sorted(zoneinfo.available_timezones(), key=lambda name: ("/" not in name, name))
    return next((name for name in names if _read_zone_rules(name) == rules), None)


def _read_zone_rules(name: str) -> bytes | None:
    """Return the binary rules of a zone, or None."""
    return next((rules for base in zoneinfo.TZPATH if (rules := _read_rules(Path(base) / name)) is not None), None)


def _read_rules(path: Path) -> bytes | None:
    """Return the content of a zone file, or None."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _make_fixed_zone(source: str) -> str:
    """Return the zone of this machine's present offset, as Java does when the zone has no name. Raises
    ConfigurationError for an offset that is not whole hours."""
    offset = time.localtime().tm_gmtoff
    hours, rest = divmod(offset, _HOUR_S)
    if rest:
        raise ConfigurationError(
            f"this machine's time zone has no name ({source or f'{offset} s ahead of UTC'}): name one with"
            " canal.time_zone, or penstock.canal.time_zone in properties"
        )
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
