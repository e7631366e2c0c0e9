# Two commands set up a fresh machine: `make demo` and `make test`. Needs Python 3.11 or later, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test test-deploy bench peers docs lint format clean

# The core alone: what `make demo` and a plain installation need.
$(VENV)/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# Everything the tests, the checks and the docs need.
$(VENV)/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(VENV)/core $@

setup: $(VENV)/dev

demo: $(VENV)/core
	$(BIN)/syndic demo

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint docs
	$(BIN)/pytest -n 2 --dist loadgroup -m "not deploy"

# Apart from the other tests for its cost: a server and parties as processes of their own, for some minutes.
test-deploy: $(VENV)/dev
	$(BIN)/pytest tests/deploy -m deploy

docs: $(VENV)/dev
	$(BIN)/mkdocs build --quiet --strict

# Slower than the tests: measurements beside a baseline in the same run.
bench: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	for name in guard noise secure sources; do $(BIN)/syndic bench $$name || exit 1; done

# Another library, to compare with: its pins clash with ours, so it has an environment of its own.
PEERS ?= .peers
peers:
	$(PYTHON) -m venv $(PEERS)/diffprivlib
	$(PEERS)/diffprivlib/bin/pip install --quiet diffprivlib==0.6.6 scikit-learn==1.7.2

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis syndic-demo
