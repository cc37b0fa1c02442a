# `make quickstart` and `make test` are all a newcomer needs; each makes the one .venv they share. See README.md.

PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# A worker runs whole files, the slow ones first: `make test WORKERS=8`.
WORKERS ?= 2
FAULTS ?= 60
RING = not slow and not faults
PYTEST = .venv/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SETUP_LOG = .venv/setup.log

.PHONY: quickstart test test-ci test-all test-faults test-gpu lint docs man results results-tables clean

quickstart: .venv/installed
	@PATH="$(CURDIR)/.venv/bin:$$PATH" bash recipes/quickstart/run.sh

# Three rings: what takes minutes in all; what takes seconds a test, too; and whole recipes.
test: .venv/installed
	@$(PYTEST)

test-ci: .venv/installed
	@$(PYTEST) -m "$(RING)"

test-all: .venv/installed
	@$(PYTEST) -m "not faults"

# Two hosts (network namespaces: needs root) whose parts fail while they work; the table is in build/faults.
# A short run: `make test-faults FAULTS=11`.
test-faults: .venv/installed
	@FAULTS=$(FAULTS) .venv/bin/python -m pytest -n 0 -m faults tests/faults

# On a machine with a GPU, with its own Python and torch (and what setup.cfg asks for): the tests that need one,
# then every benchmark, each figure appended to build/gpu.jsonl as soon as it is known; about ten minutes.
test-gpu:
	@$(PYTHON) -m pytest -q -p no:cacheprovider -m "" tests/nmt/test_gpu.py
	@mkdir -p build && $(PYTHON) -m tests.benchmarks.gpu --out build/gpu.jsonl $(GPU)

lint: .venv/installed
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

# kenlm comes last and may fail: it has no wheel and wants a C++ compiler. All else has to install.
.venv/installed: setup.cfg constraints.txt
	@echo "making .venv (a few minutes, once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv .venv
	@$(PIP) -e '.[plots,analysis,smt,tensorboard,fast,ctranslate2,safetensors,cluster,serve,docs,dev]' > $(SETUP_LOG) 2>&1 || { tail -n 20 $(SETUP_LOG); exit 1; }
	@$(PIP) -e '.[all]' >> $(SETUP_LOG) 2>&1 || echo "kenlm did not build (it needs a C++ compiler): going on without it, KenLM binaries cannot be read"
	@touch $@

# The documentation as a site that needs no network: build/docs/index.html
docs: .venv/installed
	@.venv/bin/python -m docs.site.build build/docs && echo "wrote build/docs/index.html"

# Then: man -M build/man nmt-train
man: .venv/installed
	@.venv/bin/python -m docs.site.man_pages build/man/man1

# A number of docs/results.md again, by the name of its file in docs/results: `make results NAME=quickstart`.
# The program's exit status: 1 if it differs, 2 if it cannot be repeated.
results: .venv/installed
	@.venv/bin/python -m docs.site.results repeat "$(NAME)"

# The tables of README.md and docs/results.md, from the files of docs/results
results-tables: .venv/installed
	@.venv/bin/python -m docs.site.results tables

clean:
	rm -rf .venv runs build
