"""Puts each mistake of mutants.toml into a copy of the engine and tortures it until the mistake is found.

    python tests/torture/mutants.py [--explore] [PART OF A NAME OR OF A FILE ...]

With --explore the explorer of src/portals/testbed looks for those that say `explored`, instead of torture for
those that do not say `tortured = false`.

It prints a row for each mutant: the scenario, the seed, what was seen. It exits with 1 when one is missed or
does not compile.

The copy lies in build/mutants. A mutant is found when a run reports a violation, or dies. Seeds 1 to 1,000 of
every scenario are tried, few of all before many of one.
"""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "mutants"
SEEDS = ((1, 10), (11, 100), (101, 1000))
PROCESSOR_SECONDS = 120  # a range of one scenario takes two or three; who takes so long goes round in circles


@dataclass(frozen=True)
class Mutant:
    name: str
    unit: str
    file: str
    text: str
    by: str
    tortured: bool = True  # torture finds it
    explored: bool = False  # the explorer finds it: programs whose outcomes the model of Portals 4 knows

    def applied(self, source: str) -> str:
        if source.count(self.text) != 1:
            raise SystemExit(
                f"{self.file}: the text of '{self.name}' stands there {source.count(self.text)} times"
            )
        return source.replace(self.text, self.by)


@dataclass(frozen=True)
class Violation:
    scenario: str
    seed: int
    runs: int
    sentence: str


def mutants() -> list[Mutant]:
    with open(Path(__file__).parent / "mutants.toml", "rb") as file:
        return [Mutant(**row) for row in tomllib.load(file)["mutant"]]


def prepare() -> None:
    """A copy of the sources and a build folder of its own."""
    tree = PLACE / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    folders = ("src", "include", "cmake", "bench", "handlers", "data", "tests/gpu/driver")
    for name in (*folders, "CMakeLists.txt"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name)
        elif source.exists():
            shutil.copy2(source, tree / name)
    floors = tree / "cmake" / "floors.cmake"  # a mistake may leave a variable unused
    floors.write_text(floors.read_text(encoding="utf-8").replace(" -Werror", ""), encoding="utf-8")
    for mutant in mutants():  # an object of an earlier mutant may lie in the build folder
        (tree / mutant.file).touch()
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    subprocess.run(
        ["cmake", "-S", tree, "-B", PLACE / "build", "-G", "Ninja", "-DSPINLOOM_TESTS=ON"]
        + ["-DCMAKE_CXX_FLAGS_RELEASE=-O1"]  # each is built once and runs for seconds
        + (launcher if shutil.which("ccache") else []),
        check=True,
        stdout=subprocess.DEVNULL,
    )


def build(target: str = "spinloom_torture_run") -> str:
    """Returns the compiler's complaint; empty where it succeeds."""
    done = subprocess.run(["ninja", "-C", PLACE / "build", "-j2", target], capture_output=True, text=True)
    return done.stdout[-3000:] if done.returncode != 0 else ""


def limit_processor_time() -> None:
    """Of a run. It has one thread and never sleeps, so that a busy machine does not look like a fault."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 10))


def hunt(seeds: tuple[tuple[int, int], ...] = SEEDS, file: str = "") -> Violation | None:
    from spinloom.nics import torture

    runs = 0
    for first, last in seeds:
        for scenario in map(torture.read, sorted((PLACE / "tree" / "data/scenarios").glob("*.toml"))):
            works = [name for name, weight in scenario.numbers.items() if name.startswith("work.") and weight]
            if file.startswith("src/portals/collective/") and "work.collective" not in works:
                continue  # no engine of collective calls is there
            frames = any(name.startswith("work.frame_") for name in works)
            if not file.startswith("src/nic/spin/") and frames != file.startswith("src/nic/frames/"):
                continue  # a NIC of the other kind
            numbers = [f"{name}={value}" for name, value in scenario.numbers.items()]
            program = PLACE / "build/bin/spinloom_torture_run"
            command = [program, *numbers, "--seeds", f"{first}..{last}"]
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_processor_time)
            if done.returncode == -signal.SIGXCPU:
                return Violation(scenario.name, first, runs, "goes round in circles")
            if done.returncode == 0:
                runs += last - first + 1
                continue
            if done.returncode == 2:
                raise SystemExit(f"{scenario.name} cannot be run: {done.stderr}")
            match = re.search(r"violation (\d+): (.*)", done.stdout)
            seed = int(match[1]) if match else first
            return Violation(
                scenario.name, seed, runs + seed - first + 1, match[2] if match else "the process died"
            )
    return None


def explore() -> Violation | None:
    """What the explorer's tests see first."""
    program = PLACE / "build/bin/spinloom_portals_testbed_test"
    command = [program, "--gtest_filter=*Explorer*", "--gtest_brief=1"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_processor_time)
    if done.returncode == 0:
        return None
    replay = re.search(r"replay: SPINLOOM_TEST_SEED=(\d+) .*--gtest_filter=(\S+)", done.stdout)
    wrong = re.search(r"Failure\n(.*)", done.stdout)
    return Violation(
        replay[2] if replay else "explorer",
        int(replay[1]) if replay else 0,
        1,
        wrong[1] if wrong else "the process died",
    )


def main(parts: list[str]) -> int:
    sys.path.insert(0, str(ROOT / "python"))
    explores = "--explore" in parts
    parts = [part for part in parts if part != "--explore"]
    chosen = [
        mutant
        for mutant in mutants()
        if (mutant.explored if explores else mutant.tortured)
        and (not parts or any(part in mutant.name or part in mutant.file for part in parts))
    ]
    target = "spinloom_portals_testbed_test" if explores else "spinloom_torture_run"
    prepare()
    if complaint := build(target):
        print(f"the engine as it is does not compile:\n{complaint}")
        return 1
    violation = explore() if explores else hunt(SEEDS[:1])  # there is nothing to find without a mutant
    if violation is not None:
        print(f"the engine as it is: {violation.scenario}, seed {violation.seed}: {violation.sentence}")
        return 1
    missed = 0
    print("| unit | mutant | scenario | seed | runs | what was seen |\n|---|---|---|---|---|---|")
    for mutant in chosen:
        path = PLACE / "tree" / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(source), encoding="utf-8")
        began = time.monotonic()
        violation = None
        if not (complaint := build(target)):
            violation = explore() if explores else hunt(file=mutant.file)
        path.write_text(source, encoding="utf-8")
        if complaint:
            missed += 1
            print(f"| {mutant.unit} | {mutant.name} | **does not compile** | | | |", flush=True)
            print(complaint, file=sys.stderr)
            continue
        if violation is None:
            missed += 1
            print(f"| {mutant.unit} | {mutant.name} | **not found** | | | |", flush=True)
            continue
        seen = re.sub(r"/\S*?/(src/)", r"\1", violation.sentence)[:110].replace("|", "/")
        print(
            f"| {mutant.unit} | {mutant.name} | {violation.scenario} | {violation.seed} | {violation.runs} "
            f"| {seen} |",
            flush=True,
        )
        print(f"{mutant.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
