"""The strategies that `spinloom simulate` compares, in the order of its tables."""

from __future__ import annotations

from collections.abc import Iterable

from spinloom.common.errors import Trouble, nearest

# The speed-up of a received datatype is the time of the baseline over that of a strategy. The baseline of
# contiguous data, which nobody would unpack, is DIRECT.
BASELINE = "host-mpitypes"
DIRECT = "rdma-direct"

STRATEGIES = {
    BASELINE: "RDMA, then the CPU unpacks with MPITypes (the papers' baseline)",
    "host-best": "RDMA, then the CPU unpacks with our copy kernels",
    "host-warm": "the same with message and array in the CPU's last-level cache, as far as they fit",
    DIRECT: "contiguous data only: RDMA puts it in its place; then this is the baseline",
    "iovec": "Portals 4 with scatter lists of 32 entries, refilled over PCIe",
    "specialised": "a handler for each family of layouts (vector, indexed-block, indexed, struct)",
    "hpu-local": "MPITypes segments, one a virtual HPU, caught up as packets come",
    "ro-cp": "MPITypes with read-only checkpoints, copied before use",
    "rw-cp": "MPITypes with checkpoints that handlers progress in place",
    "seek": "no checkpoints and no state: each packet seeks in the compact program",
}

DEFAULT = (BASELINE, "host-warm", "specialised", "rw-cp", "seek")


def parse(text: str) -> list[str]:
    """'rw-cp,seek' as a list in table order, with the baselines. 'all' is every strategy."""
    return with_baselines([name.strip() for name in text.split(",") if name.strip()])


def with_baselines(names: Iterable[str]) -> list[str]:
    """Returns the names in table order, with the baselines. Raises Trouble for a name that is none."""
    names = list(names) if isinstance(names, Iterable) else [names]
    for name in names:
        if not isinstance(name, str):
            raise Trouble("invalid", f"a strategy is named by text, not by {name!r}")
    if "all" in names:
        return list(STRATEGIES)
    for name in names:
        if name not in STRATEGIES:
            raise Trouble("invalid", f"there is no strategy '{name}'{nearest(name, STRATEGIES)}")
    if not names:
        raise Trouble("invalid", f"no strategy is named; there are: {', '.join(STRATEGIES)}")
    return [name for name in STRATEGIES if name in names or name in (BASELINE, DIRECT)]
