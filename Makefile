# `make demo` is the main job, `make test` the tests; each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test slow lint bench bench-coverage browser clean

$(READY): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "slotsim needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt --editable '.[test]'
	$(BIN)/python -m compileall -q sim
	@touch $@

demo: $(READY)
	$(BIN)/slotsim compare scenarios/off-peak.yaml scenarios/peak.yaml --out reports/demo

test: $(READY) browser
	$(BIN)/python -m pytest -n auto

slow: $(READY) browser
	$(BIN)/python -m pytest -n auto -m slow

# Thousands of generated runs on both engines, then all engines side by side; who cannot be installed or compiled is
# left out. The result is kept under reports/bench.
bench: $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt --editable '.[bench]'
	$(BIN)/python -m pytest -n auto -m slow -k are_the_same tests/engine/test_engine_equality.py tests/engine/test_shared_equality.py
	$(BIN)/python -m tests.benchmarks.bench

# How often intervals hold theory, and what shared draws are worth; the results are kept under reports/bench.
bench-coverage: $(READY)
	$(BIN)/python -m tests.benchmarks.coverage
	$(BIN)/python -m tests.benchmarks.shared_draws

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The browser test needs a Chromium; as root on Debian it is installed here, elsewhere the test says what is missing.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "no Chromium found: the browser test will be skipped"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
