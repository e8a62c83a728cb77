"""Compiles a handler's C source to an RV32 image, or to a shared object for the host.

Contract: compile() turns one C11 file into one ELF image linked at the HPU's image base; the compiler's
version and every flag are fixed here, because the image's bytes decide modelled time. The same source gives
the same bytes in every folder. A source that names float or double is compiled for cores with floating point
(RV32IMAFDC), every other source for all cores (RV32IMAC). compile_native() makes a shared object of the same
source with the host's compiler; modelled time does not depend on its bytes. Sources in PsPIN's style
(spinloom/pspin_compat.h) are recognised by their #include <handler.h>: NAME_hh, NAME_ph and NAME_th become
their handlers. Standard library only: the build runs this file as a script.

    python toolchain.py FILE.c -o IMAGE.elf --include DIR --script handler.ld --cache DIR
        [-D NAME] [--depfile FILE]
    python toolchain.py FILE.c -o OBJECT.so --native [--compiler CC] --include DIR [-D NAME] [--depfile FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

COMPILER_VERSION = "0.17.1"  # the version of PyPI's ziglang (clang inside)
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
# A handler's parameters are given, whether it needs them or not.
WARNING_FLAGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
# What is written today and used tomorrow is no error in a handler of a user's own.
LENIENT_FLAGS = tuple(
    f"-Wno-error=unused-{what}" for what in ("variable", "but-set-variable", "const-variable", "function")
)
# PsPIN's sources convert between integers and addresses without a cast, which newer compilers refuse.
# ziglang defines NDEBUG by itself; their assertions stay.
PSPIN_FLAGS = ("-w", "-Wno-int-conversion", "-Wno-incompatible-pointer-types", "-UNDEBUG")
PSPIN_INCLUDE = re.compile(
    r'^\s*#\s*include\s*[<"](?:handler|spinloom/pspin_compat)\.h[>"]', flags=re.MULTILINE
)
# As spinloom/pspin_compat.h describes them: packets of PsPIN's test bench.
PSPIN_PACKETS = "SPL_PSPIN_PACKETS"
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
)
# Refuses an object with a missing function now, instead of when a message comes.
NATIVE_FLAGS = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fno-common",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wl,-z,defs",
    "-Wl,--build-id=none",
)
# memcpy is not made of a call of memcpy.
RUNTIME_FLAGS = ("-fno-builtin",)
LINK_FLAGS = ("-nostdlib", "-static", "-Wl,--gc-sections", "-Wl,--build-id=none")

# What handlers/runtime/string.c brings. It is linked only where it is missing: other images stay as they are.
RUNTIME_MISSING = re.compile(r"undefined symbol: (mem(cpy|move|set|cmp)|strlen)\b")

# A function of the compiler's runtime that the linker misses, and its replacement.
ADVICE = {
    r"\b__u?(div|mod)di3\b": 'it divides 64-bit numbers: #include "spinloom/divide.h", or divide 32-bit ones',
    r"\b__(float(un)?di[sd]f|fix(uns)?[sd]fdi)\b": (
        "it converts between 64-bit integers and floating point: convert 32-bit ones: (double)(uint32_t)n"
    ),
    r"\b__(add|sub|mul|div)[sd]f3\b": (
        "it computes with floating point without naming float or double, by which cores with it are chosen"
    ),
}


Warn = Callable[[str], None]  # a function that shows the compiler's warnings


class ToolchainError(Exception):
    """The compiler is missing or has another version (a fault of the machine), or refused the source."""

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


def code_of(source: Path) -> str:
    """The source without its comments and strings; the names of included files stay."""
    return re.sub(
        r'/\*.*?\*/|//[^\n]*|(?<!include)(?<!include )"(?:\\.|[^"\\\n])*"',
        " ",
        source.read_text(encoding="utf-8", errors="replace"),
        flags=re.DOTALL,
    )


def is_pspin(source: Path) -> bool:
    """True if the source is in the style of PsPIN, for spinloom/pspin_compat.h."""
    return PSPIN_INCLUDE.search(code_of(source)) is not None


def pspin_macros(source: Path, defines: Sequence[str] = ()) -> list[str]:
    """SPL_PAYLOAD_HANDLER=ping_ph and so on, for the handlers that a source in PsPIN's style defines and that
    neither it nor `defines` names by a macro."""
    if not is_pspin(source):
        return []
    text, macros = code_of(source), []
    for name, suffix in zip(HANDLERS[:3], ("hh", "ph", "th"), strict=True):
        macro = f"SPL_{name.upper()}"
        if re.search(rf"#\s*define\s+{macro}\b", text) or any(
            define.split("=")[0] == macro for define in defines
        ):
            continue
        names = list(dict.fromkeys(re.findall(rf"\b(\w+_{suffix})\s*\(\s*handler_args_t\b", text)))
        if len(names) > 1:
            raise ToolchainError(
                f"{source} defines more than one {name.replace('_', ' ')}: {', '.join(names)}; "
                f"choose one: -D {macro}={names[0]}"
            )
        macros += [f"{macro}={define}" for define in names]
    return macros


def handlers_of(source: Path, defines: Sequence[str] = ()) -> list[str]:
    """The handlers that the source defines, perhaps by a macro of p4spin_compat.h or pspin_compat.h."""
    text = source.read_text(encoding="utf-8", errors="replace")
    named = {define.split("=")[0] for define in [*defines, *pspin_macros(source, defines)]}
    defined = [
        name
        for name in HANDLERS
        if f"SPL_{name.upper()}" in named
        or re.search(rf"\b{name}\s*\(|^\s*#\s*define\s+SPL_{name.upper()}\b", text, flags=re.MULTILINE)
    ]
    if not defined:
        others = ", nor NAME_hh, NAME_ph or NAME_th with a handler_args_t *" if is_pspin(source) else ""
        raise ToolchainError(f"{source} defines none of {', '.join(HANDLERS)}{others}{listing_hint(text)}")
    return defined


def dialect_flags(
    source: Path, include: list[Path], defines: Sequence[str], lenient: bool = False
) -> list[str]:
    """Warnings, include path and macros, as the source's style needs them."""
    pspin = is_pspin(source)
    folders = [folder / "spinloom" / "pspin" for folder in include] if pspin else []
    return [
        *(PSPIN_FLAGS if pspin else WARNING_FLAGS),
        *(LENIENT_FLAGS if lenient and not pspin else ()),
        *(f"-D{define}" for define in [*defines, *pspin_macros(source, defines)]),
        *(flag for folder in [*folders, *include] for flag in ("-I", str(folder.resolve()))),
    ]


def listing_hint(text: str) -> str:
    """For a source in the SC'17 paper's style, whose handlers have other names: the macros that name them."""
    named = [(name, re.search(rf"\b(\w+_{name})\s*\(", text)) for name in HANDLERS]
    macros = [f"#define SPL_{name.upper()} {match[1]}" for name, match in named if match]
    if not macros:
        return ""
    return '; name yours above #include "spinloom/p4spin_compat.h":\n' + "\n".join(macros)


def entry_of(source: Path, defines: Sequence[str] = ()) -> str:
    """The entry symbol: payload_handler, or the first handler that the source defines."""
    defined = handlers_of(source, defines)
    return "payload_handler" if "payload_handler" in defined else defined[0]


def target_flags(source: Path) -> tuple[str, ...]:
    """The flags for cores with floating point if the source or a header beside it, apart from comments and
    strings, names float or double."""
    texts = [code_of(path) for path in with_headers_beside(source)]
    return FLOAT_FLAGS if any(re.search(r"\b(float|double)\b", text) for text in texts) else TARGET_FLAGS


def with_headers_beside(source: Path) -> list[Path]:
    """The source and the headers in its own folder that it includes."""
    sources = [source]
    for path in sources:
        names = re.findall(r'^\s*#\s*include\s*"([^"]+)"', code_of(path), flags=re.MULTILINE)
        beside = [path.parent / name for name in names]
        sources += [header for header in dict.fromkeys(beside) if header.is_file() and header not in sources]
    return sources


def environment(cache: Path) -> dict[str, str]:
    """The compiler's environment, with its caches inside `cache` instead of the home directory."""
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}


def private_cache() -> Path:
    """A folder that nobody else may change: what the compiler finds there becomes the image."""
    from spinloom.common import output, private  # the build names its own cache

    folder, why = private.cache_folder("zig")
    if why:
        output.say(f"{why}: handlers are compiled without it, some seconds longer")
    return folder


def compile(
    source: Path,
    image: Path,
    *,
    include: list[Path],
    script: Path,
    cache: Path | None = None,
    depfile: Path | None = None,
    source_lines: bool = False,
    defines: Sequence[str] = (),
    warn: Warn | None = None,
) -> str:
    """Compiles and links one handler source; returns the SHA-256 of the image.

    The compiler sees the source under its bare name from the source's own folder, so that no path of
    this machine reaches the image. `cache`: this user's own, if not said. `depfile` receives a make rule
    with the headers that were read. With `source_lines` the image has debug information, too; its code is
    the same. With `warn` unused variables and functions are no errors, and it is called with what the
    compiler says of them.
    """
    check_compiler()
    image.parent.mkdir(parents=True, exist_ok=True)
    cache = cache or private_cache()
    source, image = source.resolve(), image.resolve()
    base = [sys.executable, "-m", "ziglang", "cc", *target_flags(source)]
    includes = dialect_flags(source, include, defines, lenient=warn is not None)
    runtime = script.resolve().parent / "runtime"
    includes += ["-isystem", str(runtime)]
    flags = ["-g" if flag == "-g0" and source_lines else flag for flag in COMPILE_FLAGS]

    def failure_text(step: list[str], folder: Path, warn: Warn | None = None) -> str:
        """Returns what the compiler says; empty where it is content, perhaps with warnings."""
        done = subprocess.run(
            step,
            cwd=folder,
            env=environment(cache),
            capture_output=True,
            text=True,
            errors="backslashreplace",
        )
        if done.returncode == 0:
            pass_on_warnings(done.stderr, warn)
            return ""
        return done.stderr.strip() or done.stdout.strip() or "it failed"

    with tempfile.TemporaryDirectory() as scratch:
        unit, helper = Path(scratch) / "handler.o", Path(scratch) / "string.o"
        dependencies = Path(scratch) / "handler.d"
        dependency_flags = ["-MMD", "-MF", str(dependencies)]
        entry, layout = f"-Wl,-e,{entry_of(source, defines)}", f"-Wl,-T,{script.resolve()}"
        link = [
            *base,
            *LINK_FLAGS,
            *(["-g"] if source_lines else []),
            entry,
            layout,
            "-o",
            str(image),
            str(unit),
        ]
        complaint = failure_text(
            [*base, *flags, *includes, *dependency_flags, "-c", source.name, "-o", str(unit)],
            source.parent,
            warn,
        )
        complaint = complaint or failure_text(link, source.parent)
        if RUNTIME_MISSING.search(complaint):
            complaint = failure_text(
                [*base, *flags, *RUNTIME_FLAGS, *includes, "-c", "string.c", "-o", str(helper)], runtime
            ) or failure_text([*link, str(helper)], source.parent)
        if complaint:
            complaint += "".join(
                f"\n{advice}" for missing, advice in ADVICE.items() if re.search(missing, complaint)
            )
            raise ToolchainError(f"{source.name} does not build:\n{complaint}")
        if depfile is not None:
            depfile.write_text(make_rule(image, dependencies, source.parent), encoding="utf-8")
    return hashlib.sha256(image.read_bytes()).hexdigest()


def compile_native(
    source: Path,
    target: Path,
    *,
    include: list[Path],
    compiler: str | None = None,
    depfile: Path | None = None,
    defines: Sequence[str] = (),
    warn: Warn | None = None,
) -> None:
    """Compiles a handler source to a shared object for this machine; `compiler`: CC, else cc. `warn`: as of
    compile()."""
    handlers_of(source, defines)
    target.parent.mkdir(parents=True, exist_ok=True)
    source, target = source.resolve(), target.resolve()
    command = shlex.split(compiler or os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as scratch:
        dependencies = Path(scratch) / "handler.d"
        command += [
            *NATIVE_FLAGS,
            *dialect_flags(source, include, defines, lenient=warn is not None),
            *("-MMD", "-MF", str(dependencies)),
            *(source.name, "-o", str(target)),
        ]
        try:
            done = subprocess.run(
                command, cwd=source.parent, capture_output=True, text=True, errors="backslashreplace"
            )
        except OSError as error:
            raise ToolchainError(
                f"the host's compiler {command[0]} cannot be run ({error.strerror}); set CC", environment=True
            ) from None
        if done.returncode != 0:
            complaint = done.stderr.strip() or done.stdout.strip()
            raise ToolchainError(f"{source.name} does not build natively:\n{complaint}")
        pass_on_warnings(done.stderr, warn)
        if depfile is not None:
            depfile.write_text(make_rule(target, dependencies, source.parent), encoding="utf-8")


def pass_on_warnings(text: str, warn: Warn | None) -> None:
    """Hands over what a compiler said that was content, without its count of warnings."""
    text = re.sub(r"^\d+ warnings? generated\.$", "", text, flags=re.MULTILINE).strip()
    if warn is not None and text:
        warn(text)


def make_rule(image: Path, dependencies: Path, folder: Path) -> str:
    """The compiler's dependency file with absolute names, and the image as its target."""
    listed = dependencies.read_text(encoding="utf-8").split(":", 1)[1].replace("\\\n", " ")
    names = [name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", listed)]
    absolute = [str((folder / name).resolve()).replace(" ", "\\ ") for name in names]
    return f"{str(image).replace(' ', chr(92) + ' ')}: {' '.join(absolute)}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile a handler to an RV32 image, or natively.")
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--script", type=Path, help="the linker script, handler.ld")
    parser.add_argument("--native", action="store_true", help="make a shared object for this machine")
    parser.add_argument("--compiler", help="of --native, instead of CC")
    parser.add_argument("--cache", type=Path, help="folder for the compiler's caches")
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], help="define a macro: NAME[=VALUE]"
    )
    parser.add_argument("--depfile", type=Path, help="write the headers that were read, as a make rule")
    options = parser.parse_args(arguments)
    if not options.native and (options.script is None or options.cache is None):
        parser.error("an image needs --script and --cache")
    try:
        if options.native:
            compile_native(
                options.source,
                options.output,
                include=options.include,
                compiler=options.compiler,
                depfile=options.depfile,
                defines=options.defines,
            )
            return 0
        compile(
            options.source,
            options.output,
            include=options.include,
            script=options.script,
            cache=options.cache,
            depfile=options.depfile,
            defines=options.defines,
        )
    except ToolchainError as error:
        print(f"spinloom: {error}", file=sys.stderr)
        return 3 if error.environment else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
