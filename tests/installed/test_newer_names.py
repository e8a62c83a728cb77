"""packaging/glibc/newer.c: names of newer C libraries that a wheel for an older one brings itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from c_library import ROOT

PROGRAM = r"""
#include <stdio.h>
unsigned long long __isoc23_strtoull(const char*, char**, int);
long __isoc23_strtol(const char*, char**, int);
int __isoc23_sscanf(const char*, const char*, ...);
int main(void) {
  int one, two;
  const int count = __isoc23_sscanf("7 8", "%d %d", &one, &two);
  printf("%llu %ld ", __isoc23_strtoull("18446744073709551615", 0, 10), __isoc23_strtol("-0x1f", 0, 0));
  printf("%d %d %d", count, one, two);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_numbers_in_texts_are_read_under_their_newer_names(tmp_path: Path):
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    options = ["-std=c11", "-O2", "-fPIC", "-Wall", "-Werror", "-fvisibility=hidden"]
    newer = tmp_path / "newer.o"
    subprocess.run(["cc", *options, "-c", ROOT / "packaging/glibc/newer.c", "-o", newer], check=True)
    program = tmp_path / "program"
    subprocess.run(["cc", "-std=c11", source, newer, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "18446744073709551615 -31 2 7 8"
