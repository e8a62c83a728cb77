"""The time of the first command as README.md states it, measured from a clone with nothing beside it."""

from __future__ import annotations

import os
import re
import subprocess
import time
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


@pytest.mark.slow
def test_the_demo_takes_as_long_as_the_readme_says(tmp_path):
    if os.cpu_count() != 2:
        pytest.skip("README.md speaks of two cores")
    tree = tmp_path / "spinloom"
    subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
    # Nothing of this run's environment: its interpreter, a compiler cache, the settings of a running make.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ["HOME"], "CCACHE_DISABLE": "1"}
    begin = time.monotonic()
    done = subprocess.run(["make", "demo"], cwd=tree, env=environment, capture_output=True, text=True)
    taken_s = time.monotonic() - begin
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert stated_s() / 1.5 < taken_s < stated_s() * 1.5, f"make demo took {taken_s:.0f} s"
