"""`spinloom calibrate peers`: what messages between two processes of this machine cost."""

from __future__ import annotations

import os
from pathlib import Path

import click

from spinloom.accelerate import calibration, peer_prices
from spinloom.common import output
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.verbs.options import form_options, out_option, quiet_option
from spinloom.verbs.stopping import stoppable


@click.command(epilog="Example: spinloom calibrate peers --passes 10")
@click.option(
    "--passes",
    metavar="N",
    type=click.IntRange(1, 100),
    default=calibration.PASSES,
    show_default=True,
    help="Rounds.",
)
@out_option("FILE", "Write the prices there.")
@quiet_option
@form_options
def peers(passes: int, out: Path | None, quiet: bool, form: str) -> None:
    """Measure messages between processes, for 'spinloom run'.

    Measures each way that a message can take. 'spinloom run' then takes the cheapest one for each message;
    'spinloom explain --live' shows the prices. It wants two idle cores for half a minute.
    """
    if len(os.sched_getaffinity(0)) < peer_prices.CORES:
        raise Trouble(
            "environment", "messages between two processes need two cores, and this process may use one"
        )
    where = out or peer_prices.path()
    results.check_writable(where.parent)
    with stoppable() as stop, progress(peer_prices.step_count(passes), quiet, "measuring") as advance:
        samples = peer_prices.measure(passes, advance)
    if stop.was_stopped:
        stop.leave("nothing was stored")
    fitted = peer_prices.fit(samples)
    peer_prices.save(fitted, where)
    output.say(f"{where}: the model misses what was measured by a factor of {fitted.error:.2f} in the mean")
    rows = [{"price": name, "ns": round(ns, 3)} for name, ns in fitted.ns.items()]
    title = "What a message between two processes costs here (host time)"
    output.emit(
        rows,
        form,
        lambda: output.table(
            ["price, ns", ""], [[row["price"], f"{row['ns']:.2f}"] for row in rows], numeric={""}, title=title
        ),
    )
