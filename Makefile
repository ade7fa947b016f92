# `make demo` and `make test` set up all they need in .venv and run.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# What is imported is compiled once, whatever the environment says: tests start python often.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test lint docs published readers bench docs-tables fuzz soak mutants clean

demo: $(VENV)/.use
	$(BIN)/stepgraph demo

test: $(VENV)/.dev style
	@$(MAKE) --no-print-directory -j 2 types tests  # side by side, since each waits now and then

lint: style types

.PHONY: style types tests
style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	$(BIN)/pytest

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # with --quiet, no warning would fail it
	@echo "open site/index.html"

# Every published number, also those that take minutes; `make test` does the quick ones.
published: $(VENV)/.dev
	STEPGRAPH_PUBLISHED=all $(BIN)/pytest -n 0 tests/test_published.py

# Every verb that writes, killed so many times at any moment; `make test` does a few.
soak: $(VENV)/.dev
	STEPGRAPH_SOAK=$(or $(STEPGRAPH_SOAK),200) $(BIN)/pytest -n 0 -rP tests/test_kills.py tests/test_encoders_cache.py

# What is exported, read by libraries of 1 GB that do not go into the environment of the tests.
readers: $(VENV)/.dev
	$(PYTHON) -m venv $(VENV)/readers
	$(VENV)/readers/bin/python -m pip install --quiet 'label-studio-sdk==2.1.*' labelformat pm4py datumaro yt-dlp
	STEPGRAPH_READERS=$(VENV)/readers/bin/python $(BIN)/pytest -n 0 tests/test_export_readers.py

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed

docs-tables: $(VENV)/.dev
	$(BIN)/python -m benchmarks.docs

# Damaged files for every reader, for so many seconds in all; what is found lies in fuzz/finds.
SECONDS = 300
SEED = 0
fuzz: $(VENV)/.dev
	$(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

# Small mistakes in the package that the tests should notice: make mutants COUNT=400 SEED=1
COUNT = 40
mutants: $(VENV)/.dev
	$(BIN)/python -m fuzz.mutants --count $(COUNT) --seed $(SEED) $(ROOMS)

clean:
	rm -rf $(VENV) demo-report site

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stepgraph needs Python 3.11 or newer; run: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip

# Compiled when it is imported: pip needs a minute more to compile all, of which most is never
# imported; an older pip needs half a minute more to find the versions.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

$(VENV)/.use: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[video]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.use
