# Everything a user or a contributor does here is one of these verbs; `make help` lists them.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Servers for the tests, downloaded once and kept outside the work tree.
export PENSTOCK_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/penstock
# Which servers `make services` fetches; name some alone with `make services ONLY="mariadb zookeeper"`.
ONLY ?=
PYTEST := $(BIN)/python -m pytest
# A file stays in one process, whose servers it shares; so do all tests of Spark (tests/support/order.py).
SPREAD := -n 2 --dist loadfile --no-loadscope-reorder
# Tests on servers that mostly wait, for sessions that expire and servers that take over.
WAITING := $(shell grep -l pytest.mark.waits tests/integration/*.py)
# Some machines tell Python to keep no compiled modules; then each of hundreds of starts takes a second longer.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast search-releases campaign compatibility check format services bench lock clean

help:  ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create .venv with every pinned dependency

$(STAMP): requirements/dev.txt tools/setup_venv.sh
	@bash tools/setup_venv.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

demo: setup  ## a shop, a search box, and the milliseconds between them (ONCE=1: a change of each kind, then exit)
	@$(BIN)/penstock demo $(if $(ONCE),--once) $(if $(PORT),--port $(PORT))

services: setup  ## fetch the servers the tests need (ONLY="mariadb mysql80 …" for some)
	@$(BIN)/python -m tests.services $(ONLY)

test: setup services check  ## everything: checks, unit tests, tests on real servers
	$(PYTEST) tests/unit -n 2
	$(PYTEST) tests/integration tests/conformance -m "not waits" $(SPREAD)
	@# Spark gives its processes ten seconds to start: its tests run in one worker, and beside them only those that wait.
	$(PYTEST) tests/spark tests/e2e $(WAITING) $(SPREAD)

SEARCH_RELEASES := opensearch1 opensearch3 elasticsearch7 elasticsearch9

search-releases: setup  ## the contract of search indexes on the other releases of OpenSearch and Elasticsearch
	@$(BIN)/python -m tests.services $(SEARCH_RELEASES)
	$(PYTEST) tests/integration/test_search_releases.py --campaign

campaign: setup services  ## the long forms of tests (many rounds, 10,000 tables), then 200,000 broken logs: an hour or more
	@$(BIN)/python -m tests.services $(SEARCH_RELEASES)
	@echo "the long forms of tests on real servers"
	$(PYTEST) tests/integration tests/e2e --campaign $(SPREAD)
	$(PYTEST) tests/spark --campaign
	@echo "the Spark source on other releases of pyspark"
	$(BIN)/python -m tests.compatibility
	@echo "200,000 broken logs, each read to its end"
	$(BIN)/python -m tests.campaign

compatibility: setup services  ## the contract tests of the Spark source on the other supported releases of pyspark
	$(BIN)/python -m tests.compatibility

test-fast: setup  ## what needs no server
	$(PYTEST) tests/unit -n 2 -m "not slow"

check: setup  ## formatting, lint, types, and no download address in build files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python tools/check_addresses.py

format: setup  ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## run every benchmark, or one: make bench NAME=binlog
	@$(BIN)/python -m benchmarks $(NAME)

lock: setup  ## compile requirements/dev.txt again from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --all-extras --group dev pyproject.toml --output-file requirements/dev.txt

clean:  ## remove what make created in this folder (not the server cache)
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
