"""Cells of studies, as the engine takes them."""

from __future__ import annotations

from typing import Any

from spinloom.common import data
from spinloom.nics import profiles


def cell(
    profile: profiles.Profile, experiment: str, way: str, size_bytes: int, **more: Any
) -> dict[str, Any]:
    return {
        "profile": profile.native(),
        "images": data.handler_images(),
        "hpus": profile["hpu.count"],
        "mtu": profile["link.payload"],
        "order": "in",
        "seed": 1,
        "inject": "none",
        "experiment": experiment,
        "way": way,
        "bytes": size_bytes,
        **more,
    }
