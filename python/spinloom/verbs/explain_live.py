"""`spinloom explain --live`: what `spinloom run` would do with a datatype between two ranks here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from spinloom.accelerate import live_ways, peer_prices
from spinloom.accelerate.live_ways import Choice, LiveWay
from spinloom.accelerate.peer_prices import PeerPrices
from spinloom.common import output, units
from spinloom.nics.workloads import Row


@dataclass(frozen=True)
class Live:
    """The measurements and choices for messages between two processes."""

    prices: PeerPrices
    ways: list[LiveWay]
    choices: list[Choice]
    noise: str  # a sentence if the measurements say little

    @classmethod
    def of(cls, row: Row) -> Live:
        prices = peer_prices.load()
        not_timed = live_ways.why_not_timed(row)
        if not_timed:
            output.say(not_timed)
        ways = live_ways.live_ways(row, prices, timed=not not_timed)
        noise = live_ways.noise(ways, prices)
        if noise:
            output.say(noise)
        cma = any(way.way == "cma" and way.measured_ns is not None for way in ways)
        return cls(prices, ways, live_ways.choices(row, prices, cma), noise)

    def document(self) -> dict[str, Any]:
        return {
            "live": {
                "prices": self.prices.measured or "as they came with Spinloom",
                "ways": [asdict(way) for way in self.ways],
                "choices": [asdict(choice) for choice in self.choices],
                "noise": self.noise,
            }
        }

    def rows(self) -> list[dict[str, Any]]:
        times = [
            (way, origin, time_ns)
            for way in self.ways
            for origin, time_ns in (("model", way.predicted_ns), ("measured", way.measured_ns))
            if time_ns is not None
        ]
        return [
            {"path": f"live {way.way}", "kind": "host", "time_ps": round(time_ns * 1000), "by": origin}
            for way, origin, time_ns in times
        ]

    def table(self) -> Any:
        def time_text(time_ns: float | None) -> str:
            return units.format_time(round(time_ns * 1000)) if time_ns is not None else "-"

        return output.table(
            ["way", "by the model", "measured", "scatter", "about"],
            [
                [
                    way.way,
                    time_text(way.predicted_ns),
                    time_text(way.measured_ns),
                    f"{way.scatter:.2f}" if way.scatter is not None else "-",
                    way.about,
                ]
                for way in self.ways
            ],
            numeric={"by the model", "measured", "scatter"},
            title="One message from process to process here, in host time: medians, no MPI. "
            "Scatter: the slowest tenth over the fastest.",
        )
