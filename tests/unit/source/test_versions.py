"""Which servers are captured from, and what is said of the others."""

import pytest

from penstock.source.checks import check_variables
from penstock.source.finding import Verdict
from penstock.source.versions import check_version


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("5.5.62-log", Verdict.FAIL),
        ("5.6.51", Verdict.FAIL),
        ("5.7.22-log", Verdict.OK),
        ("5.7.44-48-57-log", Verdict.OK),
        ("8.0.mysql_aurora.3.05.2", Verdict.OK),
        ("9.7.4", Verdict.OK),
        ("10.0.1", Verdict.WARN),
        ("10.1.48-MariaDB", Verdict.FAIL),
        ("10.4.34-MariaDB-log", Verdict.FAIL),
        ("10.5.1-MariaDB-1:10.5.1+maria~bionic", Verdict.OK),
        ("11.8.9-MariaDB-4 from Debian-log", Verdict.OK),
        ("12.3.1-MariaDB", Verdict.OK),
        ("13.0.1-MariaDB", Verdict.WARN),
        ("", Verdict.FAIL),
    ],
)
def test_versions(version: str, verdict: Verdict) -> None:
    version_warning = check_version(version)
    assert version_warning.verdict is verdict
    assert "MySQL 5.7 to 9 and MariaDB 10.5 to 12" in str(version_warning)
    assert ("penstock binlog" in version_warning.remedy) == (verdict is Verdict.FAIL)
    assert next(check_variables({"version": version})) == version_warning
