"""NIC profiles: complete, exact, each number with its source; wrong files are refused by name."""

import json

import pytest

from spinloom.common.data import folder
from spinloom.common.errors import Trouble
from spinloom.nics import profiles

PATH = folder("nics") / "sc19-slingshot.toml"


@pytest.mark.parametrize("name", profiles.names())
def test_every_shipped_profile_is_complete(name):
    profile = profiles.load(name)
    assert profile.name == name
    assert list(profile.native()) == profiles.fields_of(str(profile["hpu.core"]), profile.entries)
    assert all(isinstance(value, int | str | list) for value in profile.native().values())


def test_the_section_of_frames_is_whole_or_absent(tmp_path):
    text = (folder("nics") / "fpspin-vcu1525.toml").read_text()
    whole = profiles.load("fpspin-vcu1525")
    assert whole["frame.ingress_max"] == 70
    begin = text.index("[frame]")
    without = tmp_path / "without.toml"
    without.write_text(text[:begin])
    assert not any(field.startswith("frame.") for field in profiles.load(without).entries)
    part = tmp_path / "part.toml"
    part.write_text(text[: text.index("ingress_max = ")])
    with pytest.raises(Trouble, match=r"key frame.ingress_max is missing"):
        profiles.load(part)


def test_values_are_exact():
    native = profiles.load("sc19-slingshot").native()
    assert native["link.byte_time"] == [149, 4]
    assert native["match.header"] == 30_000
    # PCIe Gen4 x32: 32 lanes of 16 GT/s, 128 of 130 bits carry data.
    assert native["pcie.byte_time"] == [8125, 512]
    assert pytest.approx(10**12, rel=1e-9) == 8125 * (32 * 16 * 10**9 * 128 // 130 // 8) // 512
    assert native["checkpoint.epsilon"] == [1, 5]


@pytest.mark.parametrize(
    ("old", "new", "complaints"),
    [
        ("[match]\nheader", "[match]\nheadr", ["unknown key match.headr", "match.header"]),
        ('value = "30 ns"', 'value = "30 nanos"', ["match.header", "30 nanos", "33.4 ns"]),
        ('value = "a15"', 'value = "a16"', ["hpu.core", "a16", "a15"]),
        (
            'value = "250 ns", label = "given"',
            'value = "250 ns", label = "gven"',
            ["pcie.latency", "gven", "given"],
        ),
        ('source = "SC\'19 paper, section 3.2.4"', 'source = ""', ["checkpoint.paper_bytes", "no source"]),
        ('payload = { value = "2048 B", label = "given",', 'payload = { label = "given",', ["link.payload"]),
        ("[match]", "[match", ["cannot be read"]),
        ("[match]", "[mach]\n[match]", ["unknown section [mach]", "did you mean 'match'"]),
        ("[match]\nheader", "[mtach]\nheader", ["unknown section [mtach]", "did you mean 'match'"]),
        ("[match]", "[pulp]\n[match]", ["section [pulp] is empty"]),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, old, new, complaints):
    text = PATH.read_text()
    assert old in text
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text.replace(old, new, 1))
    with pytest.raises(Trouble) as caught:
        profiles.load(wrong)
    assert caught.value.code == "invalid"
    for complaint in (str(wrong), *complaints):
        assert complaint in caught.value.message


def test_all_wrong_values_are_named(tmp_path):
    wrong = tmp_path / "wrong.toml"
    text = PATH.read_text().replace('value = "30 ns"', 'value = "30 nanos"', 1)
    wrong.write_text(text.replace('value = "250 ns", label = "given"', 'value = "250 ns", label = "gven"', 1))
    with pytest.raises(Trouble) as caught:
        profiles.load(wrong)
    assert "30 nanos" in caught.value.message
    assert "gven" in caught.value.message
    with pytest.raises(Trouble) as caught:
        profiles.changed(profiles.load(PATH), [("hpu.clock", "3"), ("hpu.cont", "4"), ("match.header", "x")])
    for complaint in ("hpu.clock = '3'", "has no hpu.cont; did you mean 'hpu.count'", "match.header = 'x'"):
        assert complaint in caught.value.message


def test_a_missing_key_is_named(tmp_path):
    lines = [line for line in PATH.read_text().splitlines() if not line.startswith("wire =")]
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("\n".join(lines))
    with pytest.raises(Trouble, match=r"link\.wire is missing"):
        profiles.load(wrong)


def test_a_field_of_another_core_is_refused(tmp_path):
    text = PATH.read_text()
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(
        text.replace("[memory]", '[pulp]\njump = { value = "2", label = "given", source = "x" }\n[memory]')
    )
    with pytest.raises(Trouble, match=r"pulp\.jump belongs to hpu\.core = pulp"):
        profiles.load(wrong)
    wrong.write_text("".join(line for line in text.splitlines(True) if not line.startswith("core =")))
    with pytest.raises(Trouble, match=r"hpu\.core is missing"):
        profiles.load(wrong)


def test_only_its_core_decides_which_fields_a_profile_has():
    a15, pulp = set(profiles.fields_of("a15")), set(profiles.fields_of("pulp"))
    assert {"a15.window", "hpu.memory_latency", "memory.channel_byte_time"} <= a15 - pulp
    assert {"pulp.l2_handler", "pulp.constants"} <= pulp - a15
    optional = {field for field in profiles.FIELDS if field.startswith(profiles.OPTIONAL)}
    assert a15 | pulp == set(profiles.FIELDS) - optional
    assert set(profiles.fields_of("pulp", [*pulp, *optional])) == pulp | optional


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(Trouble, match="did you mean 'sc19-slingshot'"):
        profiles.load("sc19-slingshoot")


def test_a_file_without_its_ending_is_answered_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").touch()
    with pytest.raises(Trouble, match=r"no NIC profile 'mine'; did you mean 'mine\.toml'\?"):
        profiles.load("mine")


def test_a_changed_profile_says_what_was_changed():
    profile = profiles.load("sc19-slingshot")
    assert str(profile) == "sc19-slingshot, host i7-4770"
    faster = profiles.changed(profile, [("hpu.clock", "1 GHz")])
    both = profiles.changed(faster, [("hpu.count", "16"), ("hpu.clock", "2 GHz")])
    assert str(both) == "sc19-slingshot, host i7-4770, with hpu.clock = 2 GHz, hpu.count = 16"
    assert {field for field in profile.entries if profile[field] != both[field]} == {"hpu.clock", "hpu.count"}
    assert list(both.native()) == list(profile.native())
    assert profile["hpu.clock"] == 800_000_000


def test_a_new_profile_has_the_numbers_of_the_named_one_until_it_is_changed(spinloom, tmp_path):
    path = tmp_path / "mine.toml"
    made = spinloom("info", "nics", "sc19-slingshot", "--new", str(path))
    assert (made.code, made.out) == (0, "")
    assert f"--nic {path}" in made.err
    values = [
        {row["field"]: row["exact"] for row in json.loads(spinloom("info", "nics", nic, "--json").out)}
        for nic in ("sc19-slingshot", str(path))
    ]
    assert values[0] == values[1]
    again = spinloom("info", "nics", "pulp-22nm", "--new", str(path))
    assert (again.code, "--force" in again.err) == (2, True)
    assert spinloom("info", "nics", "pulp-22nm", "--new", str(path), "--force").code == 0
    assert 'from = "pulp-22nm"' in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--new", "mine.toml"), "say from which profile"),
        (("sc19-slingshot", "--new", "mine"), "ends with .toml"),
    ],
)
def test_a_new_profile_needs_a_base_and_a_name(spinloom, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    ran = spinloom("info", "nics", *arguments)
    assert ran.code == 2
    assert sentence in ran.err
    assert list(tmp_path.iterdir()) == []
