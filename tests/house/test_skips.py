"""tools/skips.py: skipped C++ tests are counted by reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/skips.py"


def test_reasons_are_counted():
    spec = importlib.util.spec_from_file_location("skips", TOOL)
    skips = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(skips)
    log = """[ RUN      ] Qemu.Programs
src/nic/hpu/qemu_test.cpp:20: Skipped
qemu-riscv32 is not installed

[  SKIPPED ] Qemu.Programs (0 ms)
src/nic/hpu/qemu_test.cpp:44: Skipped
qemu-riscv32 is not installed
[       OK ] Core.Runs (0 ms)
"""
    assert skips.reasons(log) == {"qemu-riscv32 is not installed": 2}
