"""Makes a folder that links programs for an old glibc: libraries without code, the code that programs start
with, and packaging/glibc/newer.c. The libraries are ziglang's: its compiler knows the names of each glibc.

    python tools/old_glibc.py --version 2.28 --compiler cc --out build/wheel/glibc

A link with -B FOLDER takes them instead of the machine's.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

NEWER = Path(__file__).resolve().parents[1] / "packaging/glibc/newer.c"
# Names that a linker looks for. Before glibc 2.34 these parts of libc.so.6 were separate libraries.
LIBRARIES = {"m": "libm.so.6", "pthread": "libpthread.so.0", "dl": "libdl.so.2", "rt": "librt.so.1"}
PARTS = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libld.so.2")


def build(version: str, compiler: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    cache = out / "cache"
    empty = out / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    # Zig's own runtime and checks are left out, because compiled code brings those of GCC.
    zig = [
        sys.executable,
        "-m",
        "ziglang",
        "build-exe",
        empty,
        "-target",
        f"{platform.machine()}-linux-gnu.{version}",
    ]
    options = ["-O", "ReleaseFast", "-fPIE", "-fno-compiler-rt", "-fno-ubsan-rt", "-fno-sanitize-c", "-lc"]
    caches = {f"ZIG_{kind}_CACHE_DIR": str(cache) for kind in ("GLOBAL", "LOCAL")}
    command = [*zig, *options, *(f"-l{name}" for name in LIBRARIES), f"-femit-bin={out / 'empty'}"]
    subprocess.run(command, check=True, env=os.environ | caches)
    for name in ("libc.so.6", "libc_nonshared.a", "Scrt1.o", "libld.so.2", *LIBRARIES.values()):
        (made,) = cache.glob(f"o/*/{name}")
        shutil.copy(made, out / name)
    shutil.copy(out / "Scrt1.o", out / "crt1.o")  # it starts a program wherever that lies
    shutil.rmtree(cache)

    newer = out / "newer.o"
    options = ["-std=c11", "-O2", "-fPIC", "-Wall", "-Werror", "-fvisibility=hidden", "-fno-lto"]
    subprocess.run([compiler, *options, "-c", NEWER, "-o", newer], check=True)
    (out / "libnewer.a").unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", out / "libnewer.a", newer], check=True)
    for name, file in LIBRARIES.items():
        (out / f"lib{name}.so").write_text(f"INPUT({out / file})\n")
    always = " ".join(str(out / name) for name in ("libc.so.6", "libc_nonshared.a", "libnewer.a"))
    needed = " ".join(str(out / name) for name in PARTS)
    (out / "libc.so").write_text(f"GROUP({always} AS_NEEDED({needed}))\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    build(asked.version, asked.compiler, asked.out.resolve())


if __name__ == "__main__":
    main()
