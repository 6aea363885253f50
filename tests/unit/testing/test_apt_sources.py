"""Sources files of apt, as they are found on machines, rewritten for another suite."""

from pathlib import Path

from penstock.testing.sources import read_sources, rewrite_for_suite

DEBIAN = """\
Types: deb deb-src
# a comment between fields
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
"""


def test_the_distributions_own_suite_is_replaced_and_its_other_fields_stay() -> None:
    rewritten = rewrite_for_suite("debian.sources", DEBIAN, "sid")

    assert rewritten == (
        "types: deb\nuris: http://mirror.test/debian\nsuites: sid\ncomponents: main contrib\n"
        "signed-by: -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n\n"
    )


def test_a_disabled_stanza_a_source_stanza_and_a_vendors_are_left_out() -> None:
    text = """\
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://mirror.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://vendor.test/linux/debian
Suites: bookworm
Components: stable
"""

    assert rewrite_for_suite("some.sources", text, "sid") == ""


def test_a_classic_list_keeps_its_options() -> None:
    text = """\
# deb http://mirror.test/old bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://mirror.test/debian bookworm main contrib # own mirror
deb-src http://mirror.test/debian bookworm main
deb http://mirror.test/debian bookworm-updates main
deb http://mirror.test/security bookworm-security main
deb http://vendor.test/apt cloud-sdk main
"""

    assert rewrite_for_suite("sources.list", text, "sid") == (
        "deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://mirror.test/debian sid main contrib\n"
    )


def test_only_files_that_apt_reads_are_read(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("one")
    (parts / "debian.sources").write_text("two")
    (parts / "vendor.list.disabled").write_text("no")
    (parts / "vendor.sources.save").write_text("no")
    (parts / "folder.list").mkdir()

    assert read_sources(tmp_path / "sources.list", parts) == {"sources.list": "one", "debian.sources": "two"}


def test_a_machine_without_any_sources_has_none(tmp_path: Path) -> None:
    assert read_sources(tmp_path / "sources.list", tmp_path / "sources.list.d") == {}
