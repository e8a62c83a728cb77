"""Files of other tools are named as what they are, wherever a trace or a schedule is read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from patience import seconds
from spinloom.common.errors import Trouble
from spinloom.traces import foreign

BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
PARAVER = b"#Paraver (01/02/24 at 10:30):1000_ns:1(2):1:2(1:1,1:1)\n"

# How such files begin; by what the table calls them: (name, bytes).
SAMPLES = {
    "the anchor of an OTF2 archive": ("traces.anchor", b"\x03BOTF2\x00\x03\x02"),
    "one rank's file of a recorded program": ("rank-0.trace", b"SPLTRC01CHNK"),
    "a part of an OTF2 archive": ("0.evt", b"\x03B\x01\x00\x00\x00"),
    "a schedule in Spinloom's own form": ("a.spl", b"SPLSCHED\x01"),
    "a GOAL schedule": ("a.txt", b"// a ring\n/* of ** two */\nnum_ranks 2\n"),
    "a GOAL schedule in the binary form of LogGOPSim": ("a.bin", b"\x7f\x10\0\0\0\0\0\0\x02\0\0\0"),
    "a text trace of LogGOPSim's PMPI wrapper": ("trace.txt", b"# htor's\nMPI_Init:-:0:0:10\n"),
    "a DUMPI trace, of SST": ("dumpi-2024-0000.bin", b"\xff\xaa\xddDUMPI\0\0"),
    "the list of a DUMPI trace's files, of SST": (
        "dumpi.meta",
        b"hostname=n1\nnumprocs=8\nfileprefix=dumpi-2024\n",
    ),
    "a Chakra execution trace": ("ring.0.et", b"\x07\x0a\x050.0.4\x20"),
    "a time-independent trace of SimGrid": ("0.txt", b"# made by smpirun\n0 init\n0 compute 1e6\n"),
    "the list of a SimGrid trace's files": ("lu.trace", b"lu.trace_files/0_0.txt\nlu.trace_files/0_1.txt\n"),
    "a trace of Charm++ for Projections": ("app.0.log", b"PROJECTIONS-RECORD 0\n6 0\n"),
    "a Paraver trace": ("app.prv", PARAVER),
    "a Dimemas trace": ("app.dim", b'#DIMEMAS:"app":1,0:2(1,1)\n'),
    "a Paje trace, as ViTE and SimGrid use them": ("app.trace", b"%EventDef PajeDefineContainerType 1\n"),
    "a list of events of a TAU trace": ("events.0.edf", b"3 dynamic_trace_events\n"),
    "a profile of TAU": ("profile.0.0.0", b"2 templated_functions_MULTI_TIME\n"),
    "a log of MPE (CLOG, SLOG)": ("app.clog2", b"CLOG-02.44\0"),
    "a trace of HPCToolkit": ("app.hpctrace", b"HPCRUN-trace______01.01b"),
    "a Caliper trace": ("app.cali", b"__rec=node,id=1\n"),
    "a trace in CTF, of LTTng and others": ("channel0_0", b"\xc1\x1f\xfc\xc1\0\0"),
    "a trace of perf": ("perf.data", b"PERFILE2h\0"),
    "a trace in Chrome's trace events (JSON)": ("t.json", b'{"displayTimeUnit": "ns", "traceEvents": [\n'),
    "an SQLite database, as Nsight Systems exports its reports": ("r.sqlite", b"SQLite format 3\0\x10"),
    "a capture of frames": ("a.pcap", b"\xd4\xc3\xb2\xa1\x02\0\x04\0"),
    "a program": ("app", b"\x7fELF\x02\x01\x01\0"),
    "a file packed by gzip": ("a.gz", gzip.compress(b"hello")),
    "a file packed by bzip2": ("a.bz2", bz2.compress(b"hello")),
    "a file packed by xz": ("a.xz", lzma.compress(b"hello")),
    "a file packed by zstd": ("a.zst", b"\x28\xb5\x2f\xfd\x04\0"),
    "a zip archive": ("a.zip", b"PK\x03\x04\x14\0"),
    "a profile of Score-P (Cube), which has no single calls": ("profile.cubex", b"anchor.xml" + bytes(300)),
    "a tar archive": ("a.tar", b"a/b".ljust(257, b"\0") + b"ustar\0"),
    "a trace of TAU": ("tautrace.0.0.0.trc", b"\0\0\0\x01"),
    "a trace in OTF's first version, as VampirTrace wrote them": ("a.otf", b"1:1\n"),
    "an intermediate trace of Extrae": ("TRACE@n1.0000.mpit", b"\0\0"),
    "a timeline for ui.perfetto.dev": ("run.pftrace", b"\x0a\x0a\x58"),
}


def spinloom(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)


def write(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def told(path: Path) -> str:
    """What refuse() says of a file or a folder; nothing if it does not know it."""
    try:
        foreign.refuse(path)
    except Trouble as trouble:
        return trouble.message if trouble.code == "invalid" else trouble.code
    return ""


def test_each_format_of_the_table_has_a_sample():
    assert list(SAMPLES) == [one.description for one in foreign.formats()]


@pytest.mark.parametrize("what", SAMPLES)
def test_a_file_is_named(what, tmp_path):
    path = write(tmp_path, *SAMPLES[what])
    assert told(path).startswith(f"{path} is {what}; ")


@pytest.mark.parametrize("what", SAMPLES)
def test_a_folder_is_named_by_the_traces_in_it(what, tmp_path):
    path = write(tmp_path / "run/deeper", *SAMPLES[what])
    is_plain = next(one.is_plain for one in foreign.formats() if one.description == what)
    said = told(tmp_path / "run")
    assert said == "" if is_plain else said.startswith(f"{path} is {what}; ")


def test_what_is_packed_is_looked_into(tmp_path):
    for name, pack in (("a.prv.gz", gzip.compress), ("a.prv.bz2", bz2.compress), ("a.prv.xz", lzma.compress)):
        path = write(tmp_path / name, name, pack(PARAVER * 100))
        assert ", and in it a Paraver trace; unpack it first" in told(path)
        assert ", and in it a Paraver trace; unpack it first" in told(path.parent)
    # Damaged: still what it is.
    cut = write(tmp_path, "cut.gz", gzip.compress(PARAVER)[:12])
    assert told(cut) == f"{cut} is a file packed by gzip; unpack it first"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"MPI\n",
        bytes(range(256)) * 20,
        b"/*" * 2048,
        b" " * 4096,
        b"{" * 4096,
        b"#\n" * 2048,
    ],
    ids=["nothing", "hello", "letters", "all bytes", "comments", "blanks", "braces", "remarks"],
)
def test_what_nobody_knows_is_not_named(content, tmp_path):
    assert told(write(tmp_path, "data", content)) == ""


def test_what_cannot_be_read_is_not_named(tmp_path):
    assert told(tmp_path / "missing") == ""
    assert told(tmp_path) == ""
    assert told(Path("/dev/null")) == ""


@pytest.mark.parametrize("what", ["a DUMPI trace, of SST", "a Chakra execution trace", "a Paraver trace"])
def test_every_verb_that_reads_names_it(what, tmp_path):
    path = write(tmp_path / "run", *SAMPLES[what])
    for words in (
        ("trace", path),
        ("trace", path.parent),
        ("trace", path, "--check"),
        ("trace", path, "--import", tmp_path / "made"),
        ("trace", path.parent, "--import", tmp_path / "made"),
        ("predict", path),
        ("predict", path.parent),
        ("goal", path),
        ("goal", "check", path),
    ):
        done = spinloom(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert done.stderr.startswith(f"spinloom: {path} is {what}; this verb takes "), words
    assert not (tmp_path / "made").exists()
