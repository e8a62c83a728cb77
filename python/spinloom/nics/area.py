"""Area and power of a clustered NIC: an estimate from the SC'19 paper's synthesis, scaled part by part.

The paper (section 4.4) synthesised four clusters of eight cores with 1 MiB of L1 each and 8 MiB of L2 in a
22 nm process at 1 GHz: about 100 MGE, clusters 39 %, L2 59 %, system interconnect and buffers 2 %; in a
cluster L1 84 %, instruction cache 7 %, cores 6 %, DMA engine and interconnects 3 %; 1 GE is 0.199 um^2,
laid out at a density of 85 %; around 6 W under full load without I/O and PHY. Its related commercial NIC
has about 51 mm^2 of processors.

Contract: estimate() scales each part by what makes it large (bytes, cores, clusters), the interconnect by
all others, and power by gates and clock at the same voltage. For the paper's own configuration it gives the
paper's own numbers; for others it is an extrapolation that no synthesis has checked. Only profiles with
pulp cores have one.
"""

from __future__ import annotations

from dataclasses import dataclass

from spinloom.common.errors import Trouble
from spinloom.nics.profiles import Profile

TOTAL_MGE = 100.0
UM2_A_GATE, DENSITY = 0.199, 0.85
WATTS, CLOCK_HZ = 6.0, 10**9
CLUSTERS, CORES, L1_MIB, L2_MIB = 4, 32, 4.0, 8.0  # the paper's configuration
CLUSTERS_SHARE, L2_SHARE, SYSTEM_SHARE = 0.39, 0.59, 0.02
L1_SHARE, CACHE_SHARE, CORES_SHARE, DMA_SHARE = 0.84, 0.07, 0.06, 0.03  # shares of a cluster
L1_BANK_BYTES = 64 << 10  # section 4.1: 16 banks of 64 KiB; not pulp.l1_bank_bytes, a step
OTHER_NIC_MM2 = 51.0
MIB = 1 << 20


@dataclass(frozen=True)
class Part:
    name: str
    mge: float
    scaled_by: str  # the number that scaled it

    @property
    def mm2(self) -> float:
        return self.mge * UM2_A_GATE / DENSITY


@dataclass(frozen=True)
class Estimate:
    parts: tuple[Part, ...]
    clock: int

    @property
    def mge(self) -> float:
        return sum(part.mge for part in self.parts)

    @property
    def mm2(self) -> float:
        return sum(part.mm2 for part in self.parts)

    @property
    def watts(self) -> float:
        return WATTS * self.mge / TOTAL_MGE * self.clock / CLOCK_HZ


def estimate(profile: Profile) -> Estimate:
    """Raises Trouble('unsupported') for a NIC of other cores."""
    if profile["hpu.core"] != "pulp":
        raise Trouble(
            "unsupported",
            f"{profile.name} has {profile['hpu.core']} cores; the paper's figures are of clusters of RISC-V "
            "cores, such as those of pulp-22nm",
        )
    clusters, cores = profile["pulp.clusters"], profile["hpu.count"]
    l1_mib = clusters * profile["pulp.l1_banks"] * L1_BANK_BYTES / MIB
    l2_mib = (profile["memory.state_bytes"] + profile["memory.packet_buffer_bytes"]) / MIB
    in_clusters = TOTAL_MGE * CLUSTERS_SHARE
    parts = (
        Part("cores", in_clusters * CORES_SHARE * cores / CORES, f"{cores} cores"),
        Part("L1", in_clusters * L1_SHARE * l1_mib / L1_MIB, f"{l1_mib:g} MiB"),
        Part("instruction caches", in_clusters * CACHE_SHARE * clusters / CLUSTERS, f"{clusters} clusters"),
        Part("DMA engines", in_clusters * DMA_SHARE * clusters / CLUSTERS, f"{clusters} clusters"),
        Part("L2", TOTAL_MGE * L2_SHARE * l2_mib / L2_MIB, f"{l2_mib:g} MiB"),
    )
    rest = sum(part.mge for part in parts) * SYSTEM_SHARE / (1 - SYSTEM_SHARE)
    return Estimate((*parts, Part("interconnect, buffers", rest, "all other parts")), profile["hpu.clock"])
