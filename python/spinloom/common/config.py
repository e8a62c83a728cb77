"""Every environment variable of Spinloom, in one table.

Precedence: option, then environment, then default. `spinloom info settings` prints each with its value
and origin; an unknown SPINLOOM_ variable gets a warning with the nearest name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from spinloom.common.errors import nearest

PREFIX = "SPINLOOM_"


@dataclass(frozen=True)
class Variable:
    name: str
    default: str
    help: str


VARIABLES = {
    variable.name: variable
    for variable in (
        Variable("SPINLOOM_NIC", "sc19-slingshot", "NIC profile, by name or path (--nic)"),
        Variable("SPINLOOM_NIC_NAME", "", "the live Ethernet NIC of programs that use fpspin_compat.h"),
        Variable("SPINLOOM_HOST", "", "host profile, by name or path; empty: the NIC profile's (--host)"),
        Variable(
            "SPINLOOM_SIM_COMPUTE_S",
            "300",
            "sim: seconds of processor time that a rank may compute without a call; 0 is for ever",
        ),
        Variable("SPINLOOM_SEED", "1", "seed of every random choice (--seed)"),
        Variable("SPINLOOM_WORKERS", "0", "cells simulated at a time, 0 = one a core (--workers)"),
        Variable("SPINLOOM_KERNEL", "", "copy kernels: avx512, avx2, portable, walker; empty: the best"),
        Variable("SPINLOOM_GPU_KERNEL", "", "GPU kernels: word, warp, tile, pieces, walk; empty: by shape"),
        Variable(
            "SPINLOOM_GPU_PEER", "auto", "GPUs of two processes: auto, ipc, staged (pinned memory), packed"
        ),
        Variable("SPINLOOM_GPU", "", "shim runs GPU kernels on the host, for tests"),
        Variable("SPINLOOM_TEST_SEED", "1", "seed of the random C++ tests; a failure prints its own"),
        Variable("SPINLOOM_TEST_PYTHON", "/usr/bin/python3", "Python of the tests that need mpi4py-fft"),
        Variable("SPINLOOM_TEST_BUILD", "", "build folder that tests install libraries from; empty: make's"),
        Variable(
            "SPINLOOM_TEST_PATIENCE", "1", "a factor for all time limits of tests, for machines that are busy"
        ),
        Variable("SPINLOOM_BENCH_MPICC", "", "more MPI compilers for spinloom bench, separated by colons"),
        # The live library's variables, as in src/live/process/settings.cpp; a test compares the two lists.
        Variable("SPINLOOM_COPY", "auto", "live: how long messages go: auto, heap, single-copy, two-copy"),
        Variable(
            "SPINLOOM_DIRECT",
            "auto",
            "live: messages done in the memory of their target: auto, mapped (its heap only), packets",
        ),
        Variable("SPINLOOM_GATEWAY", "0", "live: whether a rank forwards between others: 0, 1, store"),
        Variable("SPINLOOM_HANDLERS", "", "live: folders with handler images, separated by colons"),
        Variable("SPINLOOM_HANDLER_KIND", "sandbox", "live: which handlers are taken: sandbox, native"),
        Variable("SPINLOOM_HPUS", "4", "live: threads that run handlers"),
        Variable(
            "SPINLOOM_MEET",
            "contact",
            "live: when ranks of a machine meet: contact (the first), start (PtlInit)",
        ),
        Variable("SPINLOOM_PCAP", "", "live: records UDP datagrams in this file; the rank is appended"),
        Variable("SPINLOOM_PMIX", "", "live: the PMIx library, where it is not found"),
        Variable("SPINLOOM_SPIN_US", "100", "live: microseconds a waiting call polls before it sleeps"),
        Variable(
            "SPINLOOM_END_S", "300", "live: seconds that PtlNIFini and PtlFini wait for peers; 0 is for ever"
        ),
        Variable(
            "SPINLOOM_START_S", "300", "live: seconds that a rank waits for others to start; 0 is for ever"
        ),
        Variable("SPINLOOM_TRACE", "", "live: records packets in this file; the rank is appended"),
        Variable("SPINLOOM_TRANSPORT", "auto", "live: how ranks reach each other: auto, shm, udp, fabric"),
        Variable(
            "SPINLOOM_FABRIC",
            "auto",
            "live: what carries packets between machines: auto, none, or a libfabric provider",
        ),
        Variable("SPINLOOM_FABRIC_FAULTS", "", "live: disturbs messages on their way to a fabric, for tests"),
        Variable("SPINLOOM_LIBFABRIC", "", "live: the libfabric library, where it is not found"),
        Variable("SPINLOOM_RAILS", "", "live: how each of several NICs reaches its peers, as shm,udp"),
        Variable(
            "SPINLOOM_UDP_ADDRESS", "", "live: the IPv4 addresses where UDP is bound, or their networks"
        ),
        Variable("SPINLOOM_UDP_FAULTS", "", "live: disturbs outgoing datagrams, for tests"),
        # The MPI layer's variables, as in src/mpi/messages/settings.cpp; a test compares the two lists.
        Variable("SPINLOOM_MPI", "on", "MPI: off leaves every call to the MPI"),
        Variable(
            "SPINLOOM_MPI_PATH", "auto", "MPI: which way messages go: auto, pass, staged, mapped, joint, cma"
        ),
        Variable(
            "SPINLOOM_MPI_COLLECTIVES", "off", "MPI: non-blocking collective calls on the live NIC: on, off"
        ),
        Variable(
            "SPINLOOM_MPI_RMA",
            "mapped",
            "MPI: windows on memory of ours: mapped, on (others on the NIC), nic (never mapped), off",
        ),
        Variable("SPINLOOM_MPI_GPU", "auto", "MPI: buffers in the memory of a GPU: auto, on, off, host"),
        Variable("SPINLOOM_MPI_LAYOUT", "memoised", "MPI: whether peers' layouts are kept: memoised, naive"),
        Variable("SPINLOOM_MPI_MIN_BYTES", "6K", "MPI: shorter messages are left to the MPI"),
        Variable("SPINLOOM_MPI_CHUNK_BYTES", "4K", "MPI: so many bytes are handed to the receiver at once"),
        Variable("SPINLOOM_MPI_STAGING_BYTES", "64M", "MPI: memory of a rank for messages under way"),
        Variable(
            "SPINLOOM_MPI_PRICES", "", "MPI: what the ways cost here, which spinloom run hands to the ranks"
        ),
        Variable("SPINLOOM_MPI_RECORD", "", "MPI: a directory that each rank writes its trace to"),
        Variable("SPINLOOM_MPI_RECORD_CLOCK", "wall", "MPI: the clock of these traces: wall, cpu"),
        Variable("SPINLOOM_MPI_REPORT", "", "MPI: a file that each rank adds one line of JSON to"),
        Variable("SPINLOOM_MPI_JOB", "", "MPI: the job's name, which spinloom run hands to the ranks"),
        Variable("NO_COLOR", "", "set to anything: no colours"),
    )
}


def listing() -> list[dict[str, str]]:
    """name, value, origin ('environment' or 'default') and help of every variable."""
    return [
        {
            "name": variable.name,
            "value": os.environ.get(variable.name, variable.default),
            "origin": "environment" if variable.name in os.environ else "default",
            "help": variable.help,
        }
        for variable in VARIABLES.values()
    ]


def warnings() -> list[str]:
    """One sentence for each SPINLOOM_ variable that nothing reads; those of tests are not looked at."""
    ours = [name for name in VARIABLES if name.startswith(PREFIX)]
    unknown = sorted(
        name
        for name in os.environ
        if name.startswith(PREFIX) and name not in VARIABLES and not name.startswith(f"{PREFIX}TEST_")
    )
    return [f"the environment variable {name} is not known{nearest(name, ours)}" for name in unknown]
