"""Handler images: where they lie, what they hold, and that their bytes depend on the source only."""

import hashlib
import re
import struct
from pathlib import Path

import pytest

from spinloom.handlers import toolchain

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
#include "spinloom/hpu_map.h"
static const unsigned table[4] = {1, 2, 3, 5};
int payload_handler(unsigned n) { return (int)table[n & 3]; }
int completion_handler(void) { return 0; }
int never_called(void) { return 1; }
"""

pytestmark = pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("zig-cache")


def build(folder: Path, cache: Path, text: str = SOURCE) -> Path:
    folder.mkdir(exist_ok=True)
    source = folder / "sample.c"
    source.write_text(text)
    image = folder / "sample.elf"
    script = ROOT / "handlers/handler.ld"
    digest = toolchain.compile(source, image, include=[ROOT / "include"], script=script, cache=cache)
    assert digest == hashlib.sha256(image.read_bytes()).hexdigest()
    return image


def test_an_image_is_rv32_at_the_image_base(tmp_path, cache):
    image = build(tmp_path / "a", cache).read_bytes()
    kind, machine, _, entry = struct.unpack_from("<HHII", image, 16)
    assert image[:5] == b"\x7fELF\x01"
    assert (kind, machine) == (2, 243)  # executable, RISC-V
    assert 0x10000000 <= entry < 0x10001000
    assert b"payload_handler\0" in image
    assert b"completion_handler\0" in image
    assert b"header_handler" not in image


def test_the_same_source_gives_the_same_bytes_in_every_folder(tmp_path, cache):
    one = build(tmp_path / "one", cache).read_bytes()
    two = build(tmp_path / "another place", tmp_path / "fresh cache").read_bytes()
    assert one == two
    assert str(tmp_path).encode() not in one


def test_another_source_gives_other_bytes(tmp_path, cache):
    one = build(tmp_path / "one", cache).read_bytes()
    two = build(tmp_path / "two", cache, SOURCE.replace("{1, 2, 3, 5}", "{1, 2, 3, 7}")).read_bytes()
    assert one != two


FLOAT = """
/* scales by a float */
int payload_handler(double *x, unsigned n) {
  for (unsigned i = 0; i < n; ++i) x[i] = __builtin_sqrt(x[i] * x[i] + 0.5);
  return 0;
}
"""


def float_abi(image: Path) -> int:
    """Of the flags word: 0 none, 4 that of double."""
    return struct.unpack_from("<I", image.read_bytes(), 36)[0] & 6


def test_a_source_with_numbers_is_for_cores_with_floating_point(tmp_path, cache):
    assert float_abi(build(tmp_path / "float", cache, FLOAT)) == 4
    assert float_abi(build(tmp_path / "none", cache)) == 0


def test_comments_and_strings_ask_for_no_floating_point(tmp_path, cache):
    mentions = (
        '/* no double */ // no float "\n' + SOURCE + 'const char *said(void) { return "a \\"float"; }\n'
    )
    plain = SOURCE + 'const char *said(void) { return "a \\"flout"; }\n'
    assert float_abi(build(tmp_path / "mentions", cache, mentions)) == 0
    assert (
        build(tmp_path / "mentions", cache, mentions).read_bytes()
        == build(tmp_path / "plain", cache, plain).read_bytes()
    )


@pytest.mark.parametrize(
    ("spoiled", "complaint"),
    [
        ("int count; int payload_handler(void) { return count++; }", "writable data"),
        ("int hello(void) { return 0; }", "defines none of"),
        ("int payload_handler(void) { return nothing; }", "sample.c does not build"),
        ("int missing(void); int payload_handler(void) { return missing(); }", "missing"),
    ],
)
def test_a_wrong_source_is_refused(tmp_path, cache, spoiled, complaint):
    with pytest.raises(toolchain.ToolchainError, match=complaint) as caught:
        build(tmp_path / "wrong", cache, spoiled)
    assert not caught.value.environment


@pytest.mark.parametrize("file", ["requirements.txt", "pyproject.toml"])
def test_every_file_pins_the_same_compiler(file):
    pinned = set(re.findall(r"ziglang==([\d.]+)", (ROOT / file).read_text()))
    assert pinned == {toolchain.COMPILER_VERSION}


DIVIDES = """
#include "spinloom/handler.h"
int payload_handler(const ptl_payload_t p, void *state) { (void)state; return (int)(p.length / p.offset); }
"""


def test_a_64_bit_division_is_told_what_it_needs(tmp_path, cache):
    with pytest.raises(toolchain.ToolchainError, match=r'#include "spinloom/divide.h"'):
        build(tmp_path / "without", cache, DIVIDES)
    assert build(tmp_path / "with", cache, '#include "spinloom/divide.h"' + DIVIDES).exists()
