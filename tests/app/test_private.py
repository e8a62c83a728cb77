"""Private folders: whose they are, also where a user namespace gives this user another number."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import patience
from spinloom.accelerate import calibration
from spinloom.common import private
from spinloom.common.errors import Trouble

STRANGER = 12345


@pytest.fixture
def home(monkeypatch, tmp_path) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(private, "own_folders", {})
    return tmp_path


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_the_cache_is_this_users_alone(home):
    folder, why = private.cache_folder("zig")
    assert (folder, why) == (home / ".cache/spinloom/zig", "")
    assert mode_of(folder) == mode_of(folder.parent) == 0o700
    assert private.cache_folder("zig") == (folder, "")


@pytest.mark.parametrize("trick", ["link", "open", "open inside", "file"])
def test_what_others_may_have_made_is_not_used(home, tmp_path, trick):
    base = home / ".cache/spinloom"
    (base / "zig").mkdir(parents=True, mode=0o700)
    if trick == "link":
        (base / "zig").rename(tmp_path / "away")
        (base / "zig").symlink_to(tmp_path / "away")
    elif trick == "open":
        base.chmod(0o775)
    elif trick == "open inside":
        (base / "zig").chmod(0o777)
    else:
        (base / "zig").rmdir()
        (base / "zig").touch()
    folder, why = private.cache_folder("zig")
    assert not folder.is_relative_to(home)
    assert mode_of(folder) == 0o700
    expected = {"link": "is a link", "open": "chmod go-w", "open inside": "chmod go-w", "file": ""}[trick]
    assert expected in why
    assert (why == "") == (expected == "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hand a folder to another user")
def test_another_users_folder_is_not_used(home):
    theirs = home / ".cache/spinloom"
    theirs.mkdir(parents=True)
    os.chown(theirs, STRANGER, STRANGER)
    folder, why = private.cache_folder("zig")
    assert not folder.is_relative_to(home)
    assert f"{theirs} belongs to user {STRANGER}" in why


@pytest.mark.parametrize("where", ["/proc/nothing", "/dev/null", "", None])
def test_without_a_home_that_can_be_written_to(home, monkeypatch, where):
    if where is None:
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # this user has no entry
    else:
        monkeypatch.setenv("HOME", where)
    folder, why = private.cache_folder("zig")
    assert (mode_of(folder), why) == (0o700, "")
    assert "spinloom-zig-" in folder.name
    assert private.cache_folder("zig")[0] == folder  # it lasts for the life of this process
    folder.rmdir()
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)  # a cleaner has removed it, and somebody has found its name
    assert private.cache_folder("zig")[0] != folder
    assert calibration.load()[1]  # the shipped one


def test_a_folder_of_one_s_own_ends_with_the_process(home):
    code = "from spinloom.common import private; print(private.own_folder('zig'))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.startswith("/")
    assert not Path(made.stdout.strip()).exists()


def test_sockets_lie_in_a_folder_that_is_checked_at_each_use(home, monkeypatch, tmp_path):
    assert private.runtime_folder() == Path(f"/tmp/spinloom-{private.number_outside()}")
    runtime = tmp_path / "run"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert private.runtime_folder() == runtime  # nothing is there, and nothing runs
    runtime.mkdir(0o700)
    assert private.runtime_folder() == runtime
    runtime.chmod(0o777)
    with pytest.raises(Trouble, match=r"XDG_RUNTIME_DIR: .*chmod go-w"):
        private.runtime_folder()


def in_namespace(*options: str, code: str) -> str:
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare command")
    done = subprocess.run(
        ["unshare", *options, sys.executable, "-c", f"from spinloom.common import private\n{code}"],
        capture_output=True,
        text=True,
        timeout=patience.seconds(60),
    )
    if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_namespaces_root_keeps_the_number_of_its_user():
    assert in_namespace("-r", code="print(private.number_outside())") == str(os.getuid())
    assert in_namespace("-r", code="print(private.is_this_user(0))") == "True"


def test_who_has_no_number_in_a_namespace_owns_nothing_there():
    """All files of users who are not mapped seem to be one user's, also this one's."""
    code = "import os; print(private.is_this_user(os.geteuid()), private.trouble_with(private.Path('/')))"
    assert "False / may be anybody's" in in_namespace("-U", code=code)
    code = "folder, why = private.cache_folder('zig'); print(folder.stat().st_mode & 0o777 == 0o700)"
    assert in_namespace("-U", code=code) == "True"
