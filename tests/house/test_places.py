"""Places that other users of a machine know: each source that names one is listed, and what guards it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.compile(
    r"""gettempdir\(|temp_directory_path|TempDir\(\)|["']/tmp|/dev/shm|shm_open|sockaddr_un\b|AF_UNIX"""
    r"""|XDG_RUNTIME_DIR|XDG_CACHE_HOME|Path\.home|expanduser"""
)
COMMENT = re.compile(r"^\s*(//|#|\*)|^\s*r?\"\"\"")
KNOWN = {
    "bench/gpu_pair_bench.cpp": "a pair of sockets without a name",
    "bench/port_bench.cpp": "mkdtemp",
    "python/spinloom/accelerate/calibration.py": "the contract names the cache",
    "python/spinloom/accelerate/mpi_layer.py": "only this user's boards are removed",
    "python/spinloom/ethernet/nic_control.py": "the socket's owner and who listens are looked at",
    "python/spinloom/accelerate/peer_prices.py": "the contract names the cache",
    "python/spinloom/bench/mpi_windows.c": "the file is new; who joins looks at its owner",
    "python/spinloom/common/private.py": "private folders",
    "python/spinloom/verbs/nic_registers.py": "the help names the place",
    "src/base/private_folder.cpp": "private folders",
    "src/base/testing/folder.hpp": "mkdtemp",
    "src/memory/gpu/pair_ring.cpp": "the file is new; who joins looks at its owner",
    "src/ethernet/host/listener.cpp": "in a private folder",
    "src/ethernet/host/program.cpp": "in a private folder; who listens is looked at",
    "src/live/launch/rendezvous.cpp": "the kernel says who has sent a message; only this user's count",
    "src/mpi/meeting/board.cpp": "owner, mode and links are looked at",
    "src/ethernet/port/testing/file_wire.hpp": "mkdtemp",
    "src/ethernet/port/silence.cpp": "a claim without content; the error names its holder",
    "src/portals/interface/testing/pages.hpp": "mkstemp",
    "src/base/namespaces/program.cpp": "mkstemp",
    "src/predict/trace/testing/programs.hpp": "mkdtemp",
}


def test_every_place_that_others_know_is_looked_after():
    sources = [
        path
        for folder in ("src", "python/spinloom", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cpp", ".hpp", ".h", ".c", ".py") and not path.stem.endswith("_test")
    ]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if NAMES.search(line) and not COMMENT.match(line)
    }
    assert sorted(found) == sorted(KNOWN)
