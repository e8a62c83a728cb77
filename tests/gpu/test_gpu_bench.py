"""`spinloom bench gpu`, explain's and doctor's rows of GPUs, without a GPU."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import needs_engine
from patience import seconds
from spinloom.bench import gpu_measure, gpu_report, gpu_rows, gpu_ways
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.layout import Layout, cuda

pytestmark = needs_engine
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with a libcuda.so.1 over memory of the host."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", folder / "libcuda.so.1", HERE / "fake_cuda.c"], check=True
    )
    return folder


def bench(driver, *arguments):
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(driver),
        "PYTHONPATH": str(HERE / "fakes"),
        "SPINLOOM_GPU": "shim",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "spinloom.cli", "bench", "gpu", *arguments],
        env=environment, capture_output=True, text=True, timeout=seconds(120),
    )  # fmt: skip


def test_rows_have_names_of_their_own_and_the_bytes_they_say():
    rows = gpu_rows.rows()
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        if row.total_bytes > 1 << 20:
            continue
        made = [Layout(text) for text in row.types]
        assert sum(one.size for one in made) == row.total_bytes
        for one in made:
            assert row.origin_bytes + one.true_lb >= 0
            assert row.origin_bytes + one.true_lb + one.true_extent <= row.span_bytes
    assert {row.family for row in rows} == {"vector", "transpose", "list", "halo", "workload"}
    assert max(row.total_bytes for row in rows) == 1 << 30
    assert {row.name for row in gpu_rows.rows(quick=True)} < {row.name for row in rows}


def items_of(shape):
    """The items of a shape in packed order, from its definition."""
    if isinstance(shape, gpu_ways.IndexList):
        return shape.items.tolist()
    places = [shape.first]
    for length, stride in zip(shape.shape, shape.strides, strict=True):
        places = [place + step * stride for place in places for step in range(length)]
    return places


def test_what_others_move_are_the_blocks_of_the_type():
    for row in gpu_rows.rows():
        if row.total_bytes > 1 << 16:
            continue
        for number, text in enumerate(row.types):
            shape = gpu_ways.shape_of(row, number)
            expected = [
                (row.origin_bytes + place + byte) // shape.item_bytes
                for place, length in Layout(text).blocks(1 << 17)
                for byte in range(0, length, shape.item_bytes)
            ]
            assert items_of(shape) == expected, row.name
            if isinstance(shape, gpu_ways.IndexList):
                wide = [place + k for place in shape.places.tolist() for k in range(shape.width)]
                assert wide == expected


def test_a_bench_checks_bytes_and_writes_its_files(driver, tmp_path):
    out = tmp_path / "out"
    chosen = (
        "vector 64 B, 4 KiB",
        "halo of 26, 16^3",
        "transpose double 250 x 131",
        "list shuffled double x3, 64 KiB",
        "LAMMPS_atomic 2 procs",
        "MILC 8^4",
    )
    for only in chosen:
        done = bench(driver, "--only", only, "--out", str(out), "--json")
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)
        assert row["row"].startswith(only)
        assert row["pack_us"] > 0
        assert row["unpack_us"] > 0
        assert row["kernel"]
        assert row["cupy_pack_us"] > 0  # compared with the processor's bytes before
        assert row["cupy_unpack_us"] > 0
        assert ("hand_unpack_us" in row) == (row["messages"] == 1)
        assert "naive_us" not in row  # there is no driver's copy to compare with
    text = (out / "gpu.csv").read_text()
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert any("device: a test's driver" in line for line in head)
    assert any("no times of a GPU" in line for line in head)
    (row,) = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    assert row["family"] == "workload"
    assert (out / "gpu.svg").exists()
    assert (out / "gpu.png").exists()


def test_wrong_bytes_have_no_numbers(driver, monkeypatch):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")
    monkeypatch.setattr(cuda, "LIBRARY", str(driver / "libcuda.so.1"))
    cuda.driver.cache_clear()
    (row,) = [row for row in gpu_rows.rows() if row.name == "vector 64 B, 4 KiB"]
    session = gpu_measure.Session([row], 3)
    try:
        memory, packed = (
            gpu_ways.Raw(session.memory, row.span_bytes),
            gpu_ways.Raw(session.packed, row.total_bytes),
        )
        expected = np.frombuffer(Layout(row.types[0]).pack(session.pattern[: row.span_bytes]), "u1")
        right, _, _ = session.ours(row, memory, packed)
        for operation in gpu_measure.OPERATIONS:
            session.check(row, right, operation, expected)
            lazy = gpu_ways.Way("lazy", {operation: lambda: None})
            with pytest.raises(Trouble, match=f"lazy {operation}s other bytes"):
                session.check(row, lazy, operation, expected)
        # One byte in a gap is found, too.
        spoils = gpu_ways.Way(
            "spoils",
            {"unpack": lambda: (right.calls["unpack"](), session.driver.fill(session.memory + 64, 0, 1, 0))},
        )
        with pytest.raises(Trouble, match="spoils unpacks other bytes"):
            session.check(row, spoils, "unpack", expected)
    finally:
        session.close()
        cuda.driver.cache_clear()


def test_a_bench_without_a_gpu_says_so(spinloom, monkeypatch):
    if core.load().gpu_devices():
        pytest.skip("there is a GPU here")
    monkeypatch.delenv("SPINLOOM_GPU", raising=False)
    ran = spinloom("bench", "gpu", "--quick")
    assert ran.code == 3
    assert "measures a GPU:" in ran.err


def test_goals_are_of_the_worst_row():
    row = {"family": "vector", "bytes": 64 << 20, "row": "v", "launch_us": 2.0}
    rows = [
        {
            **row,
            "block_bytes": 64,
            "pack_of_memcpy": 0.9,
            "unpack_of_memcpy": 0.7,
            "cupy_pack_over_ours": 2.0,
        },
        {**row, "block_bytes": 16, "pack_of_memcpy": 0.6, "unpack_of_memcpy": 0.5, "launch_us": 6.0},
    ]
    found = {one["goal"]: (one["reached"], one["met"]) for one in gpu_report.goals(rows)}
    assert list(found.values()) == [(0.7, False), (0.5, True), (2.0, True), (6.0, False)]


def test_explain_has_a_row_of_a_gpu_without_one(spinloom):
    # 512 blocks of 128 B in 256 B: 4 sectors of 32 B each, and as many packed: 131,072 B touched.
    known = json.loads(
        spinloom("explain", "vector(512, 16, 32, double)", "--strategies", "none", "--json").out
    )
    ways = {way["path"]: way for way in known["ways"] if way["kind"] == "gpu"}
    assert list(ways) == ["gpu pack", "gpu unpack"]
    assert "one launch, 131,072 B in sectors of 32 B" in ways["gpu pack"]["about"]
    if not core.load().gpu_devices():
        assert ways["gpu pack"]["time_ps"] == round(131072 / 3.35e12 * 1e12)
        assert "H100 SXM (data sheet)" in ways["gpu pack"]["about"]
    twice = json.loads(spinloom("explain", "hvector(2, 1, 4B, double)", "--strategies", "none", "--json").out)
    assert [way["time_ps"] is None for way in twice["ways"] if way["kind"] == "gpu"] == [False, True]
    assert "GPU's memory" in spinloom("explain", "vector(4, 1, 2, int)", "--strategies", "none").out


def test_doctor_says_what_a_gpu_would_bring(spinloom):
    rows = {row["part"]: row for row in json.loads(spinloom("doctor", "--json").out)}
    assert "bench gpu" in rows["GPU"]["brings"]
    assert bool(rows["GPU"]["found"]) == bool(core.load().gpu_devices())
