"""File descriptors: the limit is raised, what is needed is estimated, and what does not fit is said."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server.descriptors import count_open_descriptors, estimate_descriptors, plan_descriptors
from penstock.testing import poll_until
from tests.support.admin_support import served, settings_with, shop_folder, status_of

CLOSED = "flight: {port: 0}\ncanal: {port: null}\nadmin: {port: null}\n"


def instances(count: int, **changes: object) -> list[InstanceSettings]:
    return [InstanceSettings.model_validate({"destination": f"d{n}"} | changes) for n in range(count)]


def test_two_hundred_instances_do_not_fit_into_a_thousand_and_do_into_more(tmp_path: Path) -> None:
    settings = instances(200, data_dir=tmp_path)
    small, large = (plan_descriptors(ServerSettings(), settings, limit) for limit in (1024, 20_000))
    assert (small.is_enough, large.is_enough) == (False, True)
    assert 100 < small.fitting < 200 < large.fitting
    assert "200 INSTANCES" in str(small)
    assert "THE LIMIT IS 1024: about" in str(small)
    assert re.fullmatch(r"file descriptors: 20000, enough for about \d+ instances such as these", str(large))
    assert plan_descriptors(ServerSettings(), instances(2), 1024).fitting > small.fitting, "they have no files"
    assert plan_descriptors(ServerSettings(), [], 100).fitting >= 0


def test_an_instance_takes_no_more_than_is_estimated(tmp_path: Path) -> None:
    before = count_open_descriptors()
    assert before is not None
    options = {"data_dir": str(tmp_path / "data"), "store": {"kind": "file"}}
    settings = settings_with(shop_folder(tmp_path / "logs"), options)
    with served(settings) as server:
        budget = status_of(server)["server"]["descriptors"]
        opened = count_open_descriptors()
        assert opened is not None
        assert opened - before < budget["needed"]
        assert budget["open"] >= estimate_descriptors(settings.instances[0]) - 4
        assert budget["limit"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert budget["instances_that_fit"] > 0


def serve(folder: Path, limits: tuple[int, int]) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("penstock")), "serve", str(folder)]
    with (folder.parent / "out").open("wb") as out:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),  # noqa: PLW1509 - no threads yet
        )


def said(folder: Path, process: subprocess.Popen[bytes], words: Sequence[str]) -> bool:
    def has_all() -> bool:
        text = (folder.parent / "out").read_text()
        return all(word in text for word in words) or process.poll() is not None

    assert poll_until(has_all, 60), (folder.parent / "out").read_text()
    text = (folder.parent / "out").read_text()
    return all(word in text for word in words)


@pytest.mark.parametrize(("limits", "words"), [((80, 4000), "4000, enough for"), ((80, 100), "THE LIMIT IS 100")])
def test_serve_raises_its_limit_and_says_how_many_instances_fit(
    tmp_path: Path, limits: tuple[int, int], words: str
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "server.yml").write_text(CLOSED)
    for number in range(20):
        (conf / f"d{number}.yml").write_text(json.dumps({"source": {"path": str(tmp_path / "nothing")}}))
    process = serve(conf, limits)
    try:
        assert said(conf, process, [words]), (tmp_path / "out").read_text()
        line = next(
            line for line in Path(f"/proc/{process.pid}/limits").read_text().splitlines() if "open files" in line
        )
        assert line.split()[3:5] == [str(limits[1])] * 2
    finally:
        process.kill()
        process.wait()
