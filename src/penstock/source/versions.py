"""Which releases of MySQL and MariaDB are supported, and what is said of the others.

| server  | supported | older                                          | newer                       |
| ------- | --------- | ---------------------------------------------- | --------------------------- |
| MySQL   | 5.7 – 9.x | refused: logs say less, and nothing tries them | captured, with a warning    |
| MariaDB | 10.5 – 12 | refused: likewise, no column names in the log  | captured, with a warning    |
"""

from dataclasses import dataclass

from penstock.source.finding import Finding, Verdict

SUPPORTED = "MySQL 5.7 to 9 and MariaDB 10.5 to 12"


@dataclass(frozen=True, slots=True)
class _SupportedVersions:
    """The supported versions of one product: the oldest release, and the newest major version that was tested."""

    name: str
    oldest: tuple[int, int]
    newest: int  # major version


_MARIADB, _MYSQL = _SupportedVersions("MariaDB", (10, 5), 12), _SupportedVersions("MySQL", (5, 7), 9)


def check_version(version: str) -> Finding:
    """Return a finding that says whether a server of this version is supported, too old, or not known yet."""
    supported = _MARIADB if "mariadb" in version.lower() else _MYSQL
    numbers = _parse_version(version)
    if numbers < supported.oldest:
        remedy = (
            f"supported are {SUPPORTED}; files of its log can still be read with `penstock binlog`, from MySQL 5.5 on"
        )
        return Finding("version", Verdict.FAIL, version or "not known", remedy)
    if numbers[0] > supported.newest:
        remedy = f"later than all that was tried ({SUPPORTED}): compare what is captured before you rely on it"
        return Finding("version", Verdict.WARN, version, remedy)
    return Finding("version", Verdict.OK, f"{version} (supported are {SUPPORTED})")


def _parse_version(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    parts = version.split("-", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())
