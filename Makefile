# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test compat check bench eval schemas format clean

help: ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.ready: pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.compat: $(VENV)/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[compat]'
	touch $@

setup: $(VENV)/.ready ## make the environment

demo: $(VENV)/.ready ## a conversation over half a year, remembered, with the official openai client
	$(BIN)/python examples/demo.py

check: $(VENV)/.ready ## style, types, arrows between modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check $(VENV)/.compat ## every check; a part left out for want of a package says which
	$(BIN)/python tests/run.py

compat: $(VENV)/.compat ## every provider's SDK and framework, at the versions of .ci/constraints.txt
	$(BIN)/python -m pytest -q tests/compat tests/providers

bench: $(VENV)/.ready ## latency beside a floor made of the same parts
	$(BIN)/python -m tests.bench.imports
	$(BIN)/python -m tests.bench.latency

eval: $(VENV)/.ready ## how well it finds: our own sets, then the public ones that are beside the checkout
	$(BIN)/halo eval tests/eval/sets/*.json
	$(BIN)/python -m tests.eval

schemas: $(VENV)/.ready ## write schemas/ from the code; review the difference
	$(BIN)/python -m tests.contract.schemas --write

format: $(VENV)/.ready ## let the formatter have its way
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and everything generated
	rm -rf $(VENV) dist build .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
