"""The one plot of a run: speed-up by datatype and strategy, legible in black and white.

The same table gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import pictures
from spinloom.common.files import write as write_file
from spinloom.nics.results import Table, speedups

HATCHES = {
    "host-best": "..",
    "host-warm": "**",
    "rdma-direct": "||",
    "iovec": "xx",
    "specialised": "",
    "hpu-local": "++",
    "ro-cp": "--",
    "rw-cp": "//",
    "seek": "OO",
    "streaming": "//",
    "outbound-specialised": "",
    "outbound-seek": "OO",
}
GREYS = {
    "host-best": "1.0",
    "host-warm": "0.95",
    "rdma-direct": "1.0",
    "iovec": "0.85",
    "specialised": "0.25",
    "hpu-local": "1.0",
    "ro-cp": "0.9",
    "rw-cp": "0.75",
    "seek": "0.5",
    "streaming": "0.75",
    "outbound-specialised": "0.25",
    "outbound-seek": "0.5",
}


CROWDED_FROM = 6  # more groups than these are drawn closer, with slanted names


def machine_of(manifest: dict[str, Any]) -> str:
    """The machine that a run's manifest names, for the foot of a picture."""
    changes = "".join(f", {field}={value}" for field, value in manifest["profile_changes"].items())
    return f"NIC {manifest['profile']}, {manifest['hpus']} HPUs, host {manifest['host']}{changes}"


def write_speedup_svg(table: Table, path: Path, machine: str) -> None:
    """One group of bars for each datatype, one bar for each strategy; a line at 1 is the baseline."""
    rows = speedups(table)
    groups = list(dict.fromkeys((row["application"], row["datatype"]) for row in rows))
    strategies = [name for name in HATCHES if any(row["strategy"] == name for row in rows)]
    width = 0.8 / max(1, len(strategies))
    crowded = len(groups) > CROWDED_FROM
    size = (max(5.0, (0.75 if crowded else 1.3) * len(groups) + 1.5), 4.6 if crowded else 3.4)
    with pictures.canvas(*size) as figure:
        axes = figure.add_subplot()
        for number, strategy in enumerate(strategies):
            heights = [(table.get(*group, strategy) or {}).get("speedup") or 0 for group in groups]
            places = [group + (number - (len(strategies) - 1) / 2) * width for group in range(len(groups))]
            axes.bar(
                places,
                heights,
                width,
                label=strategy,
                color=GREYS[strategy],
                edgecolor="black",
                linewidth=0.7,
                hatch=HATCHES[strategy],
            )
            for place, height in zip(places, heights, strict=True):
                label = f"{height:.1f}" if height else "n/a"
                axes.annotate(
                    label,
                    (place, max(height, 1)),  # above the line, which would cross it
                    ha="center",
                    va="bottom",
                    fontsize=7,
                    rotation=90 if crowded else 0,
                    xytext=(0, 2),
                    textcoords="offset points",
                )
        pictures.mark_level(axes)
        axes.set_xticks(
            range(len(groups)),
            [f"{application}\n{datatype}" for application, datatype in groups],
            **({"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}),
        )
        axes.set_ylabel(f"speed-up over {table.baseline}\n(modelled time)")
        axes.margins(x=0.02, y=0.1)
        pictures.hide_spines(axes)
        if strategies:
            axes.legend(frameon=False, ncols=len(strategies), loc="lower center", bbox_to_anchor=(0.5, 1.0))
        pictures.foot(figure, machine, 7)
        write_file(path, pictures.encoded(figure))
