"""tidy.py BUILD - runs clang-tidy on the project's C++ sources that changed since they last passed.

The checks stand in .clang-tidy. A source is checked again when it, one of our headers that it includes,
.clang-tidy or its compile command changed; what passed is remembered in BUILD/tidy.json. BUILD must be
built with Ninja, which knows the headers. Exit code 1: something was found.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent  # of the environment that requirements.txt fills


def digest(paths: list[Path], extra: str) -> str:
    """One hash over the contents of files and a string."""
    total = hashlib.sha256(extra.encode())
    for path in sorted(paths):
        total.update(path.read_bytes())
    return total.hexdigest()


def headers_of(build: Path) -> dict[Path, list[Path]]:
    """Our headers that each object file was compiled with."""
    listing = subprocess.run(
        [BIN / "ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True
    )
    headers: dict[Path, list[Path]] = {}
    for line in listing.stdout.splitlines():
        if line and not line.startswith((" ", "ninja:")):
            headers[build / line.split(": #deps")[0]] = current = []
        elif line.strip():
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(build) and path.exists():
                current.append(path)
    return headers


def for_clang(commands: list[dict], folder: Path) -> Path:
    """A folder with the compile commands, less the options that only GCC knows."""
    folder.mkdir(exist_ok=True)
    gcc_only = re.compile(r" -mmem(set|cpy)-strategy=\S+")
    known = [{**one, "command": gcc_only.sub("", one["command"])} for one in commands]
    (folder / "compile_commands.json").write_text(json.dumps(known), encoding="utf-8")
    return folder


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    database = for_clang(commands, build / "tidy")
    headers = headers_of(build)
    remembered_at = build / "tidy.json"
    passed = json.loads(remembered_at.read_text(encoding="utf-8")) if remembered_at.exists() else {}

    work = {}
    for command in commands:
        source = Path(command["file"])
        if not source.is_relative_to(ROOT / "src"):
            continue
        read = [source, ROOT / ".clang-tidy", *headers.get(build / command["output"], [])]
        key = digest(read, command["command"])
        if passed.get(str(source)) != key:
            work[source] = key

    def tidy(source: Path) -> tuple[Path, int, str]:
        arguments = [BIN / "clang-tidy", "--quiet", "-p", str(database), str(source)]
        done = subprocess.run(arguments, capture_output=True, text=True)
        return source, done.returncode, done.stdout or done.stderr

    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, text in pool.map(tidy, work):
            if code == 0:
                passed[str(source)] = work[source]
            else:
                failed += 1
                print(text.strip())
    remembered_at.write_text(json.dumps(passed, indent=0, sort_keys=True), encoding="utf-8")
    print(
        f"clang-tidy: {len(work)} checked, {len(commands) - len(work)} unchanged or not ours, {failed} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
