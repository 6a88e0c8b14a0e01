# The front door: looks for what is needed, installs it where it may, and calls CMake, which only builds what it is told.
# `make help` lists the targets. SPDX-License-Identifier: Apache-2.0
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
WERROR ?= OFF
FUZZ_SECONDS ?= 10
# test-python runs with this one; it needs pytest, and torch or most of it is skipped.
PYTHON ?= python3
CTEST = ctest --output-on-failure -j $$(nproc)
# CUDA=OFF builds without the GPU rows; their kernels take some minutes. The checks that build anew leave them out.
CUDA ?= $(if $(shell scripts/cuda_compiler),ON,OFF)
CONFIGURE_HOST = cmake -S . -G Ninja -DFP8R_WERROR=$(WERROR)
CONFIGURE = $(CONFIGURE_HOST) $(if $(filter ON,$(CUDA)),-DFP8R_CUDA=ON -DCMAKE_CUDA_COMPILER=$(shell scripts/cuda_compiler),-DFP8R_CUDA=OFF)

# Without cmocka everything but the tests is built.
tests_if_possible = $$(pkg-config --exists cmocka && echo ON || echo OFF)

.PHONY: build demo test test-full test-gpu test-python bench bench-gpu bench-gpu-here install check-asan check-tsan check-includes \
	check-abi abi-baseline fuzz \
	fuzz-coverage fuzz-planted test-aarch64 clean help

build:
	@scripts/packages build
	$(CONFIGURE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DFP8R_TESTS=$(tests_if_possible)
	cmake --build $(BUILD)

demo: build
	scripts/demo $(BUILD)/tool/fp8route $(BUILD)/demo

# Everything that is due on every change.
test:
	@scripts/packages build test
	$(CONFIGURE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DFP8R_TESTS=ON
	cmake --build $(BUILD)
	cd $(BUILD) && $(CTEST) -LE full

# The same and the slow parts.
test-full: test
	cd $(BUILD) && $(CTEST) -L full

# What runs on a GPU; each program says so where there is none.
test-gpu:
	@scripts/packages build test
	$(CONFIGURE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DFP8R_CUDA=ON -DFP8R_TESTS=ON
	cmake --build $(BUILD)
	cd $(BUILD) && ctest --output-on-failure -L gpu

# The Python package. A test that needs what is not here (torch, a GPU) says so.
test-python: build
	FP8ROUTE_PYTHON=$(PYTHON) scripts/test_python

bench: build
	cmake --build $(BUILD) --target bench

# Every bar of the GPU backends, beside torch and the floor. ARGS: --only BAR,... for a shard, see bench/gpu/bench_gpu.py.
bench-gpu:
	@if ! nvidia-smi -L >/dev/null 2>&1; then echo 'bench-gpu: skipped: there is no GPU here'; else $(MAKE) --no-print-directory bench-gpu-here; fi

bench-gpu-here:
	@scripts/packages build
	$(CONFIGURE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DFP8R_CUDA=ON -DFP8R_TESTS=$(tests_if_possible)
	cmake --build $(BUILD)
	mkdir -p bench/results
	python3 bench/gpu/bench_gpu.py --library $(BUILD)/src/libfp8route.so --kernels $(BUILD)/bench/libbench_gpu.so \
	    --program $(BUILD)/tool/fp8route --first-call $(BUILD)/bench/first_call --bench-cpu $(BUILD)/bench/bench_cpu \
	    --results bench/results $(ARGS)

install:
	@scripts/packages build
	$(CONFIGURE) -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DFP8R_TESTS=$(tests_if_possible)
	cmake --build $(BUILD)
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)

# Address and undefined-behaviour sanitizers. Tests that measure time or build other programs are left out.
check-asan:
	@scripts/packages build test
	$(CONFIGURE_HOST) -B build-asan -DFP8R_SANITIZE=address,undefined
	cmake --build build-asan
	cd build-asan && $(CTEST) -LE 'full|timing|script'

# The thread sanitizer, on the tests in which threads meet.
check-tsan:
	@scripts/packages build test
	$(CONFIGURE_HOST) -B build-tsan -DFP8R_SANITIZE=thread
	cmake --build build-tsan
	cd build-tsan && $(CTEST) -L threads

check-includes:
	scripts/check_includes .

check-abi: build
	scripts/check_abi $(BUILD)

abi-baseline: build
	scripts/check_abi --write $(BUILD)

# Replays every corpus, then looks for new inputs for FUZZ_SECONDS a target.
fuzz:
	@scripts/packages build fuzz
	scripts/fuzz run $(FUZZ_SECONDS)

fuzz-coverage:
	@scripts/packages build test fuzz
	scripts/fuzz coverage

fuzz-planted:
	@scripts/packages build fuzz
	scripts/fuzz planted

# Cross-built for aarch64, run under emulation; skipped by name where the tools cannot be had.
test-aarch64:
	scripts/test_aarch64

clean:
	cmake -E rm -rf $(BUILD) build-asan build-tsan build-fuzz build-coverage build-planted build-aarch64

help:
	@echo 'make               build the library and the program into $(BUILD)/'
	@echo 'make demo          build, tune a few real layers, show what is chosen and why, draw a report'
	@echo 'make test          build and run the tests;  make test-full: the slow ones, too'
	@echo 'make test-gpu      the tests that need a GPU (nvcc 13 or later)'
	@echo 'make test-python   the Python package, with PYTHON=python3'
	@echo 'make bench         measure every bar of the CPU backends'
	@echo 'make bench-gpu     every bar of the GPU backends, beside torch where it is there; ARGS="--only BAR,..." for a part'
	@echo 'make install       PREFIX=/usr/local DESTDIR='
	@echo 'make check-asan    tests under the address and undefined-behaviour sanitizers'
	@echo 'make check-tsan    threaded tests under the thread sanitizer'
	@echo 'make check-abi     compare the exported interface with the committed one'
	@echo 'make fuzz          replay the corpora, then $(FUZZ_SECONDS) s of fuzzing a parser'
	@echo 'make fuzz-coverage line coverage of each parser;  make fuzz-planted: are planted bugs found?'
	@echo 'make test-aarch64  cross-build for aarch64, test under emulation'
	@echo 'make clean         remove the build folders'
