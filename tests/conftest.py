"""The helpers that several tests share: the command line in this process, a stand-in for the engine."""

from __future__ import annotations

import json
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

import patience
from c_programs import NIC
from spinloom import cli
from spinloom.common import data

# Folders with tests that start ranks. Some look at what lies in /dev/shm afterwards, so jobs run one by one.
RANK_FOLDERS = {
    "clients",
    "gpu",
    "installed",
    "live",
    "mpi",
    "portals",
    "predict",
    "rails",
    "record",
    "rma",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With pytest -n, one worker runs all tests of RANK_FOLDERS.

    The tests of any other file share fixtures, and so a worker.
    """
    from xdist.scheduler import LoadFileScheduling

    class RanksTogether(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "ranks" if file.split("/")[1] in RANK_FOLDERS else file

    return RanksTogether(config, log)


settings.register_profile("spinloom", derandomize=True, deadline=None)
settings.load_profile("spinloom")
patience.default_signals()
os.environ.pop("COLUMNS", None)  # a worker of xdist sets it; a table is as wide in a test as in a pipe


# A checkout whose engine has its Python face must have built it: then a missing engine is a failure.
needs_engine = pytest.mark.skipif(
    not (Path(__file__).resolve().parents[1] / "src/app/python/module.cpp").exists(),
    reason="there is no src/app/python/module.cpp",
)


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def spinloom(capsys, monkeypatch):
    """spinloom("info", "nics", "--json") runs the command and returns exit code, stdout, stderr."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        captured = capsys.readouterr()
        return Ran(ended.value.code, captured.out, captured.err)

    return run


class FakeError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


FAKE_TYPES = (
    "hvector",
    "vector",
    "struct",
    "contig",
    "subarray",
    "hindexed",
    "idxblock",
    "resized",
    "indexed",
    "hidxblock",
)


def fake_check_type(text: str) -> None:
    if not text.startswith(("hvector", "vector", "struct", "contig")):
        raise FakeError("invalid", f"'{text}' is not a datatype")


TIMES_PS = {
    "host-mpitypes": 8_000_000,
    "host-warm": 4_000_000,
    "specialised": 1_000_000,
    "rw-cp": 2_000_000,
    "seek": 1_250_000,
}


def fake_run_cell(config: dict) -> dict:
    """Answers as the engine does; specialised refuses nested types, --inject makes every cell wrong."""
    if not config["type"].startswith(FAKE_TYPES):
        raise FakeError("invalid", f"'{config['type']}' is not a datatype")
    if config["strategy"] == "rdma-direct":
        raise FakeError("unsupported", "the data is not contiguous")
    if config["strategy"] == "specialised" and config["type"].startswith("struct"):
        raise FakeError("unsupported", "no specialised handler takes a struct")
    if config["inject"] != "none":
        raise FakeError("mismatch", "first difference at offset 4096, in block 7")
    on_nic = not config["strategy"].startswith("host")
    return {
        "time_ps": TIMES_PS[config["strategy"]] + config["profile"]["pcie.latency"],
        "size_bytes": 98304,
        "blocks_per_packet": 1.33,
        "handler_cycles_per_packet": 120.5 if on_nic else None,
        "nic_memory_bytes": 256 if on_nic else 0,
        "dma_queue_max": 17,
        "checked": True,
        "destination": b"the bytes in memory",
        "event_log": b"the events",
    }


def fake_claim_cell(config: dict) -> dict:
    """For claims: specialised reaches line rate in proportion to the clock; everything else is idle."""
    clock = config["profile"]["hpu.clock"]
    return {
        "size_bytes": 4 << 20,
        "packets": 2048,
        "blocks_per_packet": 32.0,
        "line_time_ps": 10**8,
        "time_ps": 10**8 * 8 * 10**8 // clock if "65536," in config["type"] else 10**9,
        "checked": True,
        "destination": b"",
        "event_log": b"",
    }


def no_programs(*_: object) -> None:
    raise FakeError("unsupported", "whole programs need the engine")


@pytest.fixture
def fake_engine(monkeypatch):
    """spinloom._core as a module whose run_cell a test may replace."""
    module = types.ModuleType("spinloom._core")
    module.SpinloomError = FakeError
    module.run_cell = fake_run_cell
    module.check_type = fake_check_type
    module.skeleton_recording = no_programs
    module.read_recording = no_programs
    module.collective_table1 = lambda ranks, size_bytes: []
    module.gpu_devices = list
    module.limits = dict.fromkeys(("hpu_count_max", "payload_bytes_max", "rank_count_max"), 1 << 16)
    monkeypatch.setitem(sys.modules, "spinloom._core", module)
    monkeypatch.setattr(data, "handler_images", lambda: {"seek": b"\x7fELF seek", "rw_cp": b"\x7fELF rw_cp"})
    return module


@pytest.fixture
def sim(spinloom):
    """sim(2, "program.c", "argument") is the run's exit code, its JSON, and what was said."""

    def run(ranks: int, *arguments: str, options: tuple[str, ...] = ()) -> tuple[int, dict, str]:
        ran = spinloom("sim", "-n", str(ranks), "--nic", NIC, "--json", *options, *map(str, arguments))
        return ran.code, json.loads(ran.out) if ran.out else {}, ran.err

    return run


@pytest.fixture
def source(tmp_path):
    """source("int main...") is a file with a program's main(), after the usual includes and helpers."""
    before = """
        #include <portals4.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        static int rank_of(void) { return atoi(getenv("SPINLOOM_RANK")); }
        static int size_of(void) { return atoi(getenv("SPINLOOM_SIZE")); }
        static int deep(int levels) {
          volatile char frame[1024];
          frame[levels] = (char)levels;
          return levels == 0 ? 0 : deep(levels - 1) + frame[levels];
        }
        static ptl_handle_ni_t begin(unsigned options) {
          ptl_handle_ni_t ni;
          if (PtlInit() != PTL_OK) abort();
          if (PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) abort();
          return ni;
        }
        """

    def write(text: str, name: str = "program.c") -> Path:
        path = tmp_path / name
        path.write_text(before + text, encoding="utf-8")
        return path

    return write
