# Every target makes what it needs: on a fresh machine one command is enough, and a second run reinstalls nothing.
# Another Python gets an environment of its own: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2

# One BLAS thread per test worker: two workers on two cores, no oversubscription.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg

PIP    := -m pip install --quiet --disable-pip-version-check
# The tests of one file or class stay in one worker, so that what they share is made once.
PYTEST := -m pytest -n $(JOBS) --dist loadscope

.PHONY: help test test-all test-papers test-lowest test-newest lint format docs links tables bench mutants demo wheel clean

help:
	@echo "make demo         audit a synthetic table and write skfairdp-report.html"
	@echo "make test         run the tests, in about five minutes  (PYTEST_ARGS='-k noise' to choose, JOBS=4 workers)"
	@echo "make test-all     run all tests: also slow ones, clusters, many processes, browser"
	@echo "make test-papers  run the tests of benchmarks/papers, which reproduces the papers' tables"
	@echo "make test-lowest  run the tests with the lowest versions that pyproject.toml allows, in .venv-lowest"
	@echo "make test-newest  run the tests with the newest versions there are (torch as pinned), in .venv-newest"
	@echo "make lint         ruff (lint and format), mypy, import contracts and checks of the source tree"
	@echo "make docs         check spelling, build the documentation with warnings as errors, run its examples and page tests"
	@echo "make links        check the documentation's external links (needs a network)"
	@echo "make tables       make the documents' tables and figures again from the measurements that are shipped"
	@echo "make bench        run the benchmarks               (ONLY=noise to choose)"
	@echo "make mutants      plant faults in copies of the tree and report which the tests find  (ONLY=pate to choose)"
	@echo "make wheel        build the wheel, install it into an empty environment, import it"
	@echo "make test PYTHON=python3.13 VENV=.venv-3.13 uses another Python, in an environment of its own"

# One stamp per extra. It is newer than what it was made from, or it is made again.
$(VENV)/installed-%: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -c constraints.txt -e '.[$*]'
	@touch $@

test: $(VENV)/installed-test
	$(ONE_THREAD) $(BIN)/python $(PYTEST) $(PYTEST_ARGS)

test-all: $(VENV)/installed-test
	$(ONE_THREAD) HYPOTHESIS_PROFILE=full $(BIN)/python $(PYTEST) -m "not repository" $(PYTEST_ARGS)

# Tables as functions of their journals, sentences of the documents, short runs on real data.
test-papers: $(VENV)/installed-test
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "" benchmarks/papers/tests $(PYTEST_ARGS)

.venv-lowest/installed-test: pyproject.toml constraints-lowest.txt
	@test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(PIP) -c constraints-lowest.txt -e '.[test]'
	@touch $@

test-lowest: .venv-lowest/installed-test
	$(ONE_THREAD) .venv-lowest/bin/python $(PYTEST) $(PYTEST_ARGS)

# No stamp: what is newest today may be old tomorrow. torch keeps its pin, because a newer one brings gigabytes of CUDA.
test-newest:
	@test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(PIP) --upgrade --upgrade-strategy eager "$$(grep '^torch==' constraints.txt)" -e '.[test]'
	$(ONE_THREAD) .venv-newest/bin/python $(PYTEST) $(PYTEST_ARGS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -m repository tests/repository tests/mutants

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-dev
	$(BIN)/codespell *.md .github docs examples skfairdp
	MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -j 2 -b html docs docs/_build/html
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -q -m "" docs/tests
	@echo "open docs/_build/html/index.html"

# Asks the network, which the other targets do not.
links: $(VENV)/installed-dev
	$(BIN)/python -m sphinx -D plot_gallery=0 -b linkcheck docs docs/_build/links

# Measures nothing. The README's picture is last, because it is drawn from one of the tables.
tables: $(VENV)/installed-test
	$(BIN)/python -m benchmarks.papers tables
	$(BIN)/python -m benchmarks growth --draw
	$(BIN)/python docs/draw_tradeoff.py

bench: $(VENV)/installed-test
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

mutants: $(VENV)/installed-test
	$(BIN)/python -m tests.mutants --n-jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")

demo: $(VENV)/installed-test
	$(BIN)/skfairdp demo

wheel: $(VENV)/installed-dev
	rm -rf dist build/wheel-check
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/python $(PIP) -c constraints.txt dist/*.whl
	cd build && wheel-check/bin/python -c "import skfairdp; print('skfairdp', skfairdp.__version__, 'from', skfairdp.__file__)"
	build/wheel-check/bin/skfairdp --version

clean:
	rm -rf $(VENV) .venv-* build dist docs/_build docs/auto_examples docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
