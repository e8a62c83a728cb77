"""The time of the first command as README.md states it, measured from a clone with nothing beside it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def stated_s() -> int:
    """Seconds of `make demo` from nothing."""
    found = re.search(
        r"`make demo` takes (\d+) seconds from nothing", (ROOT / "README.md").read_text("utf-8")
    )
    assert found, "README.md does not say how long make demo takes"
    return int(found[1])


def test_the_readme_states_how_long_the_demo_takes():
    assert stated_s() > 0


@pytest.fixture
def tree() -> Iterator[Path]:
    """A clone with nothing beside it, in a folder of an ordinary user."""
    if os.cpu_count() != 2:
        pytest.skip("README.md speaks of two cores")
    with tempfile.TemporaryDirectory(prefix="spinloom-first-hour-") as folder:
        tree = Path(folder) / "spinloom"
        subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", ORDINARY_USER, folder], check=True)
        yield tree


ORDINARY_USER = "nobody"


def made(target: str, tree: Path) -> float:
    """Runs a target of the Makefile as an ordinary user; seconds."""
    # Nothing of this run's environment: its interpreter, a compiler cache, the settings of a running make.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tree.parent), "CCACHE_DISABLE": "1"}
    user = {"user": ORDINARY_USER, "group": "nogroup", "extra_groups": ()} if os.getuid() == 0 else {}
    begin = time.monotonic()
    done = subprocess.run(["make", target], cwd=tree, env=environment, capture_output=True, text=True, **user)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return time.monotonic() - begin


@pytest.mark.slow
def test_both_commands_pass_for_an_ordinary_user_in_the_time_that_the_readme_says(tree):
    assert stated_s() / 1.5 < (taken_s := made("demo", tree)) < stated_s() * 1.5, f"{taken_s:.0f} s"
    made("test", tree)
