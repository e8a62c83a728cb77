"""`spinloom trace NAME --import DIR`: text traces, or an OTF2 archive, become a recorded program."""

from __future__ import annotations

import json
from pathlib import Path

from spinloom.common import files, output
from spinloom.traces import otf2_import, recorded, text_traces
from spinloom.verbs import record


def make(source: Path, directory: Path, force: bool) -> None:
    """Writes the trace and its manifest, and says what is missing in it."""
    is_archive = otf2_import.is_archive(source)
    sources = [source] if is_archive else text_traces.files_of(source)
    record.prepare(directory, force)
    remarks = (
        otf2_import.convert(source, directory) if is_archive else text_traces.convert(sources, directory)
    )
    for sentence in remarks:
        output.say(sentence)
    traces = recorded.read(directory)
    manifest = {
        "format": record.FORMAT,
        "imported": [str(path) for path in sources],
        "remarks": remarks,
        "ranks": traces[0].ranks,
        "hosts": sorted({trace.host for trace in traces}),
    }
    files.write(directory / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    events = sum(trace.events for trace in traces)
    output.say(f"{directory}: {events} calls of {len(traces)} ranks; spinloom predict {directory}")
