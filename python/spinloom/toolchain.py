"""The one place that knows how a handler's C source becomes an RV32 image.

Contract: compile() turns one C11 file into one ELF image linked at the HPU's image base; the compiler's
version and every flag stand here, because the image's bytes decide modelled time. The same source gives
the same bytes in every folder. A source that names float or double is compiled for cores with floating point
(RV32IMAFDC), every other one for all cores (RV32IMAC). Standard library only: the build runs this file as a
script.

    python toolchain.py SOURCE.c -o IMAGE.elf --include DIR --script handler.ld [--depfile FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILER_VERSION = "0.17.1"  # of PyPI's ziglang (clang inside)
HANDLERS = ("header_handler", "payload_handler", "completion_handler")
TARGET_FLAGS = ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+c")
# No contraction: a product and a sum round twice, as on the host that checks them. No errno: a root is an
# instruction.
FLOAT_FLAGS = (
    "-target",
    "riscv32-freestanding-none",
    "-mcpu=generic_rv32+m+a+f+d+c",
    "-mabi=ilp32d",
    "-ffp-contract=off",
    "-fno-math-errno",
)
COMPILE_FLAGS = (
    "-std=c11",
    "-O2",
    "-g0",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-fomit-frame-pointer",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-Wall",
    "-Wextra",
    "-Werror",
)
LINK_FLAGS = ("-nostdlib", "-static", "-Wl,--gc-sections", "-Wl,--build-id=none")

# A function of the compiler's runtime that the linker misses, and what to write instead.
ADVICE = {
    r"\b__u?(div|mod)di3\b": 'it divides 64-bit numbers: #include "spinloom/divide.h", or divide 32-bit ones',
    r"\b__(float(un)?di[sd]f|fix(uns)?[sd]fdi)\b": (
        "it converts between 64-bit integers and floating point: convert 32-bit ones: (double)(uint32_t)n"
    ),
    r"\b__(add|sub|mul|div)[sd]f3\b": (
        "it computes with floating point without naming float or double, by which cores with it are chosen"
    ),
}


class ToolchainError(Exception):
    """The compiler is missing or has another version (the machine's trouble), or refused the source."""

    def __init__(self, message: str, *, environment: bool = False) -> None:
        super().__init__(message)
        self.environment = environment


def compiler_version() -> str | None:
    """The version of the installed ziglang package, or None."""
    try:
        return importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        return None


def check_compiler() -> None:
    """Raises ToolchainError unless the pinned compiler is installed for this Python."""
    version = compiler_version()
    if version is None:
        raise ToolchainError(
            f"handlers need the compiler 'ziglang' {COMPILER_VERSION}, which {sys.executable} does not have; "
            f"pip install ziglang=={COMPILER_VERSION}",
            environment=True,
        )
    if version != COMPILER_VERSION:
        raise ToolchainError(
            f"'ziglang' is {version}, but handler images are defined by {COMPILER_VERSION}; "
            f"pip install ziglang=={COMPILER_VERSION}",
            environment=True,
        )


def entry_of(source: Path) -> str:
    """The entry symbol: payload_handler, or the first handler that the source defines, perhaps by a macro of
    p4spin_compat.h."""
    text = source.read_text(encoding="utf-8")
    defined = [
        name
        for name in HANDLERS
        if re.search(rf"\b{name}\s*\(|^\s*#\s*define\s+SPL_{name.upper()}\b", text, flags=re.MULTILINE)
    ]
    if not defined:
        raise ToolchainError(f"{source} defines none of {', '.join(HANDLERS)}")
    return "payload_handler" if "payload_handler" in defined else defined[0]


def target_flags(source: Path) -> tuple[str, ...]:
    """For cores with floating point where the source, comments and strings apart, names float or double."""
    text = re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", source.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return FLOAT_FLAGS if re.search(r"\b(float|double)\b", text) else TARGET_FLAGS


def environment(cache: Path) -> dict[str, str]:
    """The compiler's environment: its caches inside `cache`, nothing in the home directory."""
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}


def compile(
    source: Path,
    image: Path,
    *,
    include: list[Path],
    script: Path,
    cache: Path | None = None,
    depfile: Path | None = None,
    source_lines: bool = False,
) -> str:
    """Compiles and links one handler source; returns the SHA-256 of the image.

    The compiler sees the source under its bare name from the source's own folder, so that no path of
    this machine reaches the image. `depfile` receives a make rule with the headers that were read. With
    `source_lines` the image has debug information, too; its code is the same.
    """
    check_compiler()
    image.parent.mkdir(parents=True, exist_ok=True)
    cache = cache or Path(tempfile.gettempdir()) / f"spinloom-zig-{os.getuid()}"
    source, image = source.resolve(), image.resolve()
    base = [sys.executable, "-m", "ziglang", "cc", *target_flags(source)]
    includes = [flag for folder in include for flag in ("-I", str(folder.resolve()))]
    with tempfile.TemporaryDirectory() as scratch:
        unit = Path(scratch) / "handler.o"
        dependencies = Path(scratch) / "handler.d"
        steps = [
            [
                *base,
                *("-g" if flag == "-g0" and source_lines else flag for flag in COMPILE_FLAGS),
                *includes,
                "-MMD",
                "-MF",
                str(dependencies),
                "-c",
                source.name,
                "-o",
                str(unit),
            ],
            [
                *base,
                *LINK_FLAGS,
                *(["-g"] if source_lines else []),
                f"-Wl,-e,{entry_of(source)}",
                f"-Wl,-T,{script.resolve()}",
                str(unit),
                "-o",
                str(image),
            ],
        ]
        for step in steps:
            done = subprocess.run(
                step, cwd=source.parent, env=environment(cache), capture_output=True, text=True
            )
            if done.returncode != 0:
                told = done.stderr.strip() or done.stdout.strip()
                told += "".join(
                    f"\n{advice}" for missing, advice in ADVICE.items() if re.search(missing, told)
                )
                raise ToolchainError(f"{source.name} does not build:\n{told}")
        if depfile is not None:
            depfile.write_text(make_rule(image, dependencies, source.parent), encoding="utf-8")
    return hashlib.sha256(image.read_bytes()).hexdigest()


def make_rule(image: Path, dependencies: Path, folder: Path) -> str:
    """The compiler's dependency file again, with absolute names and the image as its target."""
    listed = dependencies.read_text(encoding="utf-8").split(":", 1)[1].replace("\\\n", " ")
    names = [name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", listed)]
    absolute = [str((folder / name).resolve()).replace(" ", "\\ ") for name in names]
    return f"{str(image).replace(' ', chr(92) + ' ')}: {' '.join(absolute)}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile a handler to an RV32 image.")
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--script", type=Path, required=True, help="the linker script, handler.ld")
    parser.add_argument("--cache", type=Path, help="folder for the compiler's caches")
    parser.add_argument("--depfile", type=Path, help="write the headers that were read, as a make rule")
    options = parser.parse_args(arguments)
    try:
        compile(
            options.source,
            options.output,
            include=options.include,
            script=options.script,
            cache=options.cache,
            depfile=options.depfile,
        )
    except ToolchainError as error:
        print(f"spinloom: {error}", file=sys.stderr)
        return 3 if error.environment else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
