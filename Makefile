# Every target works in .venv, which is created again when it is missing or older than the files that define it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
LEAST_COVERED := 94  # percent of lines and branches, for `make coverage`; 96.3 were measured, with reference data
# The same constraints for every install and for what packages need to build themselves.
export PIP_CONSTRAINT       := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of commands: without bytecode each would compile all of veilmeter again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env browser demo test coverage test-lower lint lock third-party audit bench fuzz reference docs package fresh papers screenshots clean

help:           ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

env: $(STAMP)   ## the environment in .venv
$(STAMP): pyproject.toml constraints.txt requirements-lock.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python tools/install.py
	@touch $@

demo: $(STAMP)  ## the whole story on synthetic voices; leaves a report to open
	$(BIN)/veilmeter demo --out demo

browser:        ## Chromium, for browser tests and PDFs, where it is missing
	@tools/install-browser

test: $(STAMP) browser  ## all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

coverage: $(STAMP) browser  ## all tests, with the share of lines and branches they run, and a floor for it
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term --cov-fail-under=$(LEAST_COVERED)

lint: $(STAMP)  ## ruff, mypy --strict, and phrases to rewrite
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/mypy
	$(BIN)/python tools/english.py

bench: $(STAMP) ## speed as ratios, each measured in one run
	$(BIN)/python -m benchmarks

fuzz: $(STAMP)  ## broken bytes for every reader, a few minutes in all
	-$(BIN)/python -m pip install --quiet --only-binary :all: atheris
	$(BIN)/python tools/fuzz.py --guided 5

lock: $(STAMP)  ## requirements-lock.txt: versions and hashes of all that is installed
	$(BIN)/python tools/lock.py

third-party: $(STAMP)  ## THIRD_PARTY.md: licenses and sources of packages and weights
	$(BIN)/python tools/third_party.py

audit: $(STAMP)  ## known vulnerabilities of the locked packages; needs a network that reaches the database
	$(BIN)/python -m pip install --quiet pip-audit
	@$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement requirements-lock.txt || { \
		echo "make audit: vulnerable packages are listed above; if none is, the database can't be reached from here" >&2; exit 1; }

test-lower: $(STAMP)  ## the tests with the lowest versions that are allowed
	$(BIN)/python tools/lower_bounds.py

reference: $(STAMP)  ## docs/reference: commands and tables, from the declarations
	$(BIN)/python tools/command_reference.py
	$(BIN)/python tools/reference_tables.py

docs: $(STAMP)  ## the documentation as a site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

package: $(STAMP)  ## the wheel and the source archive in dist/, checked
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist && $(BIN)/python -m build --outdir dist && $(BIN)/twine check --strict dist/*

fresh:          ## the README's two commands in a new clone, home and cache, as an unprivileged user
	tools/fresh

papers: $(STAMP)  ## the papers' tables from public data: make papers DATA=folder (docs/validation/papers.md)
	$(BIN)/python examples/papers_001_004.py $(DATA)
	$(BIN)/python examples/paper002_table2.py $(DATA)
	$(BIN)/python examples/paper003_figure1.py

screenshots: $(STAMP) browser  ## of the demo's reports, into screenshots/
	test -f demo/report.html || $(BIN)/veilmeter demo --out demo
	$(BIN)/python tools/screenshots.py screenshots demo/runs/b2 demo/runs/b2r demo/runs/b1 demo/runs/cascade

clean:          ## remove what make made
	rm -rf $(VENV) demo build dist site
