"""The verbs besides simulate, and what every verb promises."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import needs_engine
from patience import seconds
from spinloom import __version__
from spinloom.common import config, core
from spinloom.common.errors import nearest
from spinloom.nics import profiles
from spinloom.verbs.jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]


def test_version(spinloom):
    assert spinloom("--version").out == f"spinloom {__version__}\n"


def test_the_package_and_the_build_agree_on_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == __version__
    assert f"project(spinloom VERSION {__version__} " in (ROOT / "CMakeLists.txt").read_text()


def test_help_groups_the_verbs_by_job(spinloom):
    page = spinloom("--help").out
    places = [page.index(f"{job}:\n") for job in JOBS]
    assert places == sorted(places)
    for (job, verbs), end in zip(JOBS.items(), [*places[1:], len(page)], strict=True):
        part = page[page.index(job) : end]
        assert all(f"\n  {verb} " in part for verb in verbs)


def test_the_version_needs_no_engine_and_no_tables():
    """A tenth of a second: nothing is imported that only verbs need."""
    script = (
        "import sys\nfrom spinloom.cli import main\n"
        "try: main(['--version'])\nexcept SystemExit: pass\n"
        "later = ('rich', 'spinloom._core', 'spinloom.nics.profiles', 'numpy')\n"
        "print([name for name in later if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"spinloom {__version__}", "[]"]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("spinloom simulate --nic sc17-d", ["sc17-discrete"]),
        ("spinloom simulate --host zen", ["zen5"]),
        ("spinloom simulate --strategies seek,rw", ["seek,rw-cp"]),
        ("spinloom simulate --set hpu.cl", ["hpu.clock="]),
        ("spinloom explain mil", ["MILC", "MILC:16^4", "MILC:8^4"]),
        ("spinloom info nics pulp", ["pulp-22nm"]),
        ("spinloom nic read me/va", ["me/valid/0"]),
        ("spinloom paper va", ["validate"]),
    ],
)
def test_names_complete(words, completed):
    environment = {
        **os.environ,
        "_SPINLOOM_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "spinloom.cli"], env=environment, capture_output=True, text=True
    )
    assert set(completed) <= {line.partition(",")[2] for line in ran.stdout.splitlines()}, ran.stderr


def test_an_unknown_verb_is_answered_with_the_nearest(spinloom):
    ran = spinloom("explian")
    assert ran.code == 2
    assert "did you mean 'explain'" in ran.err
    ran = spinloom("info", "nicks")
    assert ran.code == 2
    assert "did you mean 'nics'" in ran.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("validate", "paper validate"),
        ("workloads", "info workloads"),
        ("sim.c", "spinloom sim sim.c"),
        ("app.goal", "spinloom goal app.goal"),
        ("handler words.c", "spinloom handler run words.c"),
        ("handler out/words.elf", "spinloom handler run out/words.elf"),
    ],
)
def test_a_sub_verb_or_a_file_in_the_place_of_a_verb(spinloom, words, meant):
    ran = spinloom(*words.split())
    assert ran.code == 2
    assert f"; did you mean '{meant}'?" in ran.err


def test_hidden_verbs_are_not_offered(spinloom):
    ran = spinloom("xxxxxxxx")
    assert "there are: simulate, explain" in ran.err
    assert "torture" not in ran.err + spinloom("tortur").err


def test_a_name_that_begins_so_is_nearer_than_one_that_is_spelt_alike():
    assert nearest("sc19", ["sc17", "sc19-slingshot"]) == "; did you mean 'sc19-slingshot'?"
    assert nearest("SC19-", ["sc17", "sc19-slingshot"]) == "; did you mean 'sc19-slingshot'?"
    assert nearest("sc18", ["sc17", "sc19-slingshot"]) == "; did you mean 'sc17'?"
    assert nearest("", ["one", "two"]) == "; there are: one, two"


@needs_engine
@pytest.mark.parametrize(
    "words",
    [
        "sim {}.c",
        "threads {}.c",
        "handler run {}.c",
        "handler disasm {}.elf",
        "nic send {} localhost",
        "nic run --config {}.toml --wire pcap:in,out",
        "explain {}.py:face",
        "explain {}.json",
        "explain {}.json:1",
        "goal {}.goal",
        "goal check {}.spl",
        "goal compare {}.bin",
        "predict {}",
        "predict {} --goal out.goal",
        "trace {}",
        "trace --live {}",
        "trace {} --import made",
        "sweep {}.toml --dry-run",
        "paper study spc {}.spc",
        "paper validate --golden {}.json",
        "paper validate --last --golden {}.json",
    ],
)
def test_an_input_file_that_is_not_there_exits_with_2(spinloom, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    ran = spinloom(*words.format("nowhere").split())
    assert ran.code == 2, ran.err
    assert "nowhere" in ran.err
    assert not any(tmp_path.iterdir())


@needs_engine
def test_a_nic_without_a_wire_is_answered_with_wires(spinloom):
    ran = spinloom("nic", "run")
    assert ran.code == 2
    assert "a NIC needs a wire: --wire packet:INTERFACE" in ran.err


def test_info_without_a_word_shows_the_versions(spinloom):
    assert spinloom("info").out == spinloom("info", "versions").out
    assert spinloom("info", "--csv").out == spinloom("info", "versions", "--csv").out


def test_nics_lists_every_number_with_its_source(spinloom):
    rows = json.loads(spinloom("info", "nics", "sc19-slingshot", "--json").out)
    assert [row["field"] for row in rows] == profiles.fields_of("a15")
    assert all(row["label"] in profiles.LABELS and row["source"] for row in rows)
    table = spinloom("info", "nics", "sc19-slingshot").out
    assert "37.25 ps/B" in table
    assert len(
        list(csv.DictReader(spinloom("info", "nics", "sc19-slingshot", "--csv").out.splitlines()))
    ) == len(rows)


def test_workloads_lists_applications_and_rows(spinloom):
    names = [row["application"] for row in json.loads(spinloom("info", "workloads", "--json").out)]
    assert {"MILC", "LAMMPS_full", "FFT2D", "WRF_y", "COMB"} <= set(names)
    rows = json.loads(spinloom("info", "workloads", "milc", "--json").out)
    assert rows[0]["datatype"] == "16^4"
    assert rows[0]["size_bytes"] == 98304
    assert "96 KiB" in spinloom("info", "workloads", "MILC").out


def test_info_says_where_a_value_comes_from(spinloom, monkeypatch):
    monkeypatch.setenv("SPINLOOM_SEED", "9")
    rows = {row["name"]: row for row in json.loads(spinloom("info", "settings", "--json").out)}
    assert (rows["SPINLOOM_SEED"]["value"], rows["SPINLOOM_SEED"]["origin"]) == ("9", "environment")
    assert rows["SPINLOOM_NIC"]["origin"] == "default"


def test_a_wrong_value_is_told_with_where_it_stands(spinloom, monkeypatch):
    monkeypatch.setenv("SPINLOOM_SEED", "abc")
    ran = spinloom("simulate", "MILC:8^4")
    assert ran.code == 2
    assert "Invalid value for SPINLOOM_SEED: 'abc'" in ran.err
    ran = spinloom("simulate", "MILC:8^4", "--seed", "x")
    assert "Invalid value for '--seed': 'x'" in ran.err


def test_an_unknown_variable_gets_a_warning(spinloom, monkeypatch):
    monkeypatch.setenv("SPINLOOM_SEDE", "9")
    ran = spinloom("info")
    assert ran.code == 0
    assert "did you mean 'SPINLOOM_SEED'" in ran.err


@pytest.mark.usefixtures("fake_engine")
def test_doctor_is_content_with_the_optional_missing(spinloom, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    ran = spinloom("doctor", "--json")
    found = {row["part"]: row["found"] for row in json.loads(ran.out)}
    assert ran.code == 0
    assert found["MPI"] == ""
    assert found["handler images"] == "seek, rw_cp"


def test_doctor_exits_with_3_when_a_needed_part_is_missing(spinloom, monkeypatch):
    monkeypatch.setattr("spinloom.common.data.handler_images", dict)
    ran = spinloom("doctor")
    assert ran.code == 3
    assert "handler images" in ran.err


def test_without_an_engine_simulate_exits_with_3(spinloom, fake_engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "spinloom._core", None)
    assert not core.available()
    ran = spinloom("simulate", "MILC")
    assert ran.code == 3
    assert "make setup" in ran.err


def test_the_pages_of_the_live_library_and_of_mpi_list_their_variables():
    """tests/house/test_site.py looks at the page of all."""
    pages = {
        kind: (ROOT / page).read_text(encoding="utf-8")
        for kind, page in (("live", "docs/live.md"), ("MPI", "docs/mpi.md"))
    }
    for variable in config.VARIABLES.values():
        page = pages.get(variable.help.partition(": ")[0])
        if page is not None:
            assert f"| `{variable.name}` | {variable.default} |".replace("|  |", "| |") in page


def run_command(*arguments: str, **streams) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from spinloom import cli; cli.main()", *arguments]
    return subprocess.run(
        command, stderr=subprocess.PIPE, text=True, timeout=seconds(60), check=False, **streams
    )


def test_output_that_cannot_be_written_is_an_environment_error():
    with open("/dev/full", "w") as full:
        ran = run_command("info", "nics", stdout=full)
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "cannot be written" in ran.stderr


@pytest.mark.parametrize(
    "verb",
    [
        ("bench", "layout", "--out"),
        ("calibrate", "--out"),
        ("paper", "figure", "8", "--out"),
        ("paper", "validate", "--out"),
    ],
)
def test_a_folder_that_cannot_be_written_is_found_out_before_the_work(tmp_path, verb):
    (tmp_path / "file").touch()
    ran = run_command(*verb, str(tmp_path / "file" / "results"), stdout=subprocess.PIPE)
    assert (ran.returncode, ran.stdout) == (3, ""), ran.stderr
    assert "cannot be written" in ran.stderr


def test_a_reader_that_goes_away_is_not_a_negative_result():
    read, write = os.pipe()
    os.close(read)
    ran = run_command("info", "nics", stdout=write)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_tables_keep_their_columns_on_a_narrow_terminal(spinloom, monkeypatch):
    monkeypatch.setattr("spinloom.common.output.WIDTH_OF_A_PIPE", 40)
    out = spinloom("simulate", "MILC:8^4").out
    assert "MILC" in out
    assert "checked" in out
    assert "\u2026" not in out


@needs_engine
@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "MILC:16^4", "FFT2D", "--strategies", "all", "-q"),
        ("simulate", "MILC:16^4", "--send", "all", "-q"),
        ("simulate", "--together", "MILC:16^4", "WRF_y:2x2", "--rounds", "1", "-q"),
        ("simulate", "--together", "MILC:16^4", "--peers", "4"),
        ("explain", "MILC:16^4", "--strategies", "seek"),
        ("info", "nics", "sc19-slingshot"),
        ("info", "nics", "pulp-22nm", "--area"),
        ("info", "workloads", "MILC"),
        ("info", "settings"),
    ],
)
def test_tables_fit_80_columns(spinloom, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    ran = spinloom(*arguments)
    assert ran.code == 0
    tables = [line.rstrip() for line in ran.out.splitlines() if "result hash" not in line]
    assert max(map(len, tables)) <= 80


def test_the_live_library_s_variables_are_known(monkeypatch):
    source = (ROOT / "src/live/process/settings.cpp").read_text(encoding="utf-8")
    table = source.split("known_variables{{", 1)[1].split("}};", 1)[0]
    live = set(re.findall(r'\{"(SPINLOOM_\w+)"', table))
    assert live, "settings.cpp has no table"
    assert live == {name for name, variable in config.VARIABLES.items() if variable.help.startswith("live: ")}
    page = (ROOT / "docs/live.md").read_text(encoding="utf-8")
    for name, values, meaning in re.findall(r'\{"(SPINLOOM_\w+)",\s*"([^"]*)",\s*"([^"]*)"\}', table):
        assert re.search(
            rf"^\| `{name}` \|[^|]*\| {re.escape(values)} \| {re.escape(meaning)} \|$", page, re.M
        )
        words = values.split(", ")
        if all(re.fullmatch(r"[a-z0-9-]+", word) for word in words):
            assert all(word in config.VARIABLES[name].help for word in words), (
                "'spinloom info settings' names all values"
            )
    others = {name for name in config.VARIABLES if name.startswith(config.PREFIX)} - live
    foreign = source.split("foreign[] = {", 1)[1].split("};", 1)[0]
    known = re.findall(r'"(SPINLOOM_\w+)"', foreign)
    assert all(any(name.startswith(start) for start in known) for name in others)


def test_the_mpi_layer_s_variables_are_known(monkeypatch):
    source = (ROOT / "src/mpi/messages/settings.cpp").read_text(encoding="utf-8")
    read = set(re.findall(r'name == "(SPINLOOM_\w+)"', source))
    assert read == {name for name, variable in config.VARIABLES.items() if variable.help.startswith("MPI: ")}
    for name in read:
        monkeypatch.setenv(name, config.VARIABLES[name].default)
    assert config.warnings() == []


@needs_engine
def test_doctor_and_info_show_the_live_nic(spinloom):
    rows = {row["part"]: row for row in json.loads(spinloom("doctor", "--json").out)}
    assert rows["live library"]["found"].endswith("libportals.so.4")
    assert "cop" in rows["live: long messages here"]["found"]
    assert rows["live: UDP"]["found"]
    shown = subprocess.run(
        [sys.executable, "-m", "spinloom.cli", "info", "live"],
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )
    assert shown.returncode == 0, shown.stderr
    assert "max_pt_index" in shown.stdout
