"""The verbs by the job that they do, and where each is: a verb is imported when it is asked for."""

from __future__ import annotations

JOBS: dict[str, dict[str, str]] = {
    "Predict what a packet-processing NIC does with your data": {
        "simulate": "simulate:simulate",
        "explain": "explain:explain",
        "goal": "goal:goal",
        "predict": "predict:predict_verb",
        "sweep": "sweep:sweep",
    },
    "Accelerate MPI programs and copies on the CPUs that you have": {
        "run": "run:run",
        "record": "record:record",
        "trace": "trace:trace",
        "bench": "bench:bench",
        "calibrate": "calibrate:calibrate",
    },
    "Program Portals 4 and handlers of your own": {
        "sim": "sim:sim",
        "threads": "threads:threads",
        "handler": "handler:handler",
        "nic": "nic:nic",
    },
    "Check how far to trust it, and what this machine has": {
        "paper": "paper:paper",
        "doctor": "doctor:doctor",
        "info": "info:info",
    },
}
HIDDEN = {"torture": "torture:torture_verb"}  # a tool for changes of the engine: docs/torture.md
PLACES = {name: place for verbs in (*JOBS.values(), HIDDEN) for name, place in verbs.items()}
