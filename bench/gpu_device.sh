#!/bin/bash
# gpu_device.sh - builds the Python package with its kernels on a machine with a GPU, runs the tests that need one and
# the bench; writes CSV, pictures and logs to $OUT (out/gpu). Needs no network: python3 with numpy, nanobind, click,
# rich and pytest, CuPy or PyTorch, CMake, ninja, a C++20 compiler, CUDA's nvcc or NVRTC.
#
#   bench/gpu_device.sh                 everything
#   SECONDS_OF_BENCH=60 bench/gpu_device.sh
#
# Wheels in .whl/ are installed for this run first, for packages that are missing or old. The sources are copied to $WORK
# (build/gpu_device) and built there, because the copy leaves out -Werror: another compiler has warnings of its own.
set -u -o pipefail
OUT=${OUT:-$PWD/out/gpu}
WORK=${WORK:-$PWD/build/gpu_device}
JOBS=${JOBS:-$(nproc)}
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT" "$WORK/tree"
begin=$SECONDS
say() { echo "[$((SECONDS - begin)) s] $*" | tee -a "$OUT/run.log"; }

if compgen -G '.whl/*.whl' >/dev/null; then
  "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$WORK/wheels" .whl/*.whl &&
    export PYTHONPATH=$WORK/wheels
fi
for part in numpy nanobind click rich pytest; do
  "$PYTHON" -c "import $part" 2>/dev/null || say "missing: the Python package $part"
done
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | tee -a "$OUT/run.log"

# ---- build: the engine's Python module, and the layer for MPI ----
tar cf - CMakeLists.txt cmake src include python data tests examples bench tools man docs LICENSE \
  2>/dev/null | tar xf - -C "$WORK/tree"
sed -i 's/ -Werror)/)/' "$WORK/tree/cmake/floors.cmake"
"${CMAKE:-cmake}" -S "$WORK/tree" -B "$WORK/build" -GNinja -DCMAKE_BUILD_TYPE=Release -DSPINLOOM_PYTHON=ON \
  -DSPINLOOM_CUDA_ARCHITECTURES="${ARCHITECTURES:-90}" \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" >"$OUT/configure.log" 2>&1 ||
  { say "CMake failed"; tail -20 "$OUT/configure.log"; exit 3; }
"${CMAKE:-cmake}" --build "$WORK/build" --target spinloom_core spinloom_mpi_library spinloom_gpu_bench spinloom_gpu_pair_bench -j "$JOBS" >"$OUT/build.log" 2>&1 ||
  { say "the build failed"; grep -B2 -A12 -m3 'error' "$OUT/build.log"; exit 3; }
site=$WORK/site
rm -rf "$site" && mkdir -p "$site"
cp -r "$WORK/tree/python/spinloom" "$site/spinloom"
mkdir -p "$site/spinloom/data"
for folder in nics hosts workloads scenarios; do cp -r "$WORK/tree/data/$folder" "$site/spinloom/data/$folder"; done
find "$WORK/build" -name '_core*.so' -exec cp {} "$site/spinloom/" \;
mkdir -p "$site/spinloom/lib" && cp "$WORK/build/live/libspinloom_mpi.so" "$site/spinloom/lib/"
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} NO_COLOR=1 PYTHONUNBUFFERED=1 COLUMNS=200
rm -f "$OUT/configure.log" "$OUT/build.log" # of a build that failed they stay
say "built"

# ---- what is here, the tests on the GPU ----
"$PYTHON" -c 'from spinloom import core; print(core.load().gpu_why_not() or core.load().gpu_devices())' 2>&1 |
  tee -a "$OUT/run.log"
(cd "$WORK/tree" && timeout "${SECONDS_OF_TESTS:-90}" "$PYTHON" -m pytest -q -p no:cacheprovider tests/gpu/test_on_gpu.py tests/gpu/test_gpu_pair.py) \
  >"$OUT/tests.log" 2>&1
say "tests: exit $? - $(tail -1 "$OUT/tests.log")"
grep -E '^(FAILED|ERROR|SKIPPED)|^E  ' "$OUT/tests.log" | head -40

# ---- MPI programs with arrays of the GPU: mpi4py's own tests of messages and collectives, one launcher after another ----
# MPI4PY_TESTS is the folder test/ of mpi4py's sources, LAUNCHERS what starts two ranks.
run_mpi() {  # LAUNCHER LIMIT_S PROGRAM...
  local launcher=$1 limit=$2
  shift 2
  # shellcheck disable=SC2086  # a launcher is a command and its options
  timeout "$limit" "$PYTHON" -m spinloom.cli run -- $launcher -n 2 "$PYTHON" "$@"
}
if [ -d "${MPI4PY_TESTS:-}" ]; then
  while read -r launcher; do
    log=$OUT/mpi4py-$(echo "$launcher" | tr -c 'A-Za-z0-9\n' _ | tail -c 40).log
    (cd "$MPI4PY_TESTS" && run_mpi "$launcher" "${SECONDS_OF_MPI:-100}" main.py -q test_p2p_buf test_p2p_buf_matched \
      test_cco_buf test_cco_vec test_cco_nb_buf test_cco_nb_vec test_cco_pr_buf test_cco_ngh_buf test_pack) >"$log" 2>&1 </dev/null
    say "mpi4py's tests, $launcher: exit $? - $(grep -E '^(Ran|OK|FAILED)' "$log" | sort | uniq | tr '\n' ' ')"
    grep -E '^(FAIL|ERROR):' "$log" | sort | uniq -c | head -20
    for way in on host; do # from device to device where that is open, and by the host alone
      say "messages of GPU arrays, $launcher, SPINLOOM_MPI_GPU=$way"
      SPINLOOM_MPI_GPU=$way run_mpi "$launcher" 60 "$WORK/tree/bench/gpu_mpi.py" --seconds 12 2>&1 </dev/null |
        tee "${log%.log}-$way.csv"
    done
  done <<<"${LAUNCHERS:-mpiexec}"
fi

# ---- numbers ----
timeout 60 "$PYTHON" "$WORK/tree/examples/gpu/stencil.py" --size 1048 8192 --ranks 4 --csv "$OUT/stencil.csv" \
  2>&1 | tee -a "$OUT/run.log"
say "stencil: exit $?"
timeout 100 "$WORK/build/bin/spinloom_gpu_bench" >"$OUT/kernels.csv" 2>&1
say "kernels: exit $?"
timeout 60 "$WORK/build/bin/spinloom_gpu_pair_bench" 2>&1 | tee "$OUT/pair.csv"
say "two processes: exit $?"
timeout 300 "$PYTHON" -m spinloom.cli bench gpu --seconds "${SECONDS_OF_BENCH:-100}" --out "$OUT" >"$OUT/bench.log" 2>&1
say "bench: exit $?"
tail -60 "$OUT/bench.log"
