"""tidy.py BUILD [--recent COMMITS] - runs clang-tidy on C++ sources that changed since they last passed.

The checks stand in .clang-tidy. A source is checked again when it, one of our headers that it includes,
.clang-tidy or its compile command changed; what passed is remembered in BUILD/tidy.json. Each source is
read by itself, also where BUILD compiles several at once: one that forgets an include is found. Exit code
1: something was found.

--recent looks at what changed in that many latest commits or since: at each source that did, and for the
headers that did at as few more sources as read them all. Without git, or where the history is shorter, it
looks at every source.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "src", ROOT / "include")
BIN = Path(sys.executable).parent  # the environment that requirements.txt fills


def digest(paths: list[Path], extra: str) -> str:
    """One hash over the contents of files and a string."""
    total = hashlib.sha256(extra.encode())
    for path in sorted(paths):
        total.update(path.read_bytes())
    return total.hexdigest()


@functools.cache
def included(path: Path) -> tuple[Path, ...]:
    """Our headers that a file names."""
    names = re.findall(r'^ *#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    places = [(folder / name).resolve() for name in names for folder in (path.parent, *FOLDERS)]
    return tuple(place for place in places if place.is_file())


def headers_of(source: Path) -> set[Path]:
    """Our headers that a source reads, directly or by another."""
    headers: set[Path] = set()
    ahead = [source]
    while ahead:
        new = set(included(ahead.pop())) - headers
        headers |= new
        ahead += new
    return headers


def configured(build: Path) -> Path:
    """A folder configured as BUILD is, but with a compile command for each source by itself."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    settings = re.findall(
        r"^((?:SPINLOOM_(?!UNITY)\w+|Python_EXECUTABLE|CMAKE_BUILD_TYPE):.*)$", cache, re.MULTILINE
    )
    folder = build / "tidy"
    options = [f"-D{one}" for one in ("SPINLOOM_UNITY=OFF", *settings)]
    command = [BIN / "cmake", "-S", ROOT, "-B", folder, "-GNinja", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return folder


def for_clang(folder: Path) -> list[dict]:
    """The compile commands, in the folder as well, less the options that only GCC knows."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    gcc_only = re.compile(r" -mmem(set|cpy)-strategy=\S+")
    known = [{**one, "command": gcc_only.sub("", one["command"])} for one in commands]
    (folder / "compile_commands.json").write_text(json.dumps(known), encoding="utf-8")
    return known


def changed_lately(commits: int) -> set[Path] | None:
    """Files that differ from those of so many commits ago; None where nobody knows."""
    git = ["git", "-C", str(ROOT)]
    listings = (
        [*git, "diff", "--name-only", f"HEAD~{commits}"],
        [*git, "ls-files", "--others", "--exclude-standard"],
    )
    names: list[str] = []
    for listing in listings:
        try:
            done = subprocess.run(listing, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        if done.returncode != 0:
            return None
        names += done.stdout.splitlines()
    return {ROOT / name for name in names}


def covering(read_by: dict[Path, set[Path]], changed: set[Path]) -> set[Path]:
    """The sources that changed, and others until each changed file is read by one of them.

    `read_by` has for each source the files that it reads, itself among them. The next source is always the
    one that reads the most changed files that none has read, the first by name among equals.
    """
    chosen = changed & read_by.keys()
    unread = changed & set().union(*read_by.values()) - set().union(*(read_by[source] for source in chosen))
    while unread:
        best = min(read_by, key=lambda source: (-len(read_by[source] & unread), source))
        chosen.add(best)
        unread -= read_by[best]
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--recent", type=int, metavar="COMMITS")
    options = parser.parse_args()
    build = options.build.resolve()
    lately = changed_lately(options.recent) if options.recent else None
    database = configured(build)
    commands = for_clang(database)
    remembered_at = build / "tidy.json"
    passed = json.loads(remembered_at.read_text(encoding="utf-8")) if remembered_at.exists() else {}

    sources = {Path(command["file"]): command["command"] for command in commands}
    sources = {source: command for source, command in sources.items() if source.is_relative_to(ROOT / "src")}
    read_by = {source: {source, *headers_of(source)} for source in sources}
    rules = ROOT / ".clang-tidy"
    chosen = set(sources) if lately is None or rules in lately else covering(read_by, lately)
    keys = {
        source: digest([rules, *read_by[source]], sources[source]) for source in sources if source in chosen
    }
    work = {source: key for source, key in keys.items() if passed.get(str(source)) != key}

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
    print(f"clang-tidy: {len(work)} of {len(sources)} sources checked, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
