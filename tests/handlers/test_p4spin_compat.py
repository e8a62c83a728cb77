"""Handlers in the style in which the SC'17 paper prints them: p4spin_compat.h beside handler.h."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common.errors import Trouble
from spinloom.handlers import handler_build, handler_runs, toolchain
from spinloom.handlers.handler_setup import HandlerSetup

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)

# Multiplies what comes, lays it out in rows of `width` bytes that lie `pitch` apart, and tells how many came.
SCALE = """
#define SPL_HEADER_HANDLER scale_header_handler
#define SPL_PAYLOAD_HANDLER scale_payload_handler
#define SPL_COMPLETION_HANDLER scale_completion_handler
#define SPL_USER_HEADER int factor; int spare;
#include "spinloom/p4spin_compat.h"

typedef struct {
  ptl_process_t source;
  int factor;
  ptl_size_t width;
  ptl_size_t pitch;
  ptl_size_t length;
} scale_info_t;

int scale_header_handler(const ptl_header_t h, void *state) {
  scale_info_t *i = state;
  i->source = h.source_id + h.source_id * 2;
  i->factor = h.user_hdr.factor;
  i->length = h.length - sizeof h.user_hdr;
  return PROCESS_DATA;
}

int scale_payload_handler(const ptl_payload_t p, void *state) {
  scale_info_t *i = (scale_info_t *)state;
  uint32_t *buf = malloc(p.length / sizeof(uint32_t));
  uint32_t *data = (uint32_t *)p.base;
  for (int j = 0; j < p.length / sizeof(uint32_t); j++) buf[j] = data[j] * i->factor;
  for (int j = 0; j < p.length; j += 4) {
    ptl_size_t at = p.offset + j;
    PtlHandlerDMAToHostB((uint8_t *)buf + j, at / i->width * i->pitch + at % i->width, 4, PTL_ME_HOST_MEM);
  }
  free(buf);
  return SUCCESS;
}

int scale_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  scale_info_t *i = state;
  PtlHandlerPutFromDevice(&i->length, 8, 1, 0, i->source, 10, 0, NULL, 0);
  return SUCCESS;
}
"""


def image(folder: Path, text: str = SCALE) -> handler_build.Image:
    source = folder / "scale.c"
    source.write_text(text)
    return handler_build.image_of(source)


@needs_engine
@pytest.mark.parametrize("numbers", [1, 511, 512, 3000])
def test_printed_style_runs_as_it_reads(tmp_path, numbers):
    # Rules: SPIN-8.7.
    width, pitch, factor = 24, 40, 7
    values = [(index * 2654435761) % 2**32 for index in range(numbers)]
    message = struct.pack("<ii", factor, 0) + struct.pack(f"<{numbers}I", *values)
    setup = HandlerSetup(
        state_bytes=40,
        state_from=(0, 0, width, 0, pitch, 0),
        reply_bytes=8,
        user_header_bytes=8,
        entry_bytes=numbers * 4 * 2 + 64,
        message_bytes=1,
    )
    built = image(tmp_path)
    assert set(built.handlers) == {"header_handler", "payload_handler", "completion_handler"}
    ran = handler_runs.run(built, setup, message)
    assert ran.ended_well, ran.failures
    wanted = bytearray(len(ran.result["entry"]))
    for index, value in enumerate(values):
        place = index * 4 // width * pitch + index * 4 % width
        wanted[place : place + 4] = struct.pack("<I", value * factor % 2**32)
    assert ran.result["entry"] == bytes(wanted)
    assert ran.result["reply"][:8] == struct.pack("<Q", numbers * 4)


ROOM = """
#define SPL_HEADER_HANDLER room_header_handler
#define SPL_USER_HEADER uint64_t first; uint64_t second;
#define SPL_ARENA_BYTES 512
#include "spinloom/p4spin_compat.h"
int room_header_handler(const ptl_header_t h, void *state) {
  uint64_t *said = state;
  uint8_t *one = malloc(1), *all = malloc(512);
  said[0] = h.user_hdr.first;
  said[1] = h.user_hdr.second;
  said[2] = malloc(513) == NULL;
  for (int i = 0; i < 512; ++i) one[i] = all[i] = (uint8_t)i;
  said[3] = one != all && one[511] == 255 && all[511] == 255;
  free(one);
  return DROP;
}
"""


@needs_engine
def test_user_headers_are_padded_with_zeros_and_malloc_gives_the_arena(tmp_path):
    """A message of 12 B has half of the second number; `one` has the arena, though a byte was asked for."""
    # Rules: SPIN-8.8, SPIN-8.9.
    setup = HandlerSetup(state_bytes=32, user_header_bytes=16, message_bytes=1)
    ran = handler_runs.run(image(tmp_path, ROOM), setup, struct.pack("<QI", 5, 6))
    assert ran.ended_well, ran.failures
    assert struct.unpack("<4Q", ran.result["state"]) == (5, 6, 1, 1)


def test_a_role_that_is_not_there_is_no_handler(tmp_path):
    only = SCALE.replace("#define SPL_HEADER_HANDLER scale_header_handler\n", "").replace(
        "#define SPL_COMPLETION_HANDLER scale_completion_handler\n", ""
    )
    assert image(tmp_path, only).handlers == ("payload_handler",)


def test_a_source_without_roles_is_told_how_to_name_them(tmp_path):
    with pytest.raises(Trouble, match="defines none of header_handler") as told:
        image(
            tmp_path, '#include "spinloom/p4spin_compat.h"\nint scale_payload_handler(void) { return 0; }\n'
        )
    assert "#define SPL_PAYLOAD_HANDLER scale_payload_handler" in str(told.value)
    assert "SPL_HEADER_HANDLER" not in str(told.value)


@pytest.mark.parametrize("order", ["handler.h first", "handler.h last"])
def test_either_order_of_the_headers_is_the_same_image(tmp_path, order):
    compat, plain = '#include "spinloom/p4spin_compat.h"\n', '#include "spinloom/handler.h"\n'
    both = plain + compat if order == "handler.h first" else compat + plain
    assert image(tmp_path, SCALE.replace(compat, both)).elf == image(tmp_path).elf


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler 'cc'")
def test_it_is_refused_natively(tmp_path):
    # Rules: SPIN-8.10.
    source = tmp_path / "native.c"
    source.write_text('#include "spinloom/p4spin_compat.h"\n')
    ran = subprocess.run(
        ["cc", "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)], capture_output=True, text=True
    )
    assert ran.returncode != 0
    assert "for handler images only" in ran.stderr


DIVISION = """
#include "spinloom/divide.h"
#include "spinloom/handler.h"
int payload_handler(const ptl_payload_t p, void *state) {
  const uint64_t *given = (const uint64_t *)p.base;
  uint64_t *found = state;
  for (uint32_t i = 0; i + 1 < p.length / 8; i += 2) {
    found[2 * i] = given[i] / given[i + 1];
    found[2 * i + 1] = given[i] % given[i + 1];
    found[2 * i + 2] = (uint64_t)((int64_t)given[i] / (int64_t)given[i + 1]);
    found[2 * i + 3] = (uint64_t)((int64_t)given[i] % (int64_t)given[i + 1]);
  }
  return SUCCESS;
}
"""


@needs_engine
def test_64_bit_numbers_divide(tmp_path):
    chance = random.Random("division")
    numbers = [chance.getrandbits(chance.choice([3, 31, 32, 33, 63, 64])) or 1 for _ in range(250)]
    numbers += [2**64 - 1, 1, 2**63, 2, 2**64 - 1, 2**64 - 1, 1, 2**64 - 1]
    message = struct.pack(f"<{len(numbers)}Q", *numbers)
    setup = HandlerSetup(state_bytes=2 * len(message), message_bytes=1, packet_bytes=4096)
    ran = handler_runs.run(image(tmp_path, DIVISION), setup, message)
    assert ran.ended_well, ran.failures
    found = struct.unpack(f"<{2 * len(numbers)}Q", ran.result["state"])
    for index, (number, by) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
        wide, narrow = signed(number), signed(by)
        quotient = abs(wide) // abs(narrow) * (-1 if (wide < 0) != (narrow < 0) else 1)
        wanted = [number // by, number % by, quotient % 2**64, (wide - quotient * narrow) % 2**64]
        assert list(found[4 * index : 4 * index + 4]) == wanted, (number, by)


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
