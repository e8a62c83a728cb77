"""What a handler's author may expect: C as elsewhere, memory that holds something, errors with a line."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common.errors import Trouble
from spinloom.handlers import handler_build, handler_runs, handler_setup, toolchain
from spinloom.handlers.handler_setup import HandlerSetup

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    needs_engine,
    pytest.mark.skipif(
        toolchain.compiler_version() != toolchain.COMPILER_VERSION,
        reason="the handler compiler is not installed",
    ),
]

PAYLOAD = "int payload_handler(const ptl_payload_t p, void *state) { %s }\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(folder, body: str, before: str = "") -> handler_build.Image:
    path = folder / "sample.c"
    path.write_text(f'{before}#include "spinloom/handler.h"\n{body}')
    return handler_build.image_of(path)


def test_parameters_need_not_be_used(folder):
    source(folder, PAYLOAD % "return SUCCESS;")
    handler_build.build_native(folder / "sample.c", folder / "sample.so")


@pytest.mark.parametrize(
    "wrong",
    [
        "int payload_handler(void *state) { return SUCCESS; }",
        "void completion_handler(int dropped, bool flow, void *state) {}",
        "int header_handler(const ptl_payload_t p, void *state) { return DROP; }",
    ],
)
def test_a_wrong_prototype_is_an_error(folder, wrong):
    # Rules: SPIN-8.5.
    with pytest.raises(Trouble, match=r"(?s)sample.c:2:.*conflicting types"):
        source(folder, wrong + "\n")
    with pytest.raises(Trouble, match=r"(?s)sample.c:2:.*conflicting types"):
        handler_build.build_native(folder / "sample.c", folder / "sample.so")


STRINGS = """
int payload_handler(const ptl_payload_t p, void *state) {
  uint8_t *to = state;
  const uint32_t n = (uint32_t)p.length;
  memset(to, 0xa5, 4 * n + 64);
  memcpy(to + 1, p.base, n);                 /* not aligned to each other */
  memcpy(to + n + 8 - n % 4, p.base, n);     /* aligned */
  memmove(to + 3, to + 1, n);                /* forwards, overlapping */
  memmove(to + 2 * n + 16, p.base, n);
  memmove(to + 2 * n + 13, to + 2 * n + 16, n); /* backwards, overlapping */
  uint32_t *told = (uint32_t *)(to + ((4 * n + 64) & ~3u));
  told[0] = (uint32_t)memcmp(p.base, p.base, n);
  told[1] = n > 0 && memcmp(to + n + 8 - n % 4, p.base, n) == 0;
  told[2] = (uint32_t)memcmp("abd", "abc", 3);
  told[3] = (uint32_t)memcmp("ab", "b", 1);
  told[4] = (uint32_t)strlen("five5");
  return SUCCESS;
}
"""


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 31, 64, 257])
def test_string_h_does_what_c_says(folder, n):
    image = source(folder, STRINGS, "#include <string.h>\n")
    message = random.Random(n).randbytes(n)
    state = 4 * n + 64 + 32
    ran = handler_runs.run(image, HandlerSetup(state_bytes=state, message_bytes=n), message)
    assert ran.ended_well, ran.failures
    wanted = bytearray(b"\xa5" * (4 * n + 64))
    wanted[1 : 1 + n] = message
    aligned = n + 8 - n % 4
    wanted[aligned : aligned + n] = message
    wanted[3 : 3 + n] = wanted[1 : 1 + n]
    wanted[2 * n + 16 : 3 * n + 16] = message
    wanted[2 * n + 13 : 3 * n + 13] = message
    assert ran.result["state"][: 4 * n + 64] == bytes(wanted)
    at = (4 * n + 64) & ~3
    equal = wanted[aligned : aligned + n] == message
    assert struct.unpack_from("<5i", ran.result["state"], at) == (0, int(equal), 1, -1, 5)


def test_the_compiler_may_call_memcpy_for_a_struct(folder):
    body = (
        "typedef struct { uint32_t words[64]; } block_t;\n"
        + PAYLOAD % "*(block_t *)state = *(const block_t *)p.base; return SUCCESS;"
    )
    message = random.Random(1).randbytes(256)
    ran = handler_runs.run(source(folder, body), HandlerSetup(state_bytes=256), message)
    assert ran.result["state"] == message


def test_a_source_without_them_is_the_same_image(folder):
    plain = source(folder, PAYLOAD % "return (int)p.length;").elf
    including = source(folder, PAYLOAD % "return (int)p.length;", "#include <string.h>\n").elf
    assert plain == including
    assert b"memcpy" not in plain


def test_a_fault_names_its_line(spinloom, folder):
    source(
        folder,
        "static int bad(void *s) {\n  return *(volatile int *)4;\n}\n" + PAYLOAD % "return bad(state);",
    )
    ran = spinloom("handler", "run", "sample.c", "--size", "8")
    assert ran.code == 1
    assert re.search(r"payload: .*pc 0x[0-9a-f]+.* \(sample\.c:3\)", ran.out), ran.out


def test_disasm_shows_the_source_beside_the_code(spinloom, folder):
    source(folder, PAYLOAD % "\n  return (int)p.length + 1;\n")
    ran = spinloom("handler", "disasm", "sample.c")
    assert ran.code == 0
    lines = ran.out.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("sample.c:3"))
    assert lines[at].split(maxsplit=1)[1] == "return (int)p.length + 1;"
    assert re.match(r"  1[0-9a-f]{7}  [0-9a-f]{4}", lines[at + 1])
    handler_build.image_of(folder / "sample.c", folder / "alone.elf")
    alone = spinloom("handler", "disasm", "alone.elf")
    assert [line for line in lines if not line.startswith("sample.c:")] == alone.out.splitlines()


def test_memories_hold_what_the_file_says_at_first(spinloom, folder):
    (folder / "entry.bin").write_bytes(b"entry as it was")
    (folder / "sample.toml").write_text(
        "[message]\nbytes = 4\n"
        '[memory]\nentry = 32\nentry_from = "entry.bin"\nstate = 16\nstate_from = [7, "message", "packet"]\n'
        "handler = 8\nhandler_from = [0x11223344, 5]\n"
    )
    source(
        folder,
        "int header_handler(const ptl_header_t h, void *state) { return DROP; }\n"
        "int completion_handler(int dropped, bool flow, void *state) {\n"
        "  return PtlHandlerDMAFromHostB(4, (uint32_t *)state + 3, 4, PTL_HANDLER_HOST_MEM);\n}\n",
    )
    setup = handler_setup.load(folder / "sample.toml")
    ran = handler_runs.run(handler_build.image_of(folder / "sample.c"), setup, b"abcd")
    assert ran.ended_well, ran.failures
    assert ran.result["entry"] == b"entry as it was".ljust(32, b"\0")
    assert struct.unpack("<4I", ran.result["state"]) == (7, 4, 2048, 5)
    assert ran.result["handler_memory"] == struct.pack("<2I", 0x11223344, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('state_from = "nowhere.bin"', "memory.state_from: nowhere.bin cannot be read: No such file"),
        ("state_from = 7", "a file's name, or a list of 32-bit numbers"),
        ("entry_from = [-1]", "a file's name, or a list of 32-bit numbers"),
    ],
)
def test_contents_that_cannot_be_are_named(folder, text, said):
    (folder / "sample.toml").write_text(f"[memory]\n{text}\n")
    with pytest.raises(Trouble, match=re.escape(said)):
        handler_setup.load(folder / "sample.toml")


def test_an_expectation_that_fails_names_its_line_and_case(spinloom, folder):
    source(folder, PAYLOAD % "return SUCCESS;")
    expect = folder / "sample_expect.py"
    expect.write_text(
        "def expect(message, count):\n    if not message:\n        raise KeyError('none')\n    return {}\n"
    )
    tested = spinloom("handler", "test", "sample.c")
    assert tested.code == 2
    assert "sample_expect.py:3: expect() of a message of 0 B, count 1: KeyError: 'none'" in tested.err
    expect.write_text("import json\n\njson.loads('{')\n")
    assert "sample_expect.py:3: JSONDecodeError" in spinloom("handler", "run", "sample.c").err
    expect.write_text("def expect(message, count)\n    return {}\n")
    assert "sample_expect.py:1: SyntaxError" in spinloom("handler", "run", "sample.c").err


def test_the_page_lists_every_key():
    page = (ROOT / "docs/formats/handler.md").read_text()
    assert set(re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", page, re.MULTILINE)) == set(handler_setup.KEYS)


@pytest.mark.parametrize(
    ("options", "is_lower_bound"),
    [((), True), (("--hpus", "1"), False), (("--nic", "pspin-rtl"), False)],
)
def test_a_time_without_contention_is_called_a_lower_bound(spinloom, folder, options, is_lower_bound):
    (folder / "sample.toml").write_text("[memory]\nstate = 8\n")
    add = "__atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED); return SUCCESS;"
    source(folder, PAYLOAD % add)
    ran = spinloom("handler", "run", "sample.c", *options)
    assert ran.code == 0, ran.err
    assert ("lower bounds:" in ran.out) is is_lower_bound
    source(folder, PAYLOAD % "return SUCCESS;")
    assert "lower bounds:" not in spinloom("handler", "run", "sample.c", *options).out


def test_what_is_written_behind_the_expectation_is_found(spinloom, folder):
    stray = "PtlHandlerDMAToHostB(p.base, 48, 4, PTL_ME_HOST_MEM); return SUCCESS;"
    (folder / "sample.toml").write_text("[message]\nbytes = 8\n[memory]\nentry = 64\nstate = 8\n")
    expect = folder / "sample_expect.py"
    expect.write_text("def expect(message, count):\n    return {'entry': bytes(8)}\n")
    source(folder, PAYLOAD % stray)
    ran = spinloom("handler", "run", "sample.c")
    assert ran.code == 1
    assert "the entry's memory: byte 48, behind what is expected, was changed" in ran.out
    source(folder, PAYLOAD % "return SUCCESS;")
    ran = spinloom("handler", "run", "sample.c")
    assert ran.code == 0, ran.out
    assert "says; not compared: the state" in ran.out


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("{'entry': 'text'}", "returned str as 'entry'; it must be bytes"),
        ("{'entry': b'', 'records': -8}", "returned -8 as 'records'"),
    ],
)
def test_an_expectation_of_another_kind_is_refused(spinloom, folder, returned, said):
    source(folder, PAYLOAD % "return SUCCESS;")
    (folder / "sample_expect.py").write_text(f"def expect(message, count):\n    return {returned}\n")
    ran = spinloom("handler", "run", "sample.c", "--size", "8")
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "state = 16\nstate_from = [1, 2, 3, 4, 5]",
            "memory.state_from has 20 B, more than memory.state, which is 16 B",
        ),
        ('entry = "1 TiB"', "a whole number from 0 to 1,073,741,824"),
        ("[nic]\norder = 'window:99999999999'", "N from 1 to 2\\^32 - 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(spinloom, folder, text, said):
    (folder / "sample.toml").write_text(f"[memory]\n{text}\n")
    source(folder, PAYLOAD % "return SUCCESS;")
    ran = spinloom("handler", "run", "sample.c", "--size", "8")
    assert ran.code == 2
    assert re.search(said, ran.err), ran.err
