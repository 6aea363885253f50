"""The check that keeps download addresses out of build files finds them."""

import pytest

from tools.check_addresses import problems_in


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("requirements/dev.txt", "--index-url https://mirror.example/simple"),
        ("requirements/dev.txt", "numpy @ https://files.example/numpy.whl"),
        ("requirements/dev.txt", "--find-links /somewhere"),
        ("pyproject.toml", 'url = "https://mirror.example"'),
        ("Makefile", "curl http://mirror.example/x.tar.gz"),
        ("tools/setup_venv.sh", "pip install git+ssh://git@example/x"),
        ("tests/services/pom.xml", "<url>https://repo.example/maven2</url>"),
        ("requirements/dev.txt", "-f mirror.example/wheels"),
        ("requirements/dev.txt", "numpy>=2"),
        ("uv.toml", 'index-url = "mirror.example/simple"'),
        (".github/workflows/test.yml", "PIP_INDEX_URL: mirror.example:8080/simple"),
        ("Dockerfile", "RUN curl https://mirror.example/x"),
        ("tests/services/mysql.py", 'URL = "https://repo.example/mysql.tar.gz"'),
        ("uv.lock", 'registry = "https://mirror.example/simple"'),
        ("package-lock.json", '"resolved": "https://registry.example/x.tgz"'),
        (".ci/run", "export PIP_INDEX_URL=http://10.0.0.1:8080"),
        ("src/penstock/x.py", 'PATH = "/' + 'home/somebody/x"'),
    ],
)
def test_an_address_or_a_machine_path_is_found(path: str, line: str) -> None:
    assert len(problems_in(path, f"# first line\n{line}\n")) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("README.md", "see https://example.org"),
        ("requirements/dev.txt", "numpy==2.4.6 ; python_full_version < '3.12' \\"),
        ("requirements/dev.txt", f"    --hash=sha256:{'0' * 64}"),
        ("tests/services/opensearch.py", 'url = f"http://127.0.0.1:{port}"'),
        ("src/penstock/x.py", 'URL = "http://127.0.0.1:9200"'),
    ],
)
def test_what_is_no_download_address_passes(path: str, line: str) -> None:
    assert problems_in(path, line) == []
