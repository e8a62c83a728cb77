#!/bin/sh
# need.sh build|test - checks what the machine must have before `make demo` (build) or `make test`
# (test); names the first thing that is missing in one sentence and exits with 3.
#
# Environment: PYTHON and CXX name other programs than python3 and c++.
set -u
python=${PYTHON:-python3}
cxx=${CXX:-c++}

missing() {
  echo "spinloom: $1" >&2
  exit 3
}

command -v "$python" >/dev/null 2>&1 ||
  missing "there is no '$python'; install Python 3.11 or later (Debian: apt install python3 python3-venv python3-dev) or set PYTHON."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  missing "'$python' is $("$python" --version 2>&1), but 3.11 or later is needed; set PYTHON to a newer one."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  missing "'$python' cannot make virtual environments; install its venv package (Debian: apt install python3-venv)."
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$headers/Python.h" ] ||
  missing "the headers of '$python' are not in $headers; install them (Debian: apt install python3-dev)."
command -v "$cxx" >/dev/null 2>&1 ||
  missing "there is no C++ compiler '$cxx'; install one (Debian: apt install g++) or set CXX."
echo '#include <span>
#include <compare>
int first(std::span<int> values) { return values[0]; }' | "$cxx" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null ||
  missing "'$cxx' does not compile C++20; install g++ 11 or clang 14 or later, or set CXX."

[ "${1:-build}" = test ] || exit 0

have_googletest() {
  echo '#include <gtest/gtest.h>' | "$cxx" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}
if ! have_googletest && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "spinloom: installing GoogleTest (apt-get install libgtest-dev)" >&2
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libgtest-dev >&2
fi
# Not needed; without them, and without the library that comes with them, tests over fabrics are skipped.
have_fabric() {
  echo '#include <rdma/fabric.h>' | "$cxx" -fsyntax-only -x c++ - 2>/dev/null
}
if ! have_fabric && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "spinloom: installing libfabric's headers (apt-get install libfabric-dev)" >&2
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libfabric-dev >&2 || true
fi
command -v chromium >/dev/null 2>&1 ||
  echo "spinloom: without a browser (Debian: chromium) tests of the page of a message's life are skipped." >&2
have_fabric ||
  echo "spinloom: without libfabric's headers (Debian: libfabric-dev) tests over fabrics are skipped." >&2
have_googletest ||
  missing "the C++ tests need GoogleTest, which is not installed (Debian, as root: apt install libgtest-dev)."
