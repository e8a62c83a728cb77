"""Words for rates of PCIe and of links: 'gen4x16', '200GbE', 'HDR'.

Contract: pcie_rate() and link_rate() read such a word, or what units.parse_rate() reads, as exact picoseconds
per byte; they raise ValueError with the accepted forms. GENERATIONS and LINKS are the whole tables;
docs/formats/profile.md shows them. Rates are of one direction. What packets of PCIe and frames of a link need
for themselves is not taken off: a profile has fields of its own for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from spinloom.common import units

PCI_SIG = "PCI-SIG, PCI Express Base Specification"
ETHERNET = "IEEE 802.3: bits of a frame, after the line code"
INFINIBAND = "InfiniBand Architecture Specification, 4 lanes, after the line code"
SLINGSHOT = "De Sensi et al., An In-Depth Analysis of the Slingshot Interconnect, SC'20"


@dataclass(frozen=True)
class Generation:
    """A generation of PCIe: what a lane carries, and which part of that is data."""

    transfers: Fraction  # 10^9 a second, a bit each
    data: Fraction
    encoding: str
    source: str


GENERATIONS = {
    1: Generation(Fraction("2.5"), Fraction(8, 10), "8b/10b", f"{PCI_SIG} 1.1"),
    2: Generation(Fraction(5), Fraction(8, 10), "8b/10b", f"{PCI_SIG} 2.0"),
    3: Generation(Fraction(8), Fraction(128, 130), "128b/130b", f"{PCI_SIG} 3.0"),
    4: Generation(Fraction(16), Fraction(128, 130), "128b/130b", f"{PCI_SIG} 4.0"),
    5: Generation(Fraction(32), Fraction(128, 130), "128b/130b", f"{PCI_SIG} 5.0"),
    6: Generation(Fraction(64), Fraction(236, 256), "1b/1b; 236 of 256 B of a flit", f"{PCI_SIG} 6.0"),
}
LANES = (1, 2, 4, 8, 16, 32)
GENERATION = re.compile(r"(?:pcie)?gen(\d+)x(\d+)")


@dataclass(frozen=True)
class Link:
    gbit_s: Fraction
    source: str


LINKS = {
    **{f"{rate}GbE": Link(Fraction(rate), ETHERNET) for rate in (1, 10, 25, 40, 50, 100, 200, 400, 800)},
    "QDR": Link(Fraction(32), f"{INFINIBAND}: 4 x 10 x 8/10"),
    "FDR": Link(Fraction("56.25") * 64 / 66, f"{INFINIBAND}: 4 x 14.0625 x 64/66"),
    "EDR": Link(Fraction("103.125") * 64 / 66, f"{INFINIBAND}: 4 x 25.78125 x 64/66"),
    "HDR": Link(Fraction(200), f"{INFINIBAND}: 4 x 50"),
    "NDR": Link(Fraction(400), f"{INFINIBAND}: 4 x 100"),
    "XDR": Link(Fraction(800), f"{INFINIBAND}: 4 x 200"),
    "Slingshot": Link(Fraction(200), f"{SLINGSHOT}: a port of 200 Gbit/s"),
}
LINKS_BY_KEY = {name.casefold(): link for name, link in LINKS.items()}


def key_of(text: str) -> str:
    return "".join(text.split()).casefold()


def byte_time(gbit_s: Fraction) -> Fraction:
    """Picoseconds per byte."""
    return 8000 / gbit_s


def generation_rate(generation: int, lanes: int) -> Fraction:
    """Picoseconds per byte of data."""
    known = GENERATIONS[generation]
    return byte_time(known.transfers * known.data * lanes)


def pcie_rate(text: str) -> Fraction:
    found = GENERATION.fullmatch(key_of(text))
    if found is None:
        return rate_or_forms(text, "'gen4x16'")
    generation, lanes = int(found[1]), int(found[2])
    if generation not in GENERATIONS or lanes not in LANES:
        raise ValueError(
            f"PCIe is gen{min(GENERATIONS)} to gen{max(GENERATIONS)}, with {', '.join(map(str, LANES))} lanes"
        )
    return generation_rate(generation, lanes)


def link_rate(text: str) -> Fraction:
    if link := LINKS_BY_KEY.get(key_of(text)):
        return byte_time(link.gbit_s)
    return rate_or_forms(text, ", ".join(f"'{name}'" for name in LINKS))


def rate_or_forms(text: str, words: str) -> Fraction:
    """What units.parse_rate() reads; `words` are other forms that the error names."""
    try:
        return units.parse_rate(text)
    except ValueError as error:
        raise ValueError(f"{error}; a word will do: {words}") from None
