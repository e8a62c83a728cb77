"""skips.py BUILD - says which C++ tests of the last ctest run were skipped, and why: SKIPPED n (reason)."""

from __future__ import annotations

import collections
import itertools
import sys
from pathlib import Path


def reasons(log: str) -> collections.Counter[str]:
    """GoogleTest writes 'FILE:LINE: Skipped' and the reason on the next line."""
    lines = log.splitlines()
    return collections.Counter(
        after.strip() for line, after in itertools.pairwise(lines) if line.endswith(": Skipped")
    )


def main() -> int:
    log = Path(sys.argv[1]) / "Testing/Temporary/LastTest.log"
    for reason, count in reasons(log.read_text(encoding="utf-8", errors="replace")).items():
        print(f"SKIPPED {count} ({reason})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
