# Every target sets up what it needs in .venv, and is quick the second time.
# Needed beforehand: Python 3.11 or newer, a C++17 compiler, make.

PYTHON ?= python3
TEST_WORKERS ?= 2
SECONDS := 600
N := 150

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
NATIVE_TESTS := $(wildcard native/tests/*.?pp)
NATIVE := $(filter-out $(NATIVE_TESTS),$(wildcard native/*.?pp native/*/*.?pp))
INSTALLED_FROM := pyproject.toml CMakeLists.txt native/instruction_sets.txt $(NATIVE)

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
.DELETE_ON_ERROR:

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F '|' '{ printf "%-21s %s\n", $$1, $$2 }'

demo: $(STAMPS)/installed $(STAMPS)/cli $(STAMPS)/plot ## cluster a small example at the command line, and draw a picture
	@mkdir -p demo
	@echo "clustering a small example, and drawing a picture (some seconds)"
	$(BIN)/powermeans fit examples/customers.csv --output demo/clusters.csv --report demo/report.html --model demo/customers.pm
	$(BIN)/python examples/plot_lloyd_and_power.py --output demo/lloyd_and_power.png

test: $(STAMPS)/installed $(STAMPS)/test ## run the tests
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

test-reproduce: $(STAMPS)/installed $(STAMPS)/test ## run the tests of reproduce, each of its items in quick mode too
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal reproduce $(PYTEST_ARGS)

test-benchmarks: $(STAMPS)/installed $(STAMPS)/test ## run the tests of benchmarks
	$(BIN)/python -m pytest benchmarks $(PYTEST_ARGS)

check: $(STAMPS)/interop ## run all that a change has to pass, and say what was left out on this machine
	$(BIN)/python tests/check.py

lint: $(STAMPS)/lint ## check the style of Python and C++
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(NATIVE) $(NATIVE_TESTS)

format: $(STAMPS)/lint ## rewrite in house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE) $(NATIVE_TESTS)

types: $(STAMPS)/installed $(STAMPS)/lint ## check the types
	$(BIN)/mypy

structure: ## print the folders of the package, its imports, lines and functions
	@$(PYTHON) tests/structure.py

docs: $(STAMPS)/installed $(STAMPS)/docs ## build the documentation
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

links: docs ## build the documentation, check its links, and list those to other sites
	$(BIN)/python docs/check_links.py --external docs/_build/html

sanitize: $(STAMPS)/build ## run the native tests under the address, undefined-behaviour and thread sanitizers
	PATH="$(abspath $(BIN)):$$PATH"; cmake --workflow --preset address && cmake --workflow --preset thread

# Wheels for macOS are built by Clang, so that its module is tested too.
platforms: $(STAMPS)/installed $(STAMPS)/test ## run the native tests for other compilers and machines, and compare the bits
	$(BIN)/python native/tests/platforms.py $(PLATFORMS_ARGS)
	$(if $(shell command -v clang++),module=$$(ls build/clang/_native.*) && POWERMEANS_TESTED_MODULE=$$module \
	  $(BIN)/python -m pytest -q tests/native/test_native_rows.py tests/points/test_rows_identities.py)

attack: $(STAMPS)/installed $(STAMPS)/test ## use the package as an enemy would, for SECONDS=600 with SEED=today's date
	$(BIN)/python -m tests.attacks --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ATTACK_ARGS)

kill-test: $(STAMPS)/installed $(STAMPS)/test ## kill fits, clients and workers at random moments, and compare the bits
	$(BIN)/python -m tests.attacks --classes kill-process kill-client kill-worker --tries 20 --jobs 1 --seed 1 --seconds 36000

# PyTorch takes gigabytes, so that only this installs it; a build that is there already is kept.
test-gpu: $(STAMPS)/installed $(STAMPS)/test $(STAMPS)/gpu ## install PyTorch, and test tensors on a GPU or without one
	$(BIN)/python -m pytest tests/tensors $(PYTEST_ARGS)
	$(BIN)/python -m pytest tests/points/test_rows_identities.py -k tensor $(PYTEST_ARGS)

mutants: $(STAMPS)/installed $(STAMPS)/test $(STAMPS)/coverage ## break the package in N=150 ways with SEED=1, and count what the tests catch
	$(BIN)/python tests/mutants.py --number $(N) --seed $(or $(SEED),1) $(MUTANT_ARGS)

peers: $(PEERS)/stamps/powermeans ## install the packages that benchmarks compare with

bench-speed: peers ## measure the speed compared with other packages, and with FORMER=commit
	$(PEERS)/bin/python -m benchmarks.speed $(if $(FORMER),--former $(FORMER)) $(BENCH_ARGS)

bench-quality: peers ## measure the quality compared with other packages
	$(PEERS)/bin/python -m benchmarks.quality $(BENCH_ARGS)

bench-scale: peers ## measure rows on disk and on Dask, and write docs/project/scale.md (an hour, 12 GB)
	$(PEERS)/bin/python -m benchmarks.scale $(BENCH_ARGS)
	$(PEERS)/bin/python -m benchmarks.scale --page

reproduce: $(STAMPS)/installed $(STAMPS)/plot ## compute all published tables and figures, and their pages, in hours, or with REPRODUCE_ARGS=--quick in minutes
	$(BIN)/python -m reproduce all $(REPRODUCE_ARGS)

picture: $(STAMPS)/installed $(STAMPS)/plot ## draw the README's picture again
	$(BIN)/python -m benchmarks.plot_hero

clean: ## remove all that was built, .venv too, but not build/reproduce, where hours are kept
	find build -mindepth 1 -maxdepth 1 ! -name reproduce -exec rm -rf {} + 2>/dev/null || true
	rm -rf dist demo docs/_build docs/auto_examples docs/api $(VENV) $(PEERS)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks reproduce examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Setting up. An install needs no network once its requirements are met.
# The requirements of one extra of pyproject.toml, or of the build, one a line.
REQUIREMENTS := import sys, tomllib; \
  table = tomllib.load(open("pyproject.toml", "rb")); \
  extras = {"build": [*table["build-system"]["requires"], "cmake", "ninja"], **table["project"]["optional-dependencies"]}; \
  print(*extras[sys.argv[1]], sep="\n")
PIP_INSTALL := python -m pip --disable-pip-version-check install --quiet

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "powermeans needs Python 3.11 or newer: try make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "making a virtual environment in $(VENV) (some seconds)"
	@$(PYTHON) -m venv $(VENV) && mkdir -p $(STAMPS) && touch $@

$(addprefix $(STAMPS)/,build cli coverage docs gpu interop lint plot test): $(STAMPS)/%: pyproject.toml | $(STAMPS)/venv
	@echo "installing what is needed for: $* (up to a minute or two, the first time)"
	@$(BIN)/python -c '$(REQUIREMENTS)' $* > $(STAMPS)/$*.txt
	@$(BIN)/$(PIP_INSTALL) -r $(STAMPS)/$*.txt
	@touch $@

$(STAMPS)/installed: $(INSTALLED_FROM) | $(STAMPS)/build
	@echo "compiling powermeans, and installing NumPy, SciPy and scikit-learn (one to five minutes)"
	@$(BIN)/$(PIP_INSTALL) --no-build-isolation --editable .
	@touch $@

# The peers have an environment of their own, and a copy of powermeans as users install it.
$(PEERS)/stamps/peers: benchmarks/requirements-peers.txt pyproject.toml
	$(PYTHON) -m venv $(PEERS) && mkdir -p $(PEERS)/stamps
	@$(PEERS)/bin/python -c '$(REQUIREMENTS)' build > $(PEERS)/stamps/build.txt
	$(PEERS)/bin/$(PIP_INSTALL) setuptools wheel cython numpy -r $(PEERS)/stamps/build.txt
	$(PEERS)/bin/$(PIP_INSTALL) --no-build-isolation -r $<
	@touch $@

$(PEERS)/stamps/powermeans: $(PEERS)/stamps/peers $(INSTALLED_FROM) $(shell find src -name '*.py')
	$(PEERS)/bin/$(PIP_INSTALL) --no-build-isolation --no-deps --force-reinstall .
	@touch $@
