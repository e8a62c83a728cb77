"""pytests.py [ARGUMENT ...] - runs pytest, and gives few tests that failed a second try of their own.

Many tests start processes, kill them and wait for what must happen; on a busy machine one of some thousand
may fail that is right. A run in which at most FEW tests failed runs these once more, by themselves. One that
passes then is printed as UNSTEADY, and is a fault to be looked into: of the test or of the product. One that
fails again fails the run, and so do more than FEW at a time, and a run that could not begin.

One worker a processor runs tests, at least two; tests/conftest.py says which tests share one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FEW = 3
WORKERS = ("-n", str(max(2, os.cpu_count() or 1)))
FAILED = 1  # pytest's exit code when tests ran and some failed


def ran(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "--durations=30", *arguments]
    return subprocess.run(command, cwd=ROOT).returncode


def failed_last() -> list[str]:
    path = ROOT / ".pytest_cache/v/cache/lastfailed"
    return sorted(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def main(arguments: list[str], run=ran, failures=failed_last) -> int:
    code = run("--cache-clear", *WORKERS, *arguments)
    failed = failures()
    if code != FAILED or not 0 < len(failed) <= FEW:
        return code
    print(f"{len(failed)} of the tests failed: a second try of {', '.join(failed)}", flush=True)
    if code := run(*failed):
        return code
    for name in failed:
        print(f"UNSTEADY {name} failed once and passed then")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
