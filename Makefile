# demo | check | test | test-slow | bench | lint | docs: each sets up what it needs in .venv; no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := setup.cfg setup.py pyproject.toml CMakeLists.txt

# Tests start hundreds of processes: each would compile all of xetl's Python anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check check-alone test test-alone test-as test-slow bench lint docs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "xetl needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.demo: $(BIN)/python $(SOURCES)
	@echo "installing xetl and what the demo needs into $(VENV) ..."
	@$(PIP) install -e '.[demo]'
	@$(BIN)/python -m xetl_cpu.native
	@touch $@

$(VENV)/.test: $(BIN)/python $(SOURCES)
	@echo "installing xetl and what the tests need into $(VENV) ..."
	@$(PIP) install -e '.[test]'
	@$(BIN)/python -m xetl_cpu.native
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/python tutorials/demo_digits.py

# While developing: the lints, and one case of each test that needs no OpenCL device;
# `make test` has what Intel's offline compiler makes, what starts many processes, and the
# scripts that users run.
STARTS_PROCESSES := $(addprefix tests/runtime/test_,end_to_end.py imports.py locks.py \
  pickling.py stale.py torch_compile.py) $(addprefix tests/backends/cpu/test_,libxsmm_2.py \
  nested_launches.py stored_products.py threads.py) tests/campaign tests/tools/test_tune_command.py
NOT_CHECKED := $(STARTS_PROCESSES) tests/backends/xegpu/offline \
  tests/test_demo.py tests/test_tutorials.py
check: $(VENV)/.test
	@$(MAKE) -j2 lint check-alone

check-alone:
	$(BIN)/python -m pytest -n auto -m 'not slow' --targets host --one-of-each \
	  $(addprefix --ignore=,$(NOT_CHECKED)) $(PYTEST_ARGS)

# Pyright has one core for a minute, so the tests begin meanwhile.
test: $(VENV)/.test
	@$(MAKE) -j2 lint test-alone

test-alone:
	$(BIN)/python -m pytest -n auto -m 'not slow' $(PYTEST_ARGS)

# Numbers that another processor computes (AS=avx512, avx512_bf16, amx), by software, with
# arrays between pages that nobody may touch; see docs/reliability.md.
COMPUTE := $(addprefix tests/,backends/cpu conformance numerics ops seeds)
test-as: $(VENV)/.test
	XETL_TESTS_AS=$(AS) XETL_TESTS_FENCED=1 $(BIN)/python -m pytest -n auto \
	  -m 'not slow' --targets host --one-of-each $(COMPUTE) $(PYTEST_ARGS)

# Few tests are handed out at once, so that no process is left with the longest alone.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --maxschedchunk 4 -m slow $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@if $(BIN)/pyright --version >/dev/null 2>&1; then $(BIN)/pyright --pythonpath $(BIN)/python; \
	else echo "pyright: left out; it could not be fetched (it comes from the npm registry)"; fi

bench: $(VENV)/.test
	@for script in benchmarks/bench_*.py benchmarks/gemm.py; do $(BIN)/python $$script || exit 1; done

# The site in build/site, from docs/, the docstrings and the tutorials, which run, as the snippets
# of the pages do; a warning is an error.
SNIPPETS := tests/test_readme.py tests/docs/test_language_examples.py tests/docs/test_ops_page.py
docs: $(VENV)/.test
	$(BIN)/python -m pytest -q -n0 $(SNIPPETS)
	$(BIN)/python docs/site/gather.py
	$(BIN)/sphinx-build -q -E -W --keep-going -c docs/site build/docs build/site

clean:
	rm -rf $(VENV) build
