"""`spinloom paper study spc`: storage traces on a RAID-5 array, and the claim SPIN-9."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core, csv_text
from spinloom.common.errors import Trouble
from spinloom.nics import profiles
from spinloom.papers import claims, raid_shapes, spc, spc_mixes, storage, studies
from spinloom.papers.lab import Lab
from spinloom.verbs.paper_study import save
from test_study import config

STUDY = studies.studies()["spc"]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "spc.csv"
# The example of the SPC Trace File Format Specification 1.0.1, with optional fields.
EXAMPLE = """\
0,20941264,8192,W,0.551706,Alpha/NT
0,20939840,8192,W,0.554041
1,3436288,15872,W,1.250720,0x123,5.99,test
1,3435889,512,w,1.634761
0, 7695360, 4096, R, 2.346628
"""
OF_EXAMPLE = [
    (0, 20941264, 8192, True, "0.551706"),
    (0, 20939840, 8192, True, "0.554041"),
    (1, 3436288, 15872, True, "1.250720"),
    (1, 3435889, 512, True, "1.634761"),
    (0, 7695360, 4096, False, "2.346628"),
]


# ---- the format ----


def packed(path: Path) -> Path:
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(EXAMPLE.encode()))
    return path


@pytest.mark.parametrize("name", ["t.spc", "t.spc.gz", "t.spc.bz2", "t.spc.xz"])
def test_a_trace_is_read_as_the_format_says(tmp_path, name):
    assert list(spc.read(packed(tmp_path / name))) == OF_EXAMPLE


def test_a_trace_is_read_line_by_line(tmp_path):
    """What is wrong in the third line does not hinder the first two."""
    path = tmp_path / "t.spc"
    path.write_text("0,1,512,R,0.0\n0,2,512,R,0.1\nnonsense\n")
    requests = spc.read(path)
    assert [next(requests).lba, next(requests).lba] == [1, 2]
    with pytest.raises(Trouble, match="line 3"):
        next(requests)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0,1,512,R", "it has 4 fields: at least 5"),
        ("", "it has 1 fields"),
        ("x,1,512,R,0.0", "ASU 'x' is not a whole number"),
        ("1" * 5000 + ",1,512,R,0.0", "of at most 18 digits"),
        ("0,-1,512,R,0.0", "LBA '-1' is not a whole number"),
        ("0,1,5e3,R,0.0", "size '5e3' is not a whole number"),
        ("0,1,512,read,0.0", "opcode 'read' is neither R nor W"),
        ("2,30862016,4096,W,2 448003", "time '2 448003' is not seconds"),
        ("0,1,512,R,-1.0", "time '-1.0' is not seconds"),
        (f"0,1,{1 << 40},R,0.0", "at most 268,435,456 B"),
        ("0,1,512,R,0.0é", "not ASCII"),
        ("0" * spc.LINE_BYTES_MAX, "longer than"),
        (" 0,1,512,R,0.0", "it begins with a space"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path, line, complaint):
    path = tmp_path / "bad.spc"
    path.write_text(f"0,1,512,R,0.0\n{line}\n", encoding="utf-8")
    with pytest.raises(Trouble) as raised:
        list(spc.read(path))
    assert raised.value.code == "invalid"
    assert raised.value.message.startswith(f"{path}, line 2: ")
    assert complaint in raised.value.message


@pytest.mark.parametrize("name", ["t.spc.gz", "t.spc.bz2", "t.spc.xz"])
def test_a_file_that_ends_too_early_is_named(tmp_path, name):
    path = packed(tmp_path / name)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(Trouble, match=f"{name} cannot be read"):
        list(spc.read(path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Trouble, match=r"none.spc cannot be read: No such file"):
        list(spc.read(tmp_path / "none.spc"))


# ---- the mixes ----


@pytest.mark.parametrize("name", STUDY.mixes)
def test_a_mix_is_a_function_of_its_seed_and_survives_its_file(tmp_path, name):
    mix = spc_mixes.mix_named(name)
    made = list(spc_mixes.requests(mix, 500, seed=7))
    assert made == list(spc_mixes.requests(mix, 500, seed=7))
    assert made != list(spc_mixes.requests(mix, 500, seed=8))
    path = tmp_path / "mix.spc"
    path.write_text(spc.trace_text(made), encoding="ascii")
    assert list(spc.read(path)) == made


def test_the_first_requests_of_a_mix_are_the_same_everywhere():
    made = spc.trace_text(spc_mixes.requests(spc_mixes.mix_named("financial1"), 3, seed=1))
    assert made == ("10,462288,2048,W,0.007298\n23,152883,1024,W,0.022798\n7,562342,2048,R,0.030137\n")


@pytest.mark.parametrize("name", STUDY.mixes)
def test_a_mix_has_the_writes_and_the_mean_of_its_trace(name):
    mix = spc_mixes.mix_named(name)
    for write in (False, True):
        assert sum(share for _, share in mix.sizes(write)) == 100
    means = {write: sum(size * share for size, share in mix.sizes(write)) / 100 for write in (False, True)}
    part = mix.writes / mix.requests
    expected = part * means[True] + (1 - part) * means[False]
    assert expected == pytest.approx(mix.mean_bytes, rel=0.05)
    trace = storage.mixed(name)
    assert trace.mean_bytes() == pytest.approx(expected, rel=0.02)
    assert trace.writes_percent == pytest.approx(100 * part, abs=1)


def test_the_claims_mix_is_the_one_of_the_smallest_writes():
    smallest = min(STUDY.mixes, key=lambda name: storage.mixed(name).mean_bytes(writes_only=True))
    named = {
        dict(each.arguments)["mix"]
        for each in claims.claims()["SPIN-9"].holds
        if each.observation == "storage_lead_percent"
    }
    assert named == {smallest}


# ---- shapes ----


def by_byte(address: int, size: int, stripe: int) -> list[tuple[int, int]]:
    """Where each byte is: (data node, offset in its block)."""
    return [
        (at // stripe % raid_shapes.DATA_NODES, at // stripe // raid_shapes.DATA_NODES * stripe + at % stripe)
        for at in range(address, address + size)
    ]


@pytest.mark.parametrize("stripe", [4096, 8192])
@pytest.mark.parametrize("address", [0, 512, 3584, 4096 * 3, 4096 * 7 + 512])
@pytest.mark.parametrize("size", [512, 4096, 4608, 16384, 20000, 70000])
def test_a_shape_has_every_byte_where_striping_puts_it(stripe, address, size):
    pieces = raid_shapes.striped(address, size, stripe)
    first = address // stripe
    found = Counter(
        ((first + node) % raid_shapes.DATA_NODES, offset + at)
        for node, (offset, length) in enumerate(pieces)
        for at in range(length)
    )
    assert found == Counter(by_byte(address, size, stripe))


def test_a_request_in_quarters_is_in_four_equal_pieces():
    assert raid_shapes.shape(8192, 4096, 0) == ((2048, 1024),) * 4
    assert raid_shapes.shape(0, 10, 0) == ((0, 3), (0, 3), (0, 3), (0, 1))


def pieces_time(way: str, pieces, experiment: str = "raid", nic: str = "sc17-discrete") -> int:
    result = core.load().run_study(config(experiment, way, 0, nic, pieces=list(pieces)))
    assert result["checked"]
    return result["time_ps"]


@needs_engine
@pytest.mark.parametrize("way", STUDY.ways)
@pytest.mark.parametrize("experiment", ["raid", "raid-read"])
def test_what_a_shape_leaves_out_makes_no_difference(way, experiment):
    """Another first data node, another row of stripe units."""
    shape = raid_shapes.shape(65536 - 1024, 5120, 65536)
    assert shape == ((64512, 1024), (0, 4096), (0, 0), (0, 0))
    moved = [shape[2], shape[3], shape[0], shape[1]]
    later = [(offset + 5 * 4096, size) if size else (0, 0) for offset, size in shape]
    time = pieces_time(way, shape, experiment)
    assert pieces_time(way, moved, experiment) == time
    assert pieces_time(way, later, experiment) == time


@needs_engine
@pytest.mark.parametrize("way", STUDY.ways)
@pytest.mark.parametrize("experiment", ["raid", "raid-read"])
@pytest.mark.parametrize(
    "pieces",
    [
        [(0, 1), (0, 0), (0, 0), (0, 0)],
        [(0, 0), (4093, 4099), (0, 0), (7, 12289)],
        [(61440, 4096), (0, 65536), (0, 512), (0, 0)],
    ],
)
def test_any_pieces_are_stored_and_read_byte_by_byte(way, experiment, pieces):
    assert pieces_time(way, pieces, experiment) > 0


@needs_engine
@pytest.mark.parametrize("way", STUDY.ways)
@pytest.mark.parametrize("experiment", ["raid", "raid-read"])
def test_packets_out_of_order_change_no_byte(way, experiment):
    pieces = [(5, 70000), (0, 0), (4096, 65536), (0, 12288)]
    result = core.load().run_study(config(experiment, way, 0, order="all:8", pieces=pieces))
    assert result["checked"]


@needs_engine
@pytest.mark.parametrize("nic", STUDY.nics)
def test_a_read_by_handlers_spares_the_host_what_the_host_costs(nic):
    """T(rdma) = T(portals4) + request to memory, poll, look at it, call, command. T(stream) = T(portals4) + a
    header handler, which is shorter."""
    shape = raid_shapes.shape(0, 512, 65536)
    times = {way: pieces_time(way, shape, "raid-read", nic) for way in STUDY.ways}
    assert times["portals4"] < times["stream"] < times["rdma"]
    profile = profiles.load(nic)
    host_ps = 2 * profile["host.memory_latency"] + profile["host.call"] + profile["host.command_latency"]
    assert times["rdma"] - times["portals4"] > host_ps


@needs_engine
@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"pieces": [(0, 0)] * 4}, "unsupported", "zero bytes"),
        ({"pieces": [(0, 8)] * 3}, "invalid", "3 pieces for 4 data nodes"),
        ({"pieces": [(1 << 30, 8), *[(0, 0)] * 3]}, "unsupported", "not in a block"),
    ],
)
def test_pieces_that_cannot_be_are_an_error(changes, code, message):
    engine = core.load()
    with pytest.raises(engine.SpinloomError, match=message) as raised:
        engine.run_study({**config("raid", "stream", 0), **changes})
    assert raised.value.code == code


# ---- the study ----


@pytest.fixture(scope="module")
def laboratory():
    lab = Lab(2)
    lab.run(studies.probes(STUDY))
    return lab


@needs_engine
def test_every_trace_takes_what_it_took(laboratory):
    """The golden table, of `spinloom paper study spc --csv`."""
    rows = csv_text.as_csv(studies.rows(STUDY, laboratory), STUDY.columns)
    expected = GOLDEN.read_text(encoding="utf-8")
    assert rows.splitlines() == expected.splitlines()


@needs_engine
def test_the_claim_is_judged_as_the_table_says(laboratory):
    """Without statements and trials of other numbers, which `make validate` makes."""
    claim = claims.claims()["SPIN-9"]
    verdict = claims.judged(claim, claims.Trial(claim.nic), laboratory, None)
    table = json.loads((GOLDEN.parent / "validate.json").read_text(encoding="utf-8"))["claims"]["SPIN-9"]
    assert (verdict.verdict, verdict.ours) == (table["verdict"], table["ours"])


@needs_engine
def test_a_trace_of_one_kind_of_request_takes_that_often_its_time(spinloom, tmp_path):
    """T = n T(write) + m T(read), for both NICs and every way; compressed, and with a request of 0 bytes."""
    writes, reads = 3, 2
    lines = ["0,8,4096,W,0.0"] * writes + ["3,16,8192,R,1.0"] * reads + ["0,0,0,R,2.0"]
    path = tmp_path / "one.spc.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    ran = spinloom("paper", "study", "spc", str(path), "--json", "--quiet", "--out", str(tmp_path / "out"))
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)
    assert [(row["nic"], row["way"]) for row in rows] == [
        (nic, way) for nic in STUDY.nics for way in STUDY.ways
    ]
    for row in rows:
        write = pieces_time(row["way"], raid_shapes.shape(4096, 4096, 65536), "raid", row["nic"])
        read = pieces_time(row["way"], raid_shapes.shape(8192, 8192, 65536), "raid-read", row["nic"])
        assert row["time_ps"] == writes * write + reads * read
        assert (row["write_time_ps"], row["read_time_ps"]) == (writes * write, reads * read)
        assert (row["requests"], row["writes_percent"], row["input"]) == (5, 60, "file")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["spc.csv", "spc.svg"]


@needs_engine
def test_the_generated_traces_are_written_beside_the_table(laboratory, tmp_path):
    save({STUDY: studies.rows(STUDY, laboratory)}, tmp_path)
    assert {"spc.csv", "spc.svg", *(f"{mix}.generated.spc" for mix in STUDY.mixes)} == {
        file.name for file in tmp_path.iterdir()
    }
    again = replace(STUDY, files=(tmp_path / "websearch.generated.spc",))
    (trace,) = storage.traces(again)
    assert (trace.input, trace.counts) == ("generated", storage.mixed("websearch").counts)


def test_traces_of_the_same_name_are_told_by_their_paths(tmp_path):
    paths = [tmp_path / folder / "t.spc" for folder in ("a", "b")]
    for number, path in enumerate(paths, 1):
        path.parent.mkdir()
        path.write_text("0,8,512,W,0.0\n" * number)
    other = packed(tmp_path / "other.spc")
    found = storage.traces(replace(STUDY, files=(*paths, other, paths[0])))
    assert [(trace.name, trace.requests) for trace in found] == [
        (str(paths[0]), 1),
        (str(paths[1]), 2),
        ("other.spc", 5),
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("raid", "t.spc"), "only the study 'spc' reads traces"),
        (("all", "t.spc"), "only the study 'spc' reads traces"),
        (("spc", "t.spc"), "t.spc cannot be read: No such file or directory"),
    ],
)
def test_files_that_cannot_be_replayed_are_named(spinloom, arguments, complaint):
    ran = spinloom("paper", "study", *arguments)
    assert ran.code == 2
    assert complaint in ran.err


def test_a_trace_without_bytes_is_refused(spinloom, tmp_path):
    path = tmp_path / "empty.spc"
    path.write_text("0,1,0,R,0.0\n")
    ran = spinloom("paper", "study", "spc", str(path))
    assert ran.code == 2
    assert "no request that moves a byte" in ran.err
