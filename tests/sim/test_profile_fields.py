"""The table of profile fields: the engine's ranges, words for rates, the page, templates."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core, units
from spinloom.common.errors import Trouble
from spinloom.nics import machines, profiles, rate_words, sweep
from spinloom.nics.profile_fields import FIELDS
from spinloom.nics.sweep import Cell
from spinloom.nics.workloads import Row

ROOT = Path(__file__).resolve().parents[2]
A15, PULP = "sc19-slingshot", "fpspin-vcu1525"
UNITS = {"cycles": "cycles", "a number": "", "Hz, MHz, GHz": "Hz", "ps, ns, us, ms, s": "ps"}
BOUNDED = [
    (name, field)
    for name in (A15, PULP)
    for field in profiles.load(name).entries
    if FIELDS[field].least is not None and (name == A15 or field.startswith(("pulp.", "frame.")))
]


def refusal(name: str, field: str, value: int) -> str:
    """What the engine says of a profile with that number when it receives a byte; '' if it does."""
    machine = machines.machine(name)
    setup = dataclasses.replace(machine.setup(), profile={**machine.profile.native(), field: value})
    setup = dataclasses.replace(
        setup,
        hpus=value if field == "hpu.count" else setup.hpus,
        mtu=value if field == "link.payload" else setup.mtu,
    )
    try:
        outcome = sweep.run_cell(core.load(), Cell(Row("check", "one byte", "byte"), "specialised"), setup)
    except Trouble as trouble:
        return trouble.message
    return "" if outcome.code == "ok" else outcome.message


def text_of(field: str, value: int) -> str:
    return f"{value} {UNITS.get(FIELDS[field].unit, 'B')}".strip()


@needs_engine
@pytest.mark.parametrize(("name", "field"), BOUNDED)
def test_ranges_are_those_of_the_engine(name, field):
    known = FIELDS[field]
    for value in (known.least, known.most):
        assert known.parse(text_of(field, value)) == value
        if field != "pulp.atomic_l2":  # its range depends on pulp.l2_handler
            assert "it must be" not in refusal(name, field, value)
    for value in (known.least - 1, known.most + 1):
        assert refusal(name, field, value)
        if value >= 0:
            with pytest.raises(ValueError, match=f"it must be {re.escape(known.range)}"):
                known.parse(text_of(field, value))


@needs_engine
@pytest.mark.parametrize("field", ["link.byte_time", "checkpoint.epsilon"])
def test_fractions_have_the_range_of_the_engine(field):
    unit = " ps/B" if field == "link.byte_time" else ""
    below = FIELDS[field].parse(f"999999999.5{unit}")
    native = profiles.load(A15).native()
    core.load().check_profile({**native, field: [below.numerator, below.denominator]})
    with pytest.raises(Trouble, match="it must be less than"):
        core.load().check_profile({**native, field: 10**9})
    for text in ("1000000000", f"0.{'0' * 20}1"):
        with pytest.raises(ValueError, match=r"it must be (0 to|more than 0)"):
            FIELDS[field].parse(text + unit)


def test_a_number_out_of_range_names_file_field_and_range(tmp_path):
    path = tmp_path / "big.toml"
    path.write_text(f'from = "{A15}"\n[hpu]\ncount = {{ value = "257", label = "proposed", source = "x" }}\n')
    with pytest.raises(Trouble, match=r"big\.toml: hpu\.count = '257': it must be 1 to 256"):
        profiles.load(path)
    with pytest.raises(Trouble, match=r"hpu\.clock = '2 THz': it must be 1 Hz to 1 THz"):
        profiles.changed(profiles.load(A15), [("hpu.clock", "2 THz")])


# ---- words ----


@pytest.mark.parametrize(
    ("word", "ps_per_byte"),
    [
        ("gen1x1", Fraction(4000)),
        ("gen2x8", Fraction(250)),
        ("gen3x16", Fraction(8125, 128)),
        ("PCIe Gen4 x32", Fraction(8125, 512)),
        ("gen5x16", Fraction(8125, 512)),
        ("gen6x16", Fraction(8000 * 256, 64 * 236 * 16)),
        ("15.869140625 ps/B", Fraction(8125, 512)),
        ("32 GB/s", Fraction(125, 4)),
    ],
)
def test_generations_of_pcie(word, ps_per_byte):
    assert FIELDS["pcie.byte_time"].parse(word) == ps_per_byte


@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("100GbE", "100 Gbit/s"),
        ("200gbe", "200 Gbit/s"),
        ("QDR", "4 GB/s"),
        ("FDR", "600/11 Gbit/s"),
        ("EDR", "100 Gbit/s"),
        ("hdr", "25 GB/s"),
        ("NDR", "50 GB/s"),
        ("Slingshot", "25 GB/s"),
        ("37.25 ps/B", "37.25 ps/B"),
    ],
)
def test_names_of_links(word, same):
    assert FIELDS["link.byte_time"].parse(word) == units.parse_rate(same)


@pytest.mark.parametrize(
    ("field", "text", "sentence"),
    [
        ("pcie.byte_time", "gen7x16", "PCIe is gen1 to gen6, with 1, 2, 4, 8, 16, 32 lanes"),
        ("pcie.byte_time", "gen4x3", "PCIe is gen1 to gen6"),
        ("pcie.byte_time", "HDR", "a word will do: 'gen4x16'"),
        ("link.byte_time", "300GbE", "'200GbE'"),
        ("link.byte_time", "gen4x16", "'HDR'"),
        ("memory.channel_byte_time", "HDR", "it must begin with a number"),
    ],
)
def test_a_word_that_there_is_not(field, text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        FIELDS[field].parse(text)


def test_profiles_are_changed_by_words():
    profile = profiles.changed(
        profiles.load("fpspin-vcu1525"), [("pcie.byte_time", "gen3x16"), ("link.byte_time", "100GbE")]
    )
    assert profile.native() == profiles.load("fpspin-vcu1525").native()  # as its data sheet says


def test_every_word_is_one_rate():
    assert all(rate_words.link_rate(word) == 8000 / link.gbit_s for word, link in rate_words.LINKS.items())
    assert len(rate_words.LINKS_BY_KEY) == len(rate_words.LINKS)


# ---- all at once ----


def test_all_missing_keys_are_one_sentence(tmp_path):
    lines = (ROOT / f"data/nics/{A15}.toml").read_text().splitlines()
    path = tmp_path / "less.toml"
    path.write_text(
        "\n".join(line for line in lines if not line.startswith(("wire =", "packet =", "clock =")))
    )
    with pytest.raises(Trouble) as caught:
        profiles.load(path)
    assert caught.value.message == (
        f"{path}: 4 keys link.wire, match.packet, hpu.clock, scheduler.clock are missing; "
        'from = "NAME" at the file\'s top takes those of another profile'
    )


def test_a_file_without_a_core_names_what_every_core_has(tmp_path):
    path = tmp_path / "coreless.toml"
    path.write_text('[hpu]\ncount = { value = "4", label = "given", source = "x" }\n')
    with pytest.raises(Trouble) as caught:
        profiles.load(path)
    named = re.findall(r"[a-z0-9]+\.[a-z_0-9]+", caught.value.message.partition(" keys ")[2])
    assert set(named) == set(profiles.fields_of("a15")) & set(profiles.fields_of("pulp")) - {"hpu.count"}


def test_all_unknown_keys_are_one_sentence(tmp_path):
    path = tmp_path / "odd.toml"
    entry = '{ value = "1", label = "given", source = "x" }'
    path.write_text(
        f'base = "{A15}"\n[hpu]\ncuont = {entry}\nclok = {entry}\n[lnik]\npayload = {entry}\n[match]\n'
    )
    with pytest.raises(Trouble) as caught:
        profiles.load(path)
    for part in (
        "'base' stands outside of a section",
        "unknown key hpu.cuont; did you mean 'hpu.count'?",
        "unknown key hpu.clok; did you mean 'hpu.clock'?",
        "unknown section [lnik]; did you mean 'link'?",
        "section [match] is empty",
    ):
        assert part in caught.value.message


def test_a_host_profile_names_all_that_is_missing(tmp_path):
    path = tmp_path / "host.toml"
    path.write_text('[host]\nclock = { value = "1 GHz", label = "given", source = "x" }\n')
    with pytest.raises(
        Trouble, match=f"{len(profiles.HOST_FIELDS) - 1} keys host.memory_latency, .* missing"
    ):
        profiles.load_host(path)


# ---- the page ----


def test_the_page_is_made_from_the_table():
    ran = subprocess.run(
        [sys.executable, ROOT / "tools/profiles.py", "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_pages_example_is_a_profile(tmp_path):
    page = (ROOT / "docs/formats/profile.md").read_text(encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    profile, base = profiles.load(path), profiles.load(A15)
    assert {field for field in base.entries if profile[field] != base[field]} == {"hpu.clock"}
    assert profile.entries["pcie.byte_time"].text == "gen5x16"  # 16 lanes of it are as fast as 32 of gen4
    assert profile.entries["pcie.byte_time"].source == "the card's data sheet"
    assert profile.entries["link.gap"] == base.entries["link.gap"]


# ---- templates ----


@pytest.mark.parametrize("base", profiles.names())
def test_a_template_is_its_base(tmp_path, base):
    path = tmp_path / "mine.toml"
    path.write_text(profiles.template("my card", base))
    profile = profiles.load(path)
    assert profile.name == "my card"
    assert profile.entries == profiles.load(base).entries
    assert profile.host == profiles.load(base).host


@pytest.mark.parametrize("base", [A15, PULP])
def test_a_template_has_every_key_with_unit_range_and_number(tmp_path, base):
    text = profiles.template("mine", base)
    blocks = [" ".join(block.replace("\n# ", " ").split()) for block in text.split("\n\n")]
    for field, entry in profiles.load(base).entries.items():
        (block,) = [block for block in blocks if f" {field} = " in block]
        for part in (FIELDS[field].meaning, FIELDS[field].unit, FIELDS[field].range, entry.text, entry.label):
            assert part in block
    path = tmp_path / "mine.toml"
    keys = re.sub(r"(?m)^# ([a-z0-9]+\.[a-z_0-9]+ = )", r"\1", text)
    path.write_text(keys)
    with pytest.raises(Trouble, match="has no source"):  # who takes a number says where it is from
        profiles.load(path)
    path.write_text(keys.replace('source = ""', 'source = "mine"'))
    mine = profiles.load(path)
    assert mine.native() == profiles.load(base).native()
    assert {entry.source for entry in mine.entries.values()} == {"mine"}


def test_a_template_of_a_file_names_it_by_its_place(tmp_path):
    (tmp_path / "first.toml").write_text(profiles.template('a "quoted" name\x7f', PULP))
    assert profiles.load(tmp_path / "first.toml").name == 'a "quoted" name\x7f'
    second = tmp_path / "elsewhere" / "second.toml"
    second.parent.mkdir()
    second.write_text(profiles.template("second", str(tmp_path / "first.toml")))
    assert tomllib.loads(second.read_text())["from"] == str(tmp_path / "first.toml")
    assert profiles.load(second).native() == profiles.load(PULP).native()
    with pytest.raises(Trouble, match="did you mean 'sc19-slingshot'"):
        profiles.template("mine", "sc19-slingsho")
