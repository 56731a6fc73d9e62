# `make test` is all that a fresh machine needs: Python 3.11 or newer, and no root.
# PYTEST_ARGS is passed on to pytest: make test PYTEST_ARGS="-k sweep"

BIN := .venv/bin
XDIST ?= -n auto --dist worksteal
# Tests run beside one another, so threads of linear algebra would only wait for each other.
THREADS = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST = $(THREADS) $(BIN)/python -m pytest $(XDIST) --ignore=tests/engines

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow coverage test-newest test-oldest test-engines test-all golden golden-record lint docs bench fuzz screenshots clean

help:  ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# An environment is made again when pyproject.toml changes. Pythons are tried by running them: a pyenv shim
# can stand on PATH and not work, and Debian has pythons without `ensurepip`, which make no environments.
.venv/.stamp: INSTALL = -e '.[app]' --group dev
# This torch is pinned for its CPU build; the newest one brings gigabytes of CUDA libraries.
.venv-engines/.stamp: INSTALL = torch==2.13.0 sqlglot -e '.[engines,torch,llm,mlflow]' --group test
.venv/.stamp .venv-engines/.stamp: pyproject.toml
	@for python in python3 python3.14 python3.13 python3.12 python3.11 $(HOME)/.pyenv/versions/3.*/bin/python3; do \
	    if $$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Making $(@D) with $$($$python --version)"; \
	        exec $$python -m venv --clear $(@D); \
	    fi; \
	done; echo "No Python 3.11 or newer with venv was found (Debian: apt install python3-venv)." >&2; exit 1
	$(@D)/bin/python -m pip -qq --disable-pip-version-check install 'pip>=25.1'  # older ones have no --group
	$(@D)/bin/python -m pip -qq --disable-pip-version-check install $(INSTALL)
	@touch $@

demo: .venv/.stamp  ## a report on bundled predictions of late flights: demo.html
	$(BIN)/truecal measure flights --score naive_bayes
	$(BIN)/truecal report flights --score naive_bayes --group origin -o demo.html
	@echo "Open demo.html in a browser."

test: lint  ## lint, then run the tests and the examples in the docstrings, without the slow simulations
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: .venv/.stamp  ## the slow simulations, which `make test` leaves out
	$(PYTEST) -m slow tests $(PYTEST_ARGS)

coverage: .venv/.stamp  ## all tests, slow ones too, with line and branch coverage; details in htmlcov/index.html
	$(PYTEST) --cov --cov-report=term --cov-report=html $(PYTEST_ARGS)

lint: .venv/.stamp  ## ruff, mypy --strict, import-linter, codespell
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/codespell

# NOX=--install-only makes the environments and runs nothing, NOX=-R uses them as they are.
NOX ?= --reuse-existing-virtualenvs
QUICK = $(THREADS) $(BIN)/nox $(NOX) --no-error-on-missing-interpreters -s $(@:test-%=%) -- \
    $(XDIST) -m "not slow" --cases 6 tests/unit tests/contract tests/property $(PYTEST_ARGS)
test-newest: .venv/.stamp  ## unit, contract and property tests on the newest Python of this machine
	$(QUICK)
test-oldest: .venv/.stamp  ## the same with the oldest dependencies that pyproject.toml allows
	$(QUICK)

test-all: .venv/.stamp  ## the tests on every Python of this machine, with the oldest dependencies, without extras, and from the sdist
	$(BIN)/nox

test-engines:  ## the tests of the big optional parts (Spark, torch: gigabytes), in an environment of their own
	@if [ -d tests/engines ]; then \
	    $(MAKE) --no-print-directory .venv-engines/.stamp && \
	    .venv-engines/bin/python -m pytest tests/engines $(PYTEST_ARGS); \
	else echo "There are no tests/engines yet: nothing to run."; fi

# Not part of `make test`: it has the values and texts of one environment.
GOLDEN = $(THREADS) PYTHONPATH=tests $(BIN)/python -m golden
golden: .venv/.stamp  ## compare what public calls and commands give with the record in tests/golden
	$(GOLDEN) $(GOLDEN_ARGS)

golden-record: .venv/.stamp  ## make that record again, in the commit that changes behaviour
	$(GOLDEN) --record

docs: .venv/.stamp  ## build the documentation into docs/_build, and check its links
	$(BIN)/python -m pip -qq --disable-pip-version-check install --group docs
	@mkdir -p docs/_build/_static  # where a failed build would leave a file of that name
	$(BIN)/python -m sphinx -W --keep-going docs docs/_build
	$(BIN)/python docs/check_site.py docs/_build

bench: .venv/.stamp  ## measure speed and memory, alone and against other packages; writes docs/benchmarks
	$(BIN)/python -m experiments core peers study

fuzz: .venv/.stamp  ## odd and damaged files through the command line; counts into docs/benchmarks/files.md; then atheris, if installed
	$(BIN)/python tools/fuzz_files.py --damaged 2000 --write docs/benchmarks/files.md
	$(BIN)/python tools/fuzz_files.py --guided 120

screenshots: .venv/.stamp  ## pictures of the report, light and dark, wide and narrow, into docs/_build/screenshots
	$(BIN)/python tools/screenshots.py docs/_build/screenshots

clean:  ## remove everything that was made, environments too
	rm -rf .venv .venv-* .nox .coverage* htmlcov experiments/.envs docs/_build docs/gallery docs/api build dist .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .import_linter_cache
	find src tests experiments tools -name __pycache__ -type d -prune -exec rm -rf {} +
