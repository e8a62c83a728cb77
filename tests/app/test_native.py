"""The programs of the C library under their own names on PATH."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spinloom import native
from spinloom.common import data

ROOT = Path(__file__).resolve().parents[2]


def test_each_command_is_a_function_that_becomes_its_program(monkeypatch):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    called = []
    monkeypatch.setattr(native, "become", called.append)
    names = [name for name, place in scripts.items() if place.startswith("spinloom.native:")]
    for name in names:
        getattr(native, scripts[name].partition(":")[2])()
    assert called == names == ["spinloom-info", "spinloom-threads", "spinloom-gateway"]


@pytest.mark.skipif(not (data.PACKAGE / "bin/spinloom-info").is_file(), reason="there is no spinloom-info")
def test_a_program_has_the_arguments_and_gives_its_exit_code():
    become = [sys.executable, "-c", "from spinloom import native; native.info()"]
    ran = subprocess.run([*become, "--machine"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "long messages here" in ran.stdout
    assert subprocess.run([*become, "--macine"], capture_output=True).returncode == 2


def test_a_program_that_is_missing_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(data, "PACKAGE", tmp_path)
    with pytest.raises(SystemExit) as ended:
        native.threads()
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert (
        said
        == f"spinloom-threads: {tmp_path}/bin/spinloom-threads cannot be run: No such file or directory\n"
    )
