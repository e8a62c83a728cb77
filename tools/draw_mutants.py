"""Draws mistakes by a seed, puts each into a copy of the sources, and says which of them the tests find.

    python tools/draw_mutants.py [--seed 1] [--mutants 60] [--list] [--again] [PART OF A FILE ...]
    python tools/draw_mutants.py --named    # those that draw_mutants.toml names instead

A mistake is an operator of OPERATORS at one place of a line of the sources in FOLDERS.
The seed gives each possible mistake a rank, which depends on its file and on its line's text only: an edit
elsewhere changes no draw. Each folder has as many mistakes as the others. One that does not compile is
replaced by the folder's next.

The copy and its build folder lie in build/drawn. Each mistake is built, and the tests of its folder run:
first the quick ones, then those of whole programs for what the quick ones do not find. A test that fails is
run again by itself; one that passes then has found nothing. build/drawn/results.jsonl keeps the outcomes, so
that a run that was stopped goes on. --again tries once more what no test found, after tests have been added.

A mistake that changes nothing that anyone can see stands in draw_mutants.toml with the reason. Exit code 1:
one without a reason was not found. The tests of whole programs use the Python package of `make setup` with
the libraries of the copy.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "drawn"
TREE, BUILD, PACKAGE = PLACE / "tree", PLACE / "build", PLACE / "python"
RESULTS, MARK = PLACE / "results.jsonl", PLACE / "mutated"
# Which of tests/mpi are for a file of the layer, by a part of its name; the last ones are for all others.
JOBS_OF_MPI = (
    (("rma", "window", "epoch"), ("rma", "windows")),
    (("recorder", "report"), ("report",)),
    (("offload", "teams", "nic", "collective"), ("offload", "collectives")),
    (("lent", "loan", "squeezed", "narrow", "device", "offer", "too_long"), ("gpu", "too_long")),
    (("",), ("names", "lists", "pack", "oneself", "freed", "communicators", "rules", "python", "layer")),
)
# What they need; without the driver for tests all that is of GPUs is skipped.
LAYER = ("spinloom_mpi_library", "spinloom_heap", "spinloom_test_cuda", "spinloom_test_nvrtc")
FOLDERS = {
    "mpi": "src/mpi",
    "wire": "src/nic/wire",
    "collective": "src/portals/collective",
    "predict": "src/predict/program",
    "gpu": "src/memory/gpu",
    "live": "src/live",
}
# What a named mistake may lie in, too.
NAMED_FOLDERS = {**FOLDERS, "nic": "src/nic/portals", "spin": "src/nic/spin"}

# What no mistake is drawn from.
NOT_DRAWN = {
    "*_test.*": "it is a test",
    "*.cu": "a GPU must run it",
    "kernel_fatbin.cpp": "a GPU must run it",
    **dict.fromkeys(("fabric_endpoint.cpp", "fabric_library.cpp"), "libfabric must be there"),
    "handles_*.hpp": "it holds the constants of one MPI",
}

# Each is looked for in lines without comments, texts, assertions and what the preprocessor reads.
OPERATORS = [
    *((f" {re.escape(a)} ", a, b) for a, b in (("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"))),
    *((f" {re.escape(a)} ", a, b) for a, b in (("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&"))),
    *((f" {re.escape(a)} ", a, b) for a, b in (("+", "-"), ("-", "+"))),
    (r" [+] 1(?![\w'.])", " + 1", ""),
    (r" - 1(?![\w'.])", " - 1", ""),
    (r"\bstd::min(?=[(<])", "std::min", "std::max"),
    (r"\bstd::max(?=[(<])", "std::max", "std::min"),
    (r"\bif \(!", "if (!", "if ("),
    (r"\breturn\b.*?\btrue\b", "true", "false"),
    (r"\breturn\b.*?\bfalse\b", "false", "true"),
    (r"\bcontinue;", "continue", "break"),
]
NO_CALL = r"(?:if|for|while|switch|return|throw|delete|sizeof|alignas|using|case|else|do|SPL_ASSIGN|co_\w+)\b"
CALL = re.compile(rf"(?!{NO_CALL})(?:\(void\))?[A-Za-z_][\w:]*(?:(?:\.|->|::)[\w:]+|\[\w+\])*\([^;{{}}]*\);")


def folder_of(file: str) -> str:
    return next(name for name, place in NAMED_FOLDERS.items() if file.startswith(place + "/"))


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    column: int  # the column in the line without its indentation
    nth: int  # the number among the lines of the file that read so
    text: str  # the line without its indentation
    change: str
    by: str

    @property
    def key(self) -> str:
        return f"{self.file} [{self.nth}] {self.text} [{self.column}] {self.change}"

    @property
    def folder(self) -> str:
        return folder_of(self.file)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def rank(self, seed: int) -> str:
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()

    def applied(self, source: str) -> str:
        lines = source.split("\n")
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: len(old) - len(old.lstrip())] + self.by
        return "\n".join(lines)


@dataclass(frozen=True)
class Named:
    """Text that stands in the file once, and what stands there instead."""

    name: str
    file: str
    text: str
    by: str

    key = property(lambda self: f"named: {self.name}")
    folder = property(lambda self: folder_of(self.file))
    change = property(lambda self: self.name)
    place = property(lambda self: self.file)

    def applied(self, source: str) -> str:
        if source.count(self.text) != 1:
            raise SystemExit(
                f"{self.file}: the text of '{self.name}' stands there {source.count(self.text)} times"
            )
        return source.replace(self.text, self.by)


def known_ones() -> dict[str, list[dict[str, str]]]:
    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        return tomllib.load(file)


def named() -> list[Named]:
    return [Named(**row) for row in known_ones().get("named", [])]


@functools.cache
def reasons() -> dict[tuple[str, str, str], str]:
    """Of each (file, line, change) that changes nothing that anyone can see."""
    rows = known_ones().get("equivalent", [])
    return {(row["file"], row["text"], row["change"]): row["why"] for row in rows}


def blank(text: str, begin: int, end: int) -> str:
    return text[:begin] + re.sub(r"[^\n]", "_", text[begin:end]) + text[end:]


LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])'(?:\\.|[^'\\\n])+'""", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ASSERTION = re.compile(r"\b(?:SPL_ASSERT|static_assert)\(")


def masked(source: str) -> str:
    """The source with "_" where no mistake is made; lines and columns stay."""
    source = LITERAL.sub(lambda match: re.sub(r"[^\n]", "_", match[0]), source)
    for match in ASSERTION.finditer(source):
        depth, at = 1, match.end()
        while depth > 0 and at < len(source):
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        source = blank(source, match.start(), at)
    for begin, end in for_gpus(source):
        source = blank(source, begin, end)
    return DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", "_", match[0]), source)


def for_gpus(source: str) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of each part that only a compiler for GPUs reads."""
    opened: list[int | None] = []  # each #if's place where such a part began
    for directive in re.finditer(
        r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b([^\n]*)", source, re.MULTILINE
    ):
        word, rest = directive[1], directive[2]
        if word in ("if", "ifdef", "ifndef"):
            opened.append(directive.end() if word == "ifdef" and "__CUDA" in rest else None)
        elif opened:
            begin = opened.pop()
            if begin is not None:
                yield begin, directive.start()
            if word != "endif":
                opened.append(None)


def changes_of(line: str, begins: bool) -> Iterator[tuple[int, int, str, str]]:
    """Begin, end, what stands there and what shall, in a masked line without indentation.

    begins: no statement of earlier lines goes on in it.
    """
    for pattern, old, new in OPERATORS:
        for found in re.finditer(pattern, line):
            begin = found.end() - len(old) if old in ("true", "false") else line.index(old, found.start())
            yield begin, begin + len(old), old, new
    if begins and CALL.fullmatch(line) and line.count("(") == line.count(")"):
        yield 0, len(line), line, ";"


def mutants_of(file: str, source: str) -> list[Mutant]:
    mutants = []
    seen: collections.Counter[str] = collections.Counter()
    plain = source.split("\n")
    begins = True
    for number, (text, line) in enumerate(zip(plain, masked(source).split("\n"), strict=True), 1):
        text, line = text.strip(), line.strip()
        for begin, end, old, new in changes_of(line, begins):
            change = "the call is left out" if new == ";" else f"{old.strip()} becomes {new or 'nothing'}"
            changed_text = text[:begin] + new + text[end:]
            mutants.append(Mutant(file, number, begin, seen[text], text, change, changed_text))
        seen[text] += 1
        if code := line.strip("_ "):
            begins = code.endswith((";", "{", "}", ":"))
    return mutants


def is_drawn(path: Path) -> bool:
    return path.suffix in (".cpp", ".hpp", ".h") and not any(fnmatch(path.name, one) for one in NOT_DRAWN)


def candidates(folder: str, seed: int) -> list[Mutant]:
    """In the order in which the seed draws them."""
    paths = [
        path
        for path in (ROOT / FOLDERS[folder]).rglob("*")
        if "testing" not in path.parts and not path.is_relative_to(ROOT / "src/live/process")
    ]
    all_of_them = [
        mutant
        for path in sorted(paths)
        if is_drawn(path)
        for mutant in mutants_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    return sorted(all_of_them, key=lambda mutant: mutant.rank(seed))


# The copy.


def content(name: str) -> bytes:
    held = (ROOT / name).read_bytes()
    if name == "cmake/floors.cmake":  # a mistake may leave a variable unused, and is linked once
        whole = b"check_ipo_supported(RESULT spinloom_whole OUTPUT ignored LANGUAGES CXX)"
        held = held.replace(b" -Werror", b"").replace(whole, b"set(spinloom_whole OFF)")
    return held


def copy_tree() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        to, held = TREE / name, content(name)
        if not to.is_file() or to.read_bytes() != held:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(held)
            to.chmod((ROOT / name).stat().st_mode)
    link = TREE / "build" / "drawn"  # tests look for what is built there
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(BUILD)
    for path in TREE.rglob("*"):
        if (
            path.is_file()
            and path.relative_to(TREE).as_posix() not in names
            and "__pycache__" not in path.parts
        ):
            path.unlink()


def forget_mutated() -> None:
    """Deletes what was built from a mistake."""
    if not MARK.exists():
        return
    began = MARK.stat().st_mtime_ns
    for path in BUILD.rglob("*"):
        if (
            path.is_file()
            and path.stat().st_mtime_ns >= began
            and (re.search(r"\.(o|a|so|so\.\d+)$", path.name) or os.access(path, os.X_OK))
        ):
            path.unlink()
    MARK.unlink()


def configure() -> None:
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    has_zig = importlib.util.find_spec("ziglang") is not None
    done = subprocess.run(
        [
            "cmake",
            "-S",
            str(TREE),
            "-B",
            str(BUILD),
            "-G",
            "Ninja",
            "-DSPINLOOM_TESTS=ON",
            "-DSPINLOOM_PYTHON=ON",
        ]
        + [f"-DSPINLOOM_HANDLERS={'ON' if has_zig else 'OFF'}", f"-DPython_EXECUTABLE={sys.executable}"]
        + ["-DSPINLOOM_CUDA=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DCMAKE_INSTALL_LIBDIR=lib"]
        + (launcher if shutil.which("ccache") else []),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def build(targets: tuple[str, ...], limit: float = 7200) -> str:
    """Builds the targets; returns the compiler's errors, "unbuilt" where nothing was to do, else ""."""
    done = run(["ninja", "-C", str(BUILD), "-j2", *targets], limit, {})
    if done.code == 0:
        return "unbuilt" if "no work to do" in done.output else ""
    if not re.search(r":\d+: error: |undefined reference|GoogleTestAddTests", done.output):
        raise SystemExit(f"the build fails, and not by a mistake:\n{done.output[-3000:]}")
    return done.output


# Running.


@dataclass(frozen=True)
class Ran:
    code: int | None  # None: it did not end in time
    seconds: float
    output: str


@functools.cache
def own_processes() -> tuple[str, ...]:
    """Words before a command: it has shared memory of its own, and what it leaves running ends with it.

    None where this user may not do that.
    """
    inside = 'mount -t tmpfs tmpfs /dev/shm; "$@"; exit $?'
    words = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside, "sh")
    try:
        done = subprocess.run([*words, "true"], capture_output=True)
    except FileNotFoundError:
        return ()
    return words if done.returncode == 0 else ()


def with_tools() -> dict[str, str]:
    """As make test calls its tests."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return {"PATH": path, "SPINLOOM_PYTHON_EXECUTABLE": sys.executable}


def run(command: list[str], limit: float, environment: dict[str, str], cwd: Path = PLACE) -> Ran:
    began = time.monotonic()
    log = PLACE / "said"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [*own_processes(), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **with_tools(), **environment},
            cwd=cwd,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ran(code, time.monotonic() - began, log.read_text(encoding="utf-8", errors="replace"))


class Check:
    """Tests that look at a mistake: run() says what they do, only() runs some of them."""

    def __init__(self, name: str, targets: tuple[str, ...], command: list[str], **environment: str) -> None:
        self.name, self.targets, self.command, self.environment = name, targets, command, environment
        self.usual = 0.0
        self.must_run = False  # a skipped test is a failed one

    def only(self, failed: list[str]) -> list[str]:
        return self.command

    def failed(self, output: str) -> list[str]:
        return []

    def attempt(self, limit: float, failed: list[str] | None = None) -> Ran:
        ran = run(self.only(failed) if failed else self.command, limit, self.environment, TREE)
        skips = self.must_run and ran.code == 0 and "[  SKIPPED ]" in ran.output
        return Ran(1, ran.seconds, ran.output) if skips else ran

    def measure(self) -> None:
        """Without a mistake: it must pass, and its time is the usual one."""
        ran = self.attempt(3600)
        if ran.code != 0:
            print(
                f"{self.name} fails without a mistake: {self.failed(ran.output)}; once more", file=sys.stderr
            )
            ran = self.attempt(3600)
        if ran.code != 0:
            raise SystemExit(f"{self.name} fails without a mistake:\n{ran.output[-3000:]}")
        self.usual = ran.seconds
        print(f"{self.name}: usually {self.usual:.0f} s", file=sys.stderr, flush=True)

    def finds(self, mutant: Mutant | Named) -> str:
        """Runs the check; returns the tests that find the mistake that is built, empty where none does."""
        limit = 10 * self.usual + 30
        for _ in range(2):
            ran = self.attempt(limit)
            if ran.code == 0:
                return ""
            failed = self.failed(ran.output)
            what = ", ".join(failed[:3]) or f"exit code {ran.code}"
            if ran.code is None:
                return f"does not end: {what}"
            if self.attempt(limit, failed).code != 0:
                return what
        return ""


class GTest(Check):
    def __init__(self, target: str, **environment: str) -> None:
        program = str(BUILD / "bin" / target)
        super().__init__(target, (target,), [program, "--gtest_fail_fast"], **environment)

    def only(self, failed: list[str]) -> list[str]:
        return [*self.command, "--gtest_filter=" + ":".join(failed)]

    def failed(self, output: str) -> list[str]:
        which = " SKIPPED" if "[  FAILED  ]" not in output and self.must_run else " FAILED "
        named = re.findall(rf"^\[ {which} \] ([\w/.]+)", output, re.MULTILINE)
        begun = re.findall(r"^\[ RUN      \] ([\w/.]+)", output, re.MULTILINE)
        return list(dict.fromkeys(name for name in named if "." in name)) or begun[-1:]


class PyTest(Check):
    """Tests of whole programs, with the package of `make setup` and the libraries of the copy."""

    def __init__(self, targets: tuple[str, ...], *tests: str, **environment: str) -> None:
        self.tests = list(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        environment |= {"PYTHONPATH": str(PACKAGE), "SPINLOOM_TEST_LIVE": str(BUILD / "live")}
        super().__init__("pytest " + tests[0], targets, [*command, *self.tests], **environment)

    def only(self, failed: list[str]) -> list[str]:
        return [*self.command[: -len(self.tests)], *failed]

    def failed(self, output: str) -> list[str]:
        return re.findall(r"^(?:FAILED|ERROR) (\S+(?: \S+)*?)(?= - |$)", output, re.MULTILINE)

    def attempt(self, limit: float, failed: list[str] | None = None) -> Ran:
        make_package()
        return super().attempt(limit, failed)


def jobs_of_mpi(file: str) -> list[Check]:
    name = Path(file).name
    kind = next(tests for parts, tests in JOBS_OF_MPI if any(part in name for part in parts))
    return [jobs_of(kind)]


@functools.cache
def jobs_of(kind: tuple[str, ...]) -> Check:
    files = [f"tests/mpi/test_mpi_{name}.py" for name in kind]
    return PyTest(LAYER, *files)


class Torture(Check):
    """Seeds 1 to 1,000 of every scenario, by mutants.py."""

    def __init__(self) -> None:
        super().__init__("torture", ("spinloom_torture_run",), [])

    def measure(self) -> None:
        violation = hunter().hunt(hunter().SEEDS[:1])
        if violation is not None:
            raise SystemExit(
                f"torture finds a violation without a mistake: {violation.scenario}, {violation.sentence}"
            )

    def finds(self, mutant: Mutant | Named) -> str:
        violation = hunter().hunt(file=mutant.file)
        return f"{violation.scenario}, seed {violation.seed}: {violation.sentence[:110]}" if violation else ""


@functools.cache
def hunter():
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/torture")]
    import mutants

    mutants.PLACE = PLACE
    return mutants


def make_package() -> None:
    """The installed package with this tree's Python files and the libraries that the copy has built."""
    installed = Path(sysconfig.get_path("purelib")) / "spinloom"
    if not (installed / "lib").is_dir():
        raise SystemExit("the Python package is not installed; 'make setup' does that")
    to = PACKAGE / "spinloom"
    if not to.exists():
        shutil.copytree(installed, to, symlinks=True)
    shutil.copytree(TREE / "python/spinloom", to, dirs_exist_ok=True)
    built = [
        BUILD / "live" / name for name in ("libspinloom_mpi.so", "libspinloom-heap.so", "libportals.so.4")
    ]
    for library in [*built, *BUILD.glob("src/app/_core*.so")]:
        link = to / "lib" / library.name if library.parent.name == "live" else to / library.name
        if library.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(library)


def checks() -> tuple[dict[str, list[Check]], dict[str, list[Check]]]:
    """Of each folder: the quick ones, and those of whole programs."""
    torture = Torture()
    fuzz = {
        name: Check(
            f"fuzz {name}",
            (f"spinloom_fuzz_{name}",),
            [
                str(BUILD / f"bin/spinloom_fuzz_{name}"),
                "--runs",
                runs,
                "--current",
                str(PLACE / "current"),
            ],
        )
        for name, runs in (("packet", "60000"), ("reliable", "60000"), ("peer", "4000"), ("fabric", "4000"))
    }
    driver = GTest("spinloom_memory_gpu_test", LD_LIBRARY_PATH=str(BUILD / "gpu_driver"))
    driver.name = "spinloom_memory_gpu_test over the driver for tests"
    driver.must_run = True
    driver.command.append("--gtest_filter=OnDevice*.*:-OnDevice.LaunchesArePartsOfGraphs")
    live = ("spinloom_portals_library",)
    quick: dict[str, list[Check]] = {
        "mpi": [GTest("spinloom_mpi_test")],
        "abi": [],
        "wire": [GTest("spinloom_nic_wire_test"), fuzz["packet"], fuzz["reliable"], torture],
        "collective": [GTest("spinloom_portals_collective_test"), torture],
        "predict": [GTest("spinloom_predict_program_test")],
        "gpu": [GTest("spinloom_memory_gpu_test"), driver],
        "live": [GTest("spinloom_live_test"), fuzz["peer"], fuzz["fabric"]],
        "nic": [GTest("spinloom_nic_portals_test"), torture],
        "spin": [GTest("spinloom_nic_spin_test"), torture],
    }
    whole: dict[str, list[Check]] = {
        "wire": [GTest("spinloom_live_test")],
        "collective": [GTest("spinloom_predict_program_test"), PyTest(live, "tests/portals")],
        "predict": [PyTest(("spinloom_core",), "tests/predict", "tests/goal")],
        "gpu": [PyTest((*LAYER, "spinloom_core"), "tests/gpu", "tests/mpi/test_mpi_gpu.py")],
        "live": [PyTest(live, "tests/live", "tests/portals", "tests/rails", "tests/rma")],
        "nic": [],
        "spin": [],
    }
    return quick, whole


def part_of(mutant: Mutant | Named) -> str:
    return "abi" if mutant.file.startswith("src/mpi/abi/") else mutant.folder


# The work.


class Worker:
    def __init__(self) -> None:
        self.checks = dict(zip(("quick", "whole"), checks(), strict=True))
        self.ready: set[int] = set()

    def checks_of(self, mutant: Mutant | Named, stage: str) -> list[Check]:
        if mutant.folder == "mpi" and stage == "whole":
            return jobs_of_mpi(mutant.file)
        return self.checks[stage][part_of(mutant)]

    def prepare(self, those: list[Check]) -> None:
        for check in those:
            if id(check) in self.ready:
                continue
            if (output := build(check.targets)) not in ("", "unbuilt"):
                raise SystemExit(f"{check.targets} cannot be built without a mistake:\n{output[-3000:]}")
            check.measure()
            self.ready.add(id(check))

    def tried(self, mutant: Mutant | Named, stage: str, those: list[Check]) -> tuple[str, str]:
        """The outcome and who found it. What is in no quick test may be in one of the others."""
        if not those:
            return "survived", ""
        path = TREE / mutant.file
        source = path.read_text(encoding="utf-8")
        MARK.touch()
        time.sleep(0.02)
        try:
            path.write_text(mutant.applied(source), encoding="utf-8")
            anything = False
            for check in those:
                output = build(check.targets)
                if output not in ("", "unbuilt"):
                    listing = "GoogleTestAddTests" in output and ": error: " not in output
                    return ("found", f"{check.name}: does not start") if listing else ("does not compile", "")
                anything |= output == ""
                if anything and (what := check.finds(mutant)):
                    return "found", f"{check.name}: {what}"
            return "survived" if anything or stage == "quick" else "unbuilt", ""
        finally:
            path.write_text(source, encoding="utf-8")
            forget_mutated()


def results() -> dict[str, dict]:
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {one["key"]: one for one in map(json.loads, lines)}


def note(mutant: Mutant | Named, stage: str, outcome: str, by: str, seconds: float) -> dict:
    row = {**asdict(mutant), "key": mutant.key, "stage": stage, "outcome": outcome, "found_by": by}
    with open(RESULTS, "a", encoding="utf-8") as file:
        file.write(json.dumps({**row, "seconds": round(seconds)}) + "\n")
    return row


def reason_of(mutant: Mutant | Named) -> str:
    return reasons().get((mutant.file, mutant.text, mutant.change), "")


def chosen(drawn: dict[str, list], each: int, rows_by_key: dict[str, dict]) -> list[Mutant]:
    """The first `each` of every folder that compile, as far as that is known."""
    lost = ("does not compile", "unbuilt")
    good = {
        folder: [
            mutant for mutant in all_of_them if rows_by_key.get(mutant.key, {}).get("outcome") not in lost
        ][:each]
        for folder, all_of_them in drawn.items()
    }
    return [mutant for row in itertools.zip_longest(*good.values()) for mutant in row if mutant]


def work(drawn: dict[str, list], each: int, again: bool) -> dict[str, dict]:
    PLACE.mkdir(parents=True, exist_ok=True)
    forget_mutated()
    copy_tree()
    configure()
    rows_by_key = results()
    worker = Worker()
    tried: set[str] = set()  # mutants that this run has tried
    while True:
        wanted = [mutant for mutant in chosen(drawn, each, rows_by_key) if not reason_of(mutant)]
        untried = {
            stage: [
                mutant
                for mutant in wanted
                if is_open(rows_by_key.get(mutant.key), stage, again and f"{stage} {mutant.key}" not in tried)
            ]
            for stage in worker.checks
        }
        stage = next((stage for stage, those in untried.items() if those), None)
        if stage is None:
            return rows_by_key
        mutant = untried[stage][0]
        tried.add(f"{stage} {mutant.key}")
        those = worker.checks_of(mutant, stage)
        worker.prepare(those)
        began = time.monotonic()
        outcome, by = worker.tried(mutant, stage, those)
        took = time.monotonic() - began
        rows_by_key[mutant.key] = note(mutant, stage, outcome, by, took)
        left = ", ".join(f"{stage} {len(those)}" for stage, those in untried.items())
        print(f"[{left}] {mutant.place} {mutant.change}: {outcome} {by} ({took:.0f} s)", flush=True)


def is_open(row: dict | None, stage: str, again: bool) -> bool:
    """True if a mistake is still to be tried in a stage."""
    if row is None:
        return stage == "quick"
    if row["outcome"] != "survived":
        return False
    return again or (stage == "whole" and row["stage"] == "quick")


def table(drawn: dict[str, list], each: int, rows_by_key: dict[str, dict]) -> int:
    """Prints what came out; how many survive without a reason."""
    those = chosen(drawn, each, rows_by_key)
    print("\n| folder | possible | drawn | found | equivalent | not found |\n|---|---|---|---|---|---|")
    survivors = []
    sums: collections.Counter[str] = collections.Counter()
    for folder, possible in drawn.items():
        count = collections.Counter(drawn=0, found=0, equivalent=0, lost=0)
        for mutant in [each for each in those if each in possible]:
            is_found = rows_by_key.get(mutant.key, {}).get("outcome") == "found"
            kind = "found" if is_found else "equivalent" if reason_of(mutant) else "lost"
            count.update([kind, "drawn"])
            survivors += [mutant] if kind == "lost" else []
        sums.update({**count, "possible": len(possible)})
        print(f"| {folder} | {len(possible)} | " + " | ".join(map(str, count.values())) + " |")
    names = ("possible", "drawn", "found", "equivalent", "lost")
    print("| all | " + " | ".join(str(sums[name]) for name in names) + " |")
    print(f"\nscore: {sums['found']} of {sums['drawn'] - sums['equivalent']}")
    for mutant in survivors:
        print(f"not found: {mutant.place}: {mutant.change}\n    {mutant.text}")
    for mutant in those:
        if why := reason_of(mutant):
            print(f"equivalent: {mutant.place}: {mutant.change}: {why}")
    return len(survivors)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="only files whose names have one of these parts"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=60, help="in all folders together")
    parser.add_argument("--list", action="store_true", help="show what is drawn, build nothing")
    parser.add_argument("--again", action="store_true", help="try those that were not found once more")
    parser.add_argument("--named", action="store_true", help="those that draw_mutants.toml names")
    parser.add_argument("--report", action="store_true", help="the table of what was tried, build nothing")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # finally puts back what was changed
    os.nice(10)
    each = -(-arguments.mutants // len(FOLDERS))
    drawn: dict[str, list] = {folder: candidates(folder, arguments.seed) for folder in FOLDERS}
    if arguments.named:
        drawn, each = {"named": named()}, len(named())
    rows_by_key = results()
    wanted = [
        mutant
        for mutant in chosen(drawn, each, rows_by_key)
        if not arguments.parts or any(part in mutant.key for part in arguments.parts)
    ]
    if arguments.list:
        for mutant in wanted:
            print(f"{mutant.place}: {mutant.change}\n    {mutant.text}")
        if not arguments.named:
            for pattern, why in NOT_DRAWN.items():
                print(f"not drawn: {pattern}: {why}")
            print(", ".join(f"{folder}: {len(found)} possible" for folder, found in drawn.items()))
        return 0
    if arguments.parts:
        drawn = {"chosen": wanted}
        each = len(wanted)
    rows_by_key = rows_by_key if arguments.report else work(drawn, each, arguments.again)
    return 1 if table(drawn, each, rows_by_key) else 0


if __name__ == "__main__":
    sys.exit(main())
