# make demo   the main job's table, from a bare machine (python3 with venv and headers, C++ compiler, make)
# make setup  the whole package
# make test   everything that checks itself
#
# Everything made here lies in .venv/, build/ and out/. Environment: PYTHON (python3), CXX (c++).

PYTHON ?= python3
export PYTHON
VENV := .venv
BUILD := build/release
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help

# What the installed package is made of; a folder's time changes when a file in it comes or goes.
SOURCES := $(shell find src include handlers python data cmake man tools/man.py docs/mpi.md \
             -not -path '*/__pycache__*' -not -name '*_test.cpp' 2>/dev/null) CMakeLists.txt pyproject.toml
CXX_FILES := $(shell find src include handlers packaging -name '*.[ch]' -o -name '*.[ch]pp')

.PHONY: help setup wheel demo figures validate picture page-picture test test-slow check-cpp check-python style lint format bench docs asan tsan fuzz clean

help:
	@echo 'make demo    set up .venv/, build layouts and cards, and print the table of thirteen applications (out/demo/)'
	@echo 'make figures the figures of the datatypes paper from fresh simulations (out/figures/)'
	@echo 'make validate  what the papers measured, tested; compares with tests/golden/validate.json'
	@echo 'make setup   set up .venv/ and build the whole package; the command is .venv/bin/spinloom'
	@echo 'make wheel   out/dist/: wheels of all and of layouts alone, for CPython 3.11 and glibc 2.28 and later, and the sources'
	@echo 'make picture make the pictures of docs/img/ again, from the demo and from studies'
	@echo 'make page-picture  docs/img/message-life.png and ranks-over-time.png again (chromium)'
	@echo 'make test    C++ tests, Python tests, lint'
	@echo 'make test-slow  what takes minutes: 10^7 cuts of datatypes, types against MPIs, hashes at optimisation levels'
	@echo 'make bench   speed on this machine: handler core, NIC engine, live handlers, SLMP, host unpack, layout copies, schedules (host time)'
	@echo 'make docs    these pages as a site in out/docs/: start with out/docs/index.html'
	@echo 'make lint    clang-format, clang-tidy and ruff, without changing anything'
	@echo 'make format  let clang-format and ruff change what they can'
	@echo 'make asan    the C++ tests under the address and undefined-behaviour sanitizers'
	@echo 'make tsan    what has threads, the C++ tests and real processes, under the thread sanitizer'
	@echo 'make fuzz    what parses bytes from outside against mutated inputs, under the sanitizers (FUZZ_SECONDS=60 each)'
	@echo 'make clean   remove build/ and out/ (.venv/ stays)'

setup: build/stamps/package

# The demo needs layouts and cards only; where nothing is set up, nothing else is built.
demo:
	@$(MAKE) --no-print-directory build/stamps/$$(test -e build/stamps/package && echo package || echo cards)
	$(BIN)/spinloom simulate --demo --out out/demo --force
	@$(BIN)/spinloom paper validate --last

figures: setup
	$(BIN)/spinloom paper figure all --out out/figures

validate: setup
	$(BIN)/spinloom paper validate --out out/validate --force

# The studies whose pictures docs/fpspin.md shows; handlers.svg and house.svg are drawn by hand.
STUDIES_SHOWN := ping slmp-types

picture: demo
	mkdir -p docs/img && cp out/demo/speedup.svg docs/img/speedup.svg
	$(BIN)/python tools/draw_mpi.py docs/img/mpi.svg
	for name in $(STUDIES_SHOWN); do \
	    $(BIN)/spinloom paper study $$name --out out/studies --quiet && cp out/studies/$$name.svg docs/img/ || exit 1; done

# docs/img/message-life.png: the page of docs/message-page.md at one moment, in the browser of its tests.
page-picture: build/stamps/package
	$(BIN)/spinloom simulate --type 'vector(128, 16, 32, double)' --strategies rw-cp --page out/life.html --force --json >/dev/null
	PYTHONPATH=tests $(BIN)/python tests/chromium.py out/life.html 'time=1000000' docs/img/message-life.png 1300 810
	$(BIN)/spinloom goal make halo_2d --ranks 16 --grid 4x4 --size 64KiB --repeat 5 --compute 20us..120us -o out/halo.spl
	$(BIN)/spinloom goal run out/halo.spl -L 1us --overhead 300ns -g 50ns -G 40ps/B --page out/halo.html >/dev/null
	PYTHONPATH=tests $(BIN)/python tests/chromium.py out/halo.html '' docs/img/ranks-over-time.png 1300 820

# clang-tidy works beside the Python tests, which often wait, at the lowest priority. It looks at what changed lately;
# make test-slow and make lint look at everything.
test: style check-cpp
	@nice -n 19 $(BIN)/python tools/tidy.py $(BUILD) --recent 20 >build/tidy.log 2>&1 & tidy=$$!; \
	$(BIN)/python tools/pytests.py || { kill $$tidy 2>/dev/null; exit 1; }; \
	echo 'clang-tidy ends its work'; wait $$tidy || { cat build/tidy.log; exit 1; }; tail -n 1 build/tidy.log
	@echo 'make test: C++ tests, Python tests and lint passed'

# Python compiles a module when something first imports it: a third of pip's time is saved.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
define environment
	@tools/need.sh build
	@begin=$$(date +%s); (set -x; $(PYTHON) -m venv $(VENV); $(PIP_INSTALL) $(1)); \
	echo "the environment took $$(($$(date +%s) - begin)) s, downloads of packages included"
	@touch $@
endef

# What builds and runs the demo, at the pinned versions.
CARDS_PACKAGES := click cmake matplotlib nanobind nanobind-backend ninja pyelftools rich scikit-build-core ziglang
$(VENV)/cards: requirements.txt
	$(call environment,--constraint requirements.txt $(CARDS_PACKAGES))

# The environment, again whenever the pinned list changes.
$(VENV)/stamp: requirements.txt
	$(call environment,-r requirements.txt)

# The engine, the handler images and the Python package; CMake's folder is kept, so that only what
# changed is compiled, and the C++ tests are built from the same objects. CMake is called first, because pip is silent
# while it compiles.
KEPT := --config-setting=build-dir=$(BUILD) --config-setting=cmake.args=-GNinja
PIP_HERE := $(PIP_INSTALL) --no-build-isolation --no-deps $(KEPT)
define build_target
	@mkdir -p $(@D)
	@$(BIN)/cmake -S . -B $(BUILD) -GNinja -DPython_EXECUTABLE=$(BIN)/python -DCMAKE_INSTALL_LIBDIR=lib \
	  -DSPINLOOM_PYTHON=ON -DSPINLOOM_HANDLERS=ON >build/configure.log || { cat build/configure.log; exit 1; }
	NINJA_STATUS='[%f/%t, %W left] ' $(BIN)/cmake --build $(BUILD) --target $(1)
endef
build/stamps/package: $(VENV)/stamp $(SOURCES)
	$(call build_target,spinloom_package)
	$(PIP_HERE) .
	@touch $@
build/stamps/cards: $(VENV)/cards $(SOURCES)
	$(call build_target,spinloom_cards_package)
	$(PIP_HERE) --config-setting=build.targets=spinloom_cards_package --config-setting=install.components=cards .
	@touch $@

# What people install: linked for an old glibc in a folder of its own (cmake/old_glibc.cmake); auditwheel tags it for the
# oldest glibc that has what was linked. WHEEL_GLIBC= is this machine's, with what is built already.
WHEEL_GLIBC ?= 2.28
WHEEL_BUILD := $(if $(WHEEL_GLIBC),build/wheel,$(BUILD))
wheel: build/stamps/wheel$(WHEEL_GLIBC)
build/stamps/wheel$(WHEEL_GLIBC): $(VENV)/stamp $(SOURCES) $(shell find packaging/glibc packaging/layout) tools/old_glibc.py README.md LICENSE
	@mkdir -p $(@D)
	rm -rf build/dist out/dist build/stamps/wheel*
	$(BIN)/python -m build --no-isolation --sdist --outdir out/dist .
	@$(BIN)/cmake -S . -B $(WHEEL_BUILD) -GNinja -DPython_EXECUTABLE=$(BIN)/python -DCMAKE_INSTALL_LIBDIR=lib \
	  -DSPINLOOM_PYTHON=ON -DSPINLOOM_HANDLERS=ON -DSPINLOOM_GLIBC=$(WHEEL_GLIBC) >build/configure.log || { cat build/configure.log; exit 1; }
	NINJA_STATUS='[%f/%t, %W left] ' $(BIN)/cmake --build $(WHEEL_BUILD) --target spinloom_package spinloom_layout_only
	$(BIN)/python -m build --no-isolation --wheel --outdir build/dist --config-setting=cmake.args=-GNinja \
	  --config-setting=build-dir=$(WHEEL_BUILD) --config-setting=cmake.define.SPINLOOM_GLIBC=$(WHEEL_GLIBC) .
	rm -rf build/layout
	@$(BIN)/cmake --install $(WHEEL_BUILD) --component layout_only --prefix build/layout --strip >>build/configure.log
	$(BIN)/python -m build --no-isolation --wheel --outdir build/dist build/layout
	for wheel in build/dist/*.whl; do $(BIN)/auditwheel repair --wheel-dir out/dist $$wheel; done
	@touch $@

build/stamps/need-test: tools/need.sh
	@tools/need.sh test
	@mkdir -p $(@D) && touch $@

check-cpp: build/stamps/need-test setup
	@$(BIN)/cmake -S . -B $(BUILD) -DSPINLOOM_TESTS=ON >build/configure.log || { cat build/configure.log; exit 1; }
	$(BIN)/cmake --build $(BUILD)
	SPINLOOM_PYTHON_EXECUTABLE=$(BIN)/python $(BIN)/ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2 --progress
	@$(BIN)/python tools/skips.py $(BUILD)

check-python: setup
	$(BIN)/python -m pytest -q

# 10^7 cuts of random datatypes that fit in memory and as many of those that do not; programs over every driver against
# the model of Portals 4; types against every MPI here.
test-slow: check-cpp
	SPINLOOM_TEST_CUTS=10000000 $(BIN)/ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2 -R Shards/Sparse
	SPINLOOM_TEST_CASES=40 $(BIN)/ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2 -R '^Layouts/.*Random'
	SPINLOOM_TEST_CASES=2000 $(BIN)/ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2 -R 'LivePrograms|SimPrograms'
	SPINLOOM_TEST_TYPES=10000 $(BIN)/python -m pytest -q tests/mpi/test_mpi.py
	SPINLOOM_TEST_MPIS=all $(BIN)/python -m pytest -q tests/mpi tests/record
	$(BIN)/python -m pytest -q -m slow
	$(BIN)/python tools/tidy.py $(BUILD)

docs: setup
	@$(BIN)/python tools/docs_site.py out/docs
	@echo 'the site begins with out/docs/index.html'

style: $(VENV)/stamp
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/ruff check python tests tools
	$(BIN)/ruff format --check python tests tools
	@$(BIN)/python tools/comments.py

lint: style check-cpp
	$(BIN)/python tools/tidy.py $(BUILD)

format: $(VENV)/stamp
	$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/ruff check --fix python tests tools
	$(BIN)/ruff format python tests tools

# Medians or best-of rounds of host time; nothing here is a test.
bench: setup
	@$(BIN)/cmake -S . -B $(BUILD) >build/configure.log || { cat build/configure.log; exit 1; }
	@$(BIN)/cmake --build $(BUILD) --target spinloom_hpu_bench spinloom_nic_bench spinloom_handler_bench spinloom_host_block_bench spinloom_commit_bench spinloom_goal_bench spinloom_put_bench spinloom_portals_bench spinloom_slmp_bench spinloom_port_bench spinloom_ethernet_bench spinloom_ethernet_wire_bench >build/bench.log \
	  || { cat build/bench.log; exit 1; }
	@$(BUILD)/bin/spinloom_hpu_bench
	@$(BUILD)/bin/spinloom_nic_bench
	@$(BUILD)/bin/spinloom_handler_bench
	@$(BUILD)/bin/spinloom_put_bench
	@$(BIN)/python tools/live_bench.py --program $(BUILD)/bin/spinloom_portals_bench --mpiexec $(BIN)/mpiexec.hydra
	@$(BUILD)/bin/spinloom_slmp_bench
	@$(BUILD)/bin/spinloom_host_block_bench
	@$(BUILD)/bin/spinloom_commit_bench
	@$(BUILD)/bin/spinloom_goal_bench
	@$(BUILD)/bin/spinloom_port_bench
	@$(BUILD)/bin/spinloom_ethernet_bench
	@$(BUILD)/bin/spinloom_ethernet_wire_bench
	@$(BIN)/spinloom bench layout --out out/bench

# Each target for FUZZ_SECONDS; an input that fails stays in build/fuzz/NAME.current.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/stamp build/stamps/need-test
	$(BIN)/cmake --preset fuzz
	$(BIN)/cmake --build --preset fuzz
	for name in text blob packet reliable frame pcap peer fabric schedule control slmp; do \
	  build/fuzz/bin/spinloom_fuzz_$$name --seconds $(FUZZ_SECONDS) --current build/fuzz/$$name.current; done

asan: $(VENV)/stamp build/stamps/need-test
	$(BIN)/cmake --preset asan-ubsan
	$(BIN)/cmake --build --preset asan-ubsan
	$(BIN)/ctest --preset asan-ubsan -j 2

# The programs of real processes are linked as the library is.
tsan: setup build/stamps/need-test
	$(BIN)/cmake --preset tsan
	$(BIN)/cmake --build --preset tsan
	build/tsan/bin/spinloom_memory_peer_test
	build/tsan/bin/spinloom_ethernet_slmp_test
	build/tsan/bin/spinloom_live_test
	SPINLOOM_TEST_LIVE=build/tsan/live SPINLOOM_TEST_CFLAGS=-fsanitize=thread $(BIN)/python -m pytest -q tests/live/test_live.py \
	  -k 'not calls_nothing and not nothing_is_left'  # live_sleeper.c looks at memory that a put changes, on purpose

clean:
	rm -rf build out
