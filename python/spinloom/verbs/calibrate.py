"""`spinloom calibrate`: the prices that predictions need, as this machine has them."""

from __future__ import annotations

import click

from spinloom.verbs.groups import Group


@click.group(
    cls=Group,
    places={
        "copies": "calibrate_copies:copies",
        "peers": "calibrate_peers:peers",
        "mpi": "calibrate_mpi:mpi",
        "host": "calibrate_host:host_verb",
    },
    default="copies",
    no_args_is_help=False,
    epilog="Examples: spinloom calibrate; spinloom calibrate peers; spinloom calibrate mpi mpicc.openmpi; "
    "spinloom calibrate host -o mine.toml",
)
def calibrate() -> None:
    """Measure the prices that predictions need, on this machine.

    They are what copies, messages, an MPI library and the host cost. Predictions then use them in place of
    those that come with Spinloom. `spinloom calibrate` is `spinloom calibrate copies`. Times are host time:
    run it on a quiet machine.
    """
