"""The strategies that `spinloom ddt` compares, in the order of its tables."""

from __future__ import annotations

from spinloom.errors import Trouble, nearest

BASELINE = "host-mpitypes"  # every speed-up is this strategy's time over another's

STRATEGIES = {
    BASELINE: "RDMA, then the CPU unpacks with MPITypes (the papers' baseline)",
    "host-best": "RDMA, then the CPU unpacks with our copy kernels",
    "iovec": "Portals 4 with scatter lists of 32 entries, refilled over PCIe",
    "specialised": "a handler for each family of layouts (vector, indexed-block, indexed, struct)",
    "hpu-local": "MPITypes segments, one a virtual HPU, caught up as packets come",
    "ro-cp": "MPITypes with read-only checkpoints, copied before use",
    "rw-cp": "MPITypes with checkpoints that handlers progress in place",
    "seek": "no checkpoints and no state: each packet seeks in the compact program",
}

DEFAULT = (BASELINE, "specialised", "rw-cp", "seek")


def parse(text: str) -> list[str]:
    """'rw-cp,seek' as a list in table order, the baseline always first. 'all' is every strategy."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if "all" in names:
        return list(STRATEGIES)
    for name in names:
        if name not in STRATEGIES:
            raise Trouble("invalid", f"there is no strategy '{name}'{nearest(name, STRATEGIES)}")
    if not names:
        raise Trouble("invalid", f"--strategies is empty; there are: {', '.join(STRATEGIES)}")
    return [name for name in STRATEGIES if name in names or name == BASELINE]
