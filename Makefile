# `make demo` and `make test` set up all they need in .venv and run.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint docs published readers bench docs-tables fuzz soak mutants clean

demo: $(VENV)/.use
	$(BIN)/stepgraph demo

test: $(VENV)/.dev lint
	$(BIN)/pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # with --quiet, no warning would fail it
	@echo "open site/index.html"

# Every published number, also those that take minutes; `make test` does the quick ones.
published: $(VENV)/.dev
	STEPGRAPH_PUBLISHED=all $(BIN)/pytest -n 0 tests/test_published.py

# Every verb that writes, killed so many times at any moment; `make test` does a few.
soak: $(VENV)/.dev
	STEPGRAPH_SOAK=$(or $(STEPGRAPH_SOAK),200) $(BIN)/pytest -n 0 tests/test_kills.py tests/test_encoders_cache.py

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

# Compiled afterwards, on all cores and without what is hardly ever imported: pip needs a minute
# more for it, and an older pip half a minute more to find the versions.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
COMPILE = $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|models)/' $(VENV)/lib || true

$(VENV)/.use: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[video]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev]'
	@$(COMPILE)
	@touch $@ $(VENV)/.use
