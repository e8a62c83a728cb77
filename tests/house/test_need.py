"""tools/need.sh names the first missing prerequisite in one sentence and exits with 3."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/need.sh"


def need(what="build", **variables):
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    done = subprocess.run([SCRIPT, what], env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def program(folder, text):
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_this_machine_has_what_the_build_needs():
    assert need() == (0, "")


@pytest.mark.parametrize(
    ("variable", "script", "complaint"),
    [
        ("PYTHON", None, "there is no"),
        ("PYTHON", 'case "$2" in *version_info*) exit 1;; esac; echo Python 3.9.2', "3.11 or later"),
        ("PYTHON", 'case "$2" in *venv*) exit 1;; esac', "apt install python3-venv"),
        ("PYTHON", 'case "$2" in *sysconfig*) echo /nonexistent;; esac', "apt install python3-dev"),
        ("CXX", None, "there is no C++ compiler"),
        ("CXX", "exit 1", "does not compile C++20"),
    ],
)
def test_a_missing_part_is_named(tmp_path, variable, script, complaint):
    value = "/nonexistent/program" if script is None else program(tmp_path, script)
    code, said = need(**{variable: value})
    assert code == 3
    assert complaint in said
    assert said.startswith("spinloom: ")
    assert said.count("\n") == 1


def test_without_googletest_and_root_the_tests_say_so(tmp_path):
    compiler = program(tmp_path, "grep -q gtest && exit 1 || exit 0")
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    code, said = need("test", CXX=compiler, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert code == 3
    assert "GoogleTest" in said
    assert said.count("\n") == 1
