#!/bin/sh
# Builds the GPU floor alone and runs its tests and its benchmark on the GPU of this machine.
#
#   tools/gpu_try.sh [BUILD]       a folder for the build (build/gpu_try); reports lie in $OUT, else in BUILD
#   tools/gpu_try.sh --only-build [BUILD]    for another machine that has no GoogleTest: take BUILD there
set -eu
cd "$(dirname "$0")/.."
only_build=no
if [ "${1:-}" = --only-build ]; then only_build=yes; shift; fi
build=${1:-build/gpu_try}
out=${OUT:-$build}
mkdir -p "$build" "$out"
if [ ! -x "$build/spinloom_gpu_pair_bench" ]; then
  # Where there is no GoogleTest, the benchmarks alone: they compare bytes, too.
  tests=ON
  benches="spinloom_gpu_bench spinloom_gpu_pair_bench"
  targets="$benches spinloom_memory_gpu_test"
  if [ ! -e /usr/include/gtest/gtest.h ]; then tests=OFF; targets=$benches; fi
  cmake -S . -B "$build/tree" -GNinja -DSPINLOOM_TESTS=$tests -DSPINLOOM_CUDA_ARCHITECTURES="${ARCHITECTURES:-90}" \
    >"$out/configure.log" 2>&1 || { tail -20 "$out/configure.log"; exit 1; }
  ninja -C "$build/tree" $targets >"$out/build.log" 2>&1 ||
    { tail -40 "$out/build.log"; exit 1; }
  for target in $targets; do cp "$build/tree/bin/$target" "$build"; done
fi
if [ "$only_build" = yes ]; then exit 0; fi
nvidia-smi --query-gpu=name,driver_version,clocks.max.mem,clocks.max.sm --format=csv || true
status=0
if [ -x "$build/spinloom_memory_gpu_test" ]; then
  timeout 180 "$build/spinloom_memory_gpu_test" --gtest_brief=1 >"$out/test.log" 2>&1 || status=$?
  tail -60 "$out/test.log"
  echo "tests: exit $status"
fi
timeout 60 "$build/spinloom_gpu_pair_bench" 2>&1 | tee "$out/pairs.csv"
timeout 120 "$build/spinloom_gpu_bench" 2>&1 | tee "$out/bench.csv"
exit "$status"
