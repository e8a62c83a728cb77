"""Runs C programs that call Portals 4 on simulated NICs, for `spinloom sim`.

Contract: built(path) returns a program that the launcher can load; a C or C++ source is compiled first. run()
starts the launcher as a separate process, so that a crashing program harms nobody else; the program's output
goes where the caller says. The Job has the modelled times, and the Trouble that ended the run, if any.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spinloom.common import config, data
from spinloom.common.errors import Trouble
from spinloom.nics.profiles import Profile

COMPILERS = {
    ".c": ("CC", "cc", "CFLAGS"),
    ".cc": ("CXX", "c++", "CXXFLAGS"),
    ".cpp": ("CXX", "c++", "CXXFLAGS"),
}


@dataclass(frozen=True)
class RankEnd:
    rank: int
    end_ps: int
    exit_code: int
    calls: int


@dataclass
class Job:
    time_ps: int = 0
    ranks: list[RankEnd] = field(default_factory=list)
    trouble: Trouble | None = None
    output: str = ""  # empty unless it was asked for


@dataclass(frozen=True)
class Bridge:
    """The first ranks are in one fabric, the others in another one; a gateway joins them."""

    ranks: int
    stores: bool = False  # whole messages
    forward_ps: int = 0  # the gateway's time for each packet


@dataclass(frozen=True)
class Settings:
    profile: Profile
    ranks: int = 2
    hpus: int | None = None  # None: the profile's
    mtu: int | None = None
    seed: int = 1
    prefix: bool = False
    stack_bytes: int = 8 << 20
    images: dict[str, bytes] = field(default_factory=dict)  # images beside the shipped ones
    more_rails: tuple[Profile, ...] = ()  # the profiles of further NICs of each rank
    bridge: Bridge | None = None

    def text(self, folder: Path) -> str:
        """The launcher's settings (src/simulated/job/config.hpp); writes handler images to the folder."""
        lines = [f"profile {name} {setting_text(value)}" for name, value in self.profile.native().items()]
        for number, profile in enumerate(self.more_rails, start=1):
            lines += [
                f"rail {number} {name} {setting_text(value)}" for name, value in profile.native().items()
            ]
        for name, image in (data.handler_images() | self.images).items():
            path = folder / f"{name}.elf"
            path.write_bytes(image)
            lines.append(f"image {name} {path}")
        lines += [
            f"ranks {self.ranks}",
            f"hpus {self.hpus or self.profile['hpu.count']}",
            f"mtu {self.mtu or self.profile['link.payload']}",
            f"stack {self.stack_bytes}",
            f"compute {compute_limit_s()}",
            f"seed {self.seed}",
            f"prefix {int(self.prefix)}",
        ]
        if self.bridge is not None:
            lines.append(f"bridge {self.bridge.ranks} {int(self.bridge.stores)} {self.bridge.forward_ps}")
        return "".join(f"{line}\n" for line in lines)


def compute_limit_s() -> int:
    """Seconds of processor time that a rank may compute without a call; 0: for ever."""
    name, longest = "SPINLOOM_SIM_COMPUTE_S", 1_000_000
    text = os.environ.get(name) or config.VARIABLES[name].default
    if not (text.isascii() and text.isdigit() and int(text) <= longest):
        raise Trouble("invalid", f"{name}={text}: it takes whole seconds, 0 (for ever) to {longest}")
    return int(text)


def setting_text(value: int | str | list[int]) -> str:
    if isinstance(value, list):
        return f"{value[0]}/{value[1]}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def installed_file(folder: str, name: str) -> Path:
    """A file of this installation."""
    path = data.PACKAGE / folder / name
    if not path.is_file():
        raise Trouble(
            "environment", f"this installation has no {path}; 'make setup' in the checkout brings it"
        )
    return path


def compile_options() -> list[str]:
    """The compiler's options for finding the headers."""
    return ["-I", str(data.folder("include"))]


def link_options() -> list[str]:
    """The linker's options for finding the library, which is that of real processes. The launcher has the
    simulator's loaded under the same name before it loads a program, so that one file runs both ways."""
    library = installed_file("lib", "libportals.so.4")
    return [str(library), f"-Wl,-rpath,{library.parent}"]


@contextlib.contextmanager
def built(path: Path) -> Iterator[Path]:
    """The program of a source, or the program itself."""
    if not path.is_file():
        raise Trouble("invalid", f"there is no program {path}")
    if path.suffix not in COMPILERS:
        yield path
        return
    variable, usual, flags = COMPILERS[path.suffix]
    compiler = shlex.split(os.environ.get(variable, usual))
    if shutil.which(compiler[0]) is None:
        raise Trouble(
            "environment", f"there is no compiler '{compiler[0]}' for {path} ({variable} names one)"
        )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / path.stem
        command = [
            *compiler,
            *(["-std=gnu11"] if path.suffix == ".c" else []),
            *["-O2", "-g", "-fPIC", *shlex.split(os.environ.get(flags, "")), *compile_options()],
            *[str(path), "-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o", str(program)],
            *[*link_options(), "-lm"],
        ]
        compiled = subprocess.run(command, capture_output=True, text=True, errors="backslashreplace")
        if compiled.returncode != 0:
            raise Trouble("invalid", f"{path} does not compile:\n{compiled.stderr.rstrip()}")
        yield program


def run(settings: Settings, program: Path, arguments: list[str], *, captured: bool = False) -> Job:
    """Runs a program that built() gave. If `captured`, the Job has the output."""
    launcher = installed_file("bin", "spinloom-sim")
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as settings_file,
        tempfile.TemporaryFile() as report,
    ):
        settings_file.write(settings.text(Path(folder)).encode())
        settings_file.seek(0)
        descriptors = (settings_file.fileno(), report.fileno())
        command = [str(launcher), *map(str, descriptors), str(program), *arguments]
        output: Any = subprocess.PIPE if captured else None
        with subprocess.Popen(command, pass_fds=descriptors, stdout=output) as launched:
            try:
                printed, _ = launched.communicate()
            except BaseException:
                launched.kill()
                raise
        report.seek(0)
        job = read_report(report.read().decode(errors="replace"))
    job.output = printed.decode(errors="replace") if captured else ""
    if launched.returncode == -signal.SIGPIPE:
        raise BrokenPipeError  # the reader of the ranks' output has gone
    if launched.returncode != 0 and job.trouble is None:
        ending = f"code {launched.returncode}"
        if launched.returncode < 0:
            ending = signal.Signals(-launched.returncode).name
        job.trouble = Trouble("fault", f"the simulation ended with {ending} and said nothing")
    return job


def read_report(text: str) -> Job:
    """Reads the lines that src/simulated/job/report.hpp describes."""
    job = Job()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "time":
            job.time_ps = int(rest)
        elif kind == "rank":
            rank, _, end_ps, code, calls = rest.split()
            job.ranks.append(RankEnd(int(rank), int(end_ps), int(code), int(calls)))
        elif kind == "trouble" and job.trouble is None:
            code, _, message = rest.partition(" ")
            job.trouble = Trouble(code, message)
    job.ranks.sort(key=lambda end: end.rank)
    return job
