"""The CSV, goals and plot of the GPU bench.

Contract: csv() begins with lines of '#' that name device, driver, date and the method. goals() are those of
docs/gpu.md, over the rows that were measured. draw() gives a picture as SVG and as PNG.
"""

from __future__ import annotations

import datetime
from typing import Any

from spinloom import __version__
from spinloom.common import csv_text, pictures
from spinloom.layout import cuda

Rows = list[dict[str, Any]]
LARGE_BYTES = 64 << 20
METHOD = (
    "device times by events, medians of interleaved rounds; GB/s count bytes read and written; memcpy is the "
    "driver's copy of as many bytes within the device; alone and naive are host time from launch to end"
)


def about(*, emulated: bool) -> dict[str, str]:
    driver = cuda.driver()
    return {
        "device": driver.name,
        "driver": driver.version,
        "memory": f"{driver.bandwidth() / 1e12:.2f} TB/s by its clock and bus",
        "cache": f"{driver.attribute(cuda.L2_BYTES) >> 20} MiB L2",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "spinloom": __version__,
        "method": METHOD,
        **({"emulated": "SPINLOOM_GPU=shim, kernels ran on the host: no times of a GPU"} if emulated else {}),
    }


def csv(rows: Rows, head: dict[str, str]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return "".join(f"# {name}: {value}\n" for name, value in head.items()) + csv_text.as_csv(rows, columns)


def goals(rows: Rows) -> Rows:
    """Each: goal, rows, reached, wanted, met."""
    results: Rows = []

    def at_least(title: str, values: list[float], wanted: float) -> None:
        if values:
            reached = min(values)
            results.append(
                {
                    "goal": title,
                    "rows": len(values),
                    "reached": reached,
                    "wanted": wanted,
                    "met": reached >= wanted,
                }
            )

    large = [row for row in rows if row["bytes"] >= LARGE_BYTES and row["family"] == "vector"]
    for low, high, wanted in ((64, 1 << 30, 0.8), (16, 63, 0.5)):
        chosen = [row for row in large if low <= row["block_bytes"] <= high]
        at_least(
            f"of the copy's bandwidth, blocks from {low} B, 64 MiB and more (worst)",
            [row[f"{name}_of_memcpy"] for row in chosen for name in ("pack", "unpack")],
            wanted,
        )
    at_least(
        "CuPy's time over ours (worst)",
        [
            row[key]
            for row in rows
            for key in ("cupy_pack_over_ours", "cupy_unpack_over_ours")
            if row.get(key)
        ],
        1.0,
    )
    at_least(
        "a copy a block over ours, SPECFEM3D_cm (worst)",
        [row["naive_over_ours"] for row in rows if "SPECFEM3D_cm" in row["row"] and "naive_over_ours" in row],
        300.0,
    )
    launches = [row["launch_us"] for row in rows if row.get("launch_us")]
    if launches:
        reached = max(launches)
        results.append(
            {"goal": "us of host time of a launch (worst)", "rows": len(launches), "reached": reached,
             "wanted": 5.0, "met": reached < 5}
        )  # fmt: skip
    return results


LINES = {"ours": ("o-", "0.0"), "hand": ("s--", "0.35"), "cupy": ("^:", "0.35"), "torch": ("v-.", "0.55")}


def draw(rows: Rows, head: dict[str, str]) -> dict[str, bytes]:
    """By ending: the picture. Left: large vectors by their blocks. Right: others' time over ours."""
    with pictures.canvas(10.0, 4.4) as figure:
        bandwidth_axes, ratio_axes = figure.subplots(1, 2)
        vectors = sorted(
            (row for row in rows if row["family"] == "vector" and row["bytes"] == LARGE_BYTES),
            key=lambda row: row["block_bytes"],
        )
        for name, (style, grey) in LINES.items():
            key = "pack_us" if name == "ours" else f"{name}_pack_us"
            points = [(row["block_bytes"], row["memcpy_us"] / row[key]) for row in vectors if row.get(key)]
            if points:
                bandwidth_axes.plot(*zip(*points, strict=True), style, color=grey, label=name, markersize=4)
        pictures.mark_level(bandwidth_axes)
        bandwidth_axes.set_xscale("log", base=2)
        bandwidth_axes.set_xlabel("block in bytes, every second one packed, 64 MiB")
        bandwidth_axes.set_ylabel("of the bandwidth of the driver's copy")
        bandwidth_axes.set_ylim(bottom=0)
        if vectors:
            bandwidth_axes.legend(frameon=False)
        families = list(dict.fromkeys(row["family"] for row in rows))
        for name, mark in (("hand", "s"), ("cupy", "^"), ("torch", "v")):
            points = [
                (families.index(row["family"]) + 0.2 * (list(LINES).index(name) - 2), row[key])
                for row in rows
                for key in (f"{name}_pack_over_ours", f"{name}_unpack_over_ours")
                if row.get(key)
            ]
            if points:
                ratio_axes.plot(
                    *zip(*points, strict=True), mark, markersize=3.5, markerfacecolor="none",
                    markeredgecolor="black", markeredgewidth=0.6, linestyle="none", label=name,
                )  # fmt: skip
        pictures.mark_level(ratio_axes)
        ratio_axes.set_yscale("log")
        ratio_axes.set_xticks(range(len(families)), families)
        ratio_axes.set_ylabel("device time of others / ours, pack and unpack")
        if rows:
            ratio_axes.legend(frameon=False)
        for axes in (bandwidth_axes, ratio_axes):
            pictures.hide_spines(axes)
        pictures.foot(figure, f"{head['device']}, driver {head['driver']}, {head['date']}", 7)
        return {"svg": pictures.encoded(figure), "png": pictures.encoded(figure, ".png", dpi=150)}
