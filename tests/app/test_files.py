"""Files that verbs write: whole or not at all, and a full disk is named as that."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import files
from spinloom.common.errors import Trouble

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def full_disk(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_what_was_there_and_no_half_file(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    files.write(path, "earlier")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(Trouble, match="the disk is full") as caught:
        files.write(path, "later")
    assert caught.value.exit_code == 3
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


@needs_full
def test_a_device_is_written_and_never_replaced():
    with pytest.raises(Trouble, match="/dev/full is not written: the disk is full"):
        files.write(FULL, b"bytes")
    assert FULL.is_char_device()
    files.write(Path("/dev/null"), b"bytes")
    assert Path("/dev/null").is_char_device()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(Trouble, match="cannot be written: No such file"):
        files.write(tmp_path / "none" / "table.csv", "text")


@needs_full
@needs_engine
@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "MILC:8^4", "--strategies", "seek", "-q", "--force", "--timeline", "/dev/full"),
        ("explain", "vector(4, 1, 2, double)", "--strategies", "none", "--plot", "/dev/full"),
    ],
)
def test_a_verb_on_a_full_disk_exits_with_3(spinloom, arguments):
    ran = spinloom(*arguments)
    assert ran.code == 3
    assert "the disk is full" in ran.err


@needs_engine
@pytest.mark.parametrize(
    "verb", [("simulate", "MILC:8^4", "--strategies", "seek", "-q"), ("paper", "study", "raid", "-q")]
)
def test_results_on_a_full_disk_exit_with_3(spinloom, tmp_path, monkeypatch, verb):
    monkeypatch.setattr(os, "fsync", full_disk)
    ran = spinloom(*verb, "--out", str(tmp_path / "out"))
    assert ran.code == 3
    assert "the disk is full" in ran.err
    assert ran.out  # the result is printed all the same
    assert list((tmp_path / "out").iterdir()) == []
