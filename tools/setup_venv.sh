#!/usr/bin/env bash
# usage: setup_venv.sh PYTHON VENV
# Creates VENV with the pinned dependencies and this package, editable.
# Needs only Python 3.11+; where Debian has split the venv module off, it is installed.
set -euo pipefail
python=$1 venv=$2

fail() { echo "setup: $*" >&2; exit 1; }

command -v "$python" >/dev/null || fail "'$python' not found: install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "'$python' is $("$python" -V 2>&1), Penstock needs 3.11 or newer: make setup PYTHON=/path/to/python3.11"

if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  echo "setup: this Python has no venv module, installing Debian's python3-venv"
  as_root=""; [ "$(id -u)" = 0 ] || as_root="sudo"
  { $as_root apt-get update -qq && $as_root apt-get install -y -qq python3-venv; } >/dev/null ||
    fail "could not install python3-venv; run: apt-get install python3-venv"
fi

echo "setup: $venv with $("$python" -V)"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# uv's own lines of the pinned file, hashes and all
awk '/^uv==/ {on = 1} on {print} on && !/\\$/ {exit}' requirements/dev.txt > "$venv/uv.txt"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$venv/uv.txt"
echo "setup: installing $(grep -cE '^[a-z].*==' requirements/dev.txt) pinned packages"
"$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements/dev.txt
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
echo "setup: compiling the kernels, once"
"$venv/bin/python" -m penstock.binlog.compile
echo "setup: ready"
