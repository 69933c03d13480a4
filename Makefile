# What people and CI call; CMake does the work. `make` alone lists the targets.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
CTEST = ctest --output-on-failure --parallel $(JOBS) --label-exclude gpu

# The C header is laid out by hand: its comments are its manual.
CXX_FILES = $(shell git ls-files '*.cpp' '*.hpp' '*.inc')

.DEFAULT_GOAL := help
.PHONY: help install-deps install-lint configure build demo test test-python reference format format-check \
        tidy asan tsan fuzz bench clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 22

install-deps: ## packages to build and test (root or sudo)
	@scripts/install-deps

install-lint:
	@scripts/install-deps --lint

configure: install-deps
	@cmake --preset release --log-level=WARNING

build: configure ## everything, into build/release
	cmake --build --preset release --parallel $(JOBS)

demo: configure ## build the program and show it with a real checkpoint
	cmake --build --preset release --parallel $(JOBS) --target weightcache-cli
	@scripts/demo.sh

test: build ## build and run every test that needs no GPU
	$(CTEST) --test-dir build/release

test-python: install-deps ## build the wheel, install it in a fresh virtual environment, test it there
	@scripts/test-python

reference: ## the Python package's reference, from its docstrings, into build/reference
	@test -x build/python/venv/bin/pdoc || { echo "make test-python first: it has pdoc" >&2; exit 1; }
	build/python/venv/bin/pdoc --output-directory build/reference weightcache

format: install-lint ## clang-format
	clang-format-19 -i $(CXX_FILES)

format-check: install-lint
	clang-format-19 --dry-run --Werror $(CXX_FILES)

tidy: install-lint build ## clang-tidy, and the rules of the house
	run-clang-tidy-19 -quiet -j $(JOBS) -p build/release '$(CURDIR)/(src|bench|examples|tests)/.*'
	$(CTEST) --test-dir build/release --label-regex tidy

asan tsan: install-lint ## the tests under address and undefined-behaviour, or thread, sanitizers
	cmake --preset $@
	cmake --build --preset $@ --parallel $(JOBS)
	$(CTEST) --test-dir build/$@

fuzz: install-lint ## each fuzz target for FUZZ_SECONDS (60), from the kept corpus
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS)
	scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

bench: build ## the figures of docs/PERFORMANCE.md that this machine can make
	scripts/bench.sh build/release

clean: ## remove what was built
	rm -rf build dist
