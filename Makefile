# Every target sets up what it needs in .venv, and is quick the second time.
# Needed beforehand: Python 3.11 or newer, a C++17 compiler, make.

PYTHON ?= python3
TEST_WORKERS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check
NATIVE_TESTS := $(wildcard native/tests/*.cpp native/tests/*.hpp)
NATIVE := $(filter-out $(NATIVE_TESTS),$(wildcard native/*.?pp native/*/*.?pp)) native/instruction_sets.txt
NATIVE_TEST_NAMES := $(basename $(notdir $(wildcard native/tests/test_*.cpp)))
CPP := $(filter %.cpp %.hpp,$(NATIVE) $(NATIVE_TESTS))

.PHONY: help demo picture test test-gpu kill-test attack lint types structure format sanitize platforms peers latency bench-quality bench-speed bench-scale reproduce reproduce-quick docs links clean
.DELETE_ON_ERROR:

help:
	@echo "make demo      cluster a small example at the command line, and draw a picture"
	@echo "make test      run the tests           make lint   style of Python and C++"
	@echo "make types     check the types         make docs   build the documentation"
	@echo "make links     build the documentation, and check its links, of which those to elsewhere are listed"
	@echo "make structure print the folders of the package, its imports, lines and functions"
	@echo "make sanitize  native tests under the address, undefined-behaviour and thread sanitizers"
	@echo "make platforms native tests for other compilers and machines, and whether the bits are equal"
	@echo "make picture   draw the README's pictures again"
	@echo "make format    rewrite in house style  make clean  remove all that was built, .venv too,"
	@echo "                                         but not build/reproduce, where hours are kept"
	@echo "make bench-speed    measure the speed beside other packages (FORMER=commit: and beside that)"
	@echo "make bench-quality  measure the quality beside other packages (make peers installs them)"
	@echo "make latency        send Ctrl-C to fits at random moments, and measure how soon they end"
	@echo "make bench-scale    measure rows on disk and on Dask, and write docs/scale.md (an hour, 12 GB)"
	@echo "make test-gpu       install PyTorch, and test the rows of tensors on a GPU or without one"
	@echo "make kill-test      kill fits, clients and workers at random moments, and compare the bits"
	@echo "make attack         use the package as an enemy would, for SECONDS=600 with SEED=today's date"
	@echo "make reproduce-quick  a small part of every published table and figure, in minutes"
	@echo "make reproduce        all of them in full, in hours, and docs/reproduction.md"

demo: $(STAMPS)/installed $(STAMPS)/cli $(STAMPS)/plot
	@mkdir -p demo
	@echo "clustering a small example, and drawing a picture (some seconds)"
	$(BIN)/powermeans demo --data demo/customers.csv
	$(BIN)/python examples/plot_lloyd_and_power.py --output demo/lloyd_and_power.png

picture: $(STAMPS)/installed $(STAMPS)/plot
	$(BIN)/python -m benchmarks.plot_hero
	$(BIN)/python examples/plot_lloyd_and_power.py --output docs/_static/lloyd_and_power.png

test: $(STAMPS)/installed $(STAMPS)/test
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

# PyTorch takes gigabytes, so that only this installs it; a build that is there already is kept.
test-gpu: $(STAMPS)/installed $(STAMPS)/test $(STAMPS)/gpu
	$(BIN)/python -m pytest tests/test_torch_rows.py tests/test_tensors_at_the_border.py $(PYTEST_ARGS)
	$(BIN)/python -m pytest tests/test_rows_identities.py -k tensor $(PYTEST_ARGS)

# Every fit that is killed is made again with its checkpoint, which takes minutes.
kill-test: $(STAMPS)/installed $(STAMPS)/test
	$(BIN)/python tests/kill_fits.py --times 20 --seed 1

SECONDS := 600
attack: $(STAMPS)/installed $(STAMPS)/test
	$(BIN)/python -m tests.attacks --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ATTACK_ARGS)

lint: $(STAMPS)/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP)

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

types: $(STAMPS)/installed $(STAMPS)/lint
	$(BIN)/mypy

structure:
	@$(PYTHON) tests/structure.py

latency: $(STAMPS)/installed $(STAMPS)/cli
	$(BIN)/python -m benchmarks.latency $(BENCH_ARGS)

peers: $(PEERS)/stamps/powermeans

bench-speed: peers
	$(PEERS)/bin/python -m benchmarks.speed $(if $(FORMER),--former $(FORMER)) $(BENCH_ARGS)

bench-quality: peers
	$(PEERS)/bin/python -m benchmarks.quality $(BENCH_ARGS)

bench-scale: peers
	$(PEERS)/bin/python -m benchmarks.scale $(BENCH_ARGS)
	$(PEERS)/bin/python -m benchmarks.scale --page

reproduce: $(STAMPS)/installed $(STAMPS)/plot
	$(BIN)/python -m reproduce --all; ended=$$?; $(BIN)/python -m reproduce.page && exit $$ended

reproduce-quick: $(STAMPS)/installed $(STAMPS)/plot
	$(BIN)/python -m reproduce --all --quick

docs: $(STAMPS)/installed $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

links: docs
	$(BIN)/python docs/check_links.py --external docs/_build/html

clean:
	find build -mindepth 1 -maxdepth 1 ! -name reproduce -exec rm -rf {} + 2>/dev/null || true
	rm -rf dist demo docs/_build docs/auto_examples docs/api $(VENV) $(PEERS)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Setting up. An install needs no network once its requirements are met.

# The requirements of one extra of pyproject.toml, or of the build, one a line.
REQUIREMENTS := import sys, tomllib; \
  table = tomllib.load(open("pyproject.toml", "rb")); \
  extras = table["project"]["optional-dependencies"]; \
  print(*{**extras, "build": table["build-system"]["requires"]}[sys.argv[1]], sep="\n")

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "powermeans needs Python 3.11 or newer: try make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "making a virtual environment in $(VENV) (some seconds)"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

EXTRAS := $(addprefix $(STAMPS)/,build cli gpu plot test lint docs)
$(EXTRAS): $(STAMPS)/%: pyproject.toml | $(STAMPS)/venv
	@echo "installing what is needed for: $* (up to a minute or two, the first time)"
	@$(BIN)/python -c '$(REQUIREMENTS)' $* > $(STAMPS)/$*.txt
	@$(PIP) install --quiet -r $(STAMPS)/$*.txt $(if $(filter build,$*),cmake ninja)
	@touch $@

$(STAMPS)/installed: pyproject.toml CMakeLists.txt $(NATIVE) | $(STAMPS)/build
	@echo "compiling powermeans, and installing NumPy, SciPy and scikit-learn (one to five minutes)"
	@$(PIP) install --quiet --no-build-isolation --editable .
	@touch $@

# The peers live in an environment of their own, beside a copy of powermeans as users install it.

PEERS_PIP := $(PEERS)/bin/python -m pip --disable-pip-version-check
POWERMEANS := $(shell find src -name '*.py')

$(PEERS)/stamps/peers: benchmarks/requirements-peers.txt pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	@mkdir -p $(PEERS)/stamps
	@$(PEERS)/bin/python -c '$(REQUIREMENTS)' build > $(PEERS)/stamps/build.txt
	$(PEERS_PIP) install --quiet setuptools wheel cython numpy cmake ninja -r $(PEERS)/stamps/build.txt
	$(PEERS_PIP) install --quiet --no-build-isolation -r $<
	@touch $@

$(PEERS)/stamps/powermeans: $(PEERS)/stamps/peers CMakeLists.txt $(NATIVE) $(POWERMEANS)
	$(PEERS_PIP) install --quiet --no-build-isolation --no-deps --force-reinstall .
	@touch $@

# Sanitizers. The native tests are plain programs; each is linked with all of the native core but
# its Python bindings. The kernels are compiled once for each instruction set, as CMakeLists.txt does.

SANITIZERS := address thread
SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_thread := -fsanitize=thread
SANITIZE_SOURCES := $(filter-out native/kernels/% native/python/% native/tests/%,$(wildcard native/*.cpp native/*/*.cpp))
SANITIZE_FLAGS := -Inative -std=gnu++17 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -fno-math-errno -pthread \
  -Wall -Wextra -Wno-psabi

INSTRUCTION_SETS := baseline
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
INSTRUCTION_SETS += $(shell sed -n 's/^\([a-z][a-z0-9]*\) .*/\1/p' native/instruction_sets.txt)
SANITIZE_FLAGS += -DPOWERMEANS_X86
endif
# GCC 12 warns about its own AVX-512 headers.
$(foreach set,$(INSTRUCTION_SETS),$(eval FLAGS_$(set) := -Wno-maybe-uninitialized -Wno-uninitialized \
  $(shell sed -n 's/^$(set) //p' native/instruction_sets.txt)))

sanitize: $(foreach sanitizer,$(SANITIZERS),$(NATIVE_TEST_NAMES:%=build/sanitize/$(sanitizer)/%.passed))
	@test -n "$^" || { echo "there are no programs in native/tests" >&2; exit 1; }
	@echo "$(words $^) sanitized runs of $(words $(NATIVE_TEST_NAMES)) native test programs passed"

KERNELS := $(basename $(notdir $(wildcard native/kernels/*.cpp)))

# sanitized_kernels(sanitizer, kernels)
define sanitized_kernels
build/sanitize/$(1)/$(2)_%.o: native/kernels/$(2).cpp $(NATIVE)
	@mkdir -p $$(@D)
	$$(CXX) $(SANITIZE_FLAGS) $(SANITIZE_$(1)) -DPOWERMEANS_TABLE=kernels_$$* \
	  -DPOWERMEANS_SEED_TABLE=seed_kernels_$$* -DPOWERMEANS_PAIR_DISTANCE=pair_distance_$$* $$(FLAGS_$$*) -c $$< -o $$@


endef

# sanitizer_rules(sanitizer)
define sanitizer_rules
build/sanitize/$(1)/%.o: native/%.cpp $(NATIVE) $(NATIVE_TESTS)
	@mkdir -p $$(@D)
	$$(CXX) $(SANITIZE_FLAGS) $(SANITIZE_$(1)) -c $$< -o $$@

$(foreach kernels,$(KERNELS),$(call sanitized_kernels,$(1),$(kernels)))
build/sanitize/$(1)/%.run: build/sanitize/$(1)/tests/%.o \
  $(SANITIZE_SOURCES:native/%.cpp=build/sanitize/$(1)/%.o) \
  $(foreach kernels,$(KERNELS),$(INSTRUCTION_SETS:%=build/sanitize/$(1)/$(kernels)_%.o))
	$$(CXX) $(SANITIZE_$(1)) -pthread $$^ -o $$@

build/sanitize/$(1)/%.passed: build/sanitize/$(1)/%.run
	$$<
	@touch $$@
endef
$(foreach sanitizer,$(SANITIZERS),$(eval $(call sanitizer_rules,$(sanitizer))))
.SECONDARY:

# Platforms. Each builds the core and its tests for another compiler or machine; the tests pass, and the
# digests of what the core computes are equal on all of them. What is not installed here is left out.

PLATFORMS := gcc clang aarch64 windows
CXX_gcc := g++
CXX_clang := clang++
CXX_aarch64 := aarch64-linux-gnu-g++
CXX_windows := x86_64-w64-mingw32-g++-posix
RUNNER_aarch64 := qemu-aarch64
RUNNER_windows := wine
CMAKE_aarch64 := -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_EXE_LINKER_FLAGS=-static
CMAKE_windows := -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64 -DCMAKE_EXE_LINKER_FLAGS=-static
SUFFIX_windows := .exe
export WINEPREFIX := $(abspath build/platforms/wine)
export WINEDEBUG := -all

is_here = $(and $(shell command -v $(CXX_$(1))),$(or $(if $(RUNNER_$(1)),,native),$(shell command -v $(RUNNER_$(1)))))
PLATFORMS_HERE := $(foreach platform,$(PLATFORMS),$(if $(call is_here,$(platform)),$(platform)))

platforms: $(PLATFORMS_HERE:%=build/platforms/%/digests.txt) $(if $(filter clang,$(PLATFORMS_HERE)),build/platforms/clang/module.passed)
	@$(foreach platform,$(filter-out $(PLATFORMS_HERE),$(PLATFORMS)), \
	  echo "$(platform) is left out: it needs $(CXX_$(platform)) $(RUNNER_$(platform))";)
	$(PYTHON) tests/compare_digests.py $(PLATFORMS_HERE:%=build/platforms/%/digests.txt)

# platform_rules(platform)
define platform_rules
build/platforms/$(1)/built: CMakeLists.txt $(NATIVE) $(NATIVE_TESTS) | $(STAMPS)/build
	$(BIN)/cmake -S . -B $$(@D) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DCMAKE_CXX_COMPILER=$(CXX_$(1)) -DPOWERMEANS_NATIVE_TESTS=ON $(CMAKE_$(1)) \
	  -DPOWERMEANS_MODULE=$(if $(filter clang,$(1)),ON,OFF) -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	MAKEFLAGS= $(BIN)/cmake --build $$(@D)
	@touch $$@

build/platforms/$(1)/%.passed: build/platforms/$(1)/built
	$(RUNNER_$(1)) $$(@D)/$$*$(SUFFIX_$(1))
	@touch $$@

build/platforms/$(1)/digests.txt: $(NATIVE_TEST_NAMES:%=build/platforms/$(1)/%.passed)
	$(RUNNER_$(1)) $$(@D)/digests$(SUFFIX_$(1)) > $$@
endef
$(foreach platform,$(PLATFORMS),$(eval $(call platform_rules,$(platform))))

# Wheels for macOS are built by Clang, so that its module is tested too.
build/platforms/clang/module.passed: build/platforms/clang/built | $(STAMPS)/installed $(STAMPS)/test
	POWERMEANS_TESTED_MODULE=$$(ls $(@D)/_native.*) \
	  $(BIN)/python -m pytest -q tests/test_native_rows.py tests/test_comparator.py
	@touch $@
