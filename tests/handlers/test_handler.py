"""`spinloom handler`: templates, builds, runs, profiles, and handlers that misbehave."""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import statistics
import struct

import pytest

from conftest import needs_engine
from spinloom.common import data
from spinloom.common.handler_calls import CALLS
from spinloom.handlers import handler_budget, handler_build, handler_runs, handler_setup, toolchain
from spinloom.handlers.handler_setup import HandlerSetup
from spinloom.nics import profiles
from spinloom.verbs.handler import TEMPLATES
from spinloom.verbs.handler_report import changed_ranges

pytestmark = [
    needs_engine,
    pytest.mark.skipif(
        toolchain.compiler_version() != toolchain.COMPILER_VERSION,
        reason="the handler compiler is not installed",
    ),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(folder, body: str, name: str = "sample") -> handler_build.Image:
    path = folder / f"{name}.c"
    path.write_text('#include "spinloom/handler.h"\n' + body)
    return handler_build.image_of(path)


def payload(body: str) -> str:
    return f"int payload_handler(const ptl_payload_t p, void *state) {{ (void)p; (void)state; {body} }}\n"


# ---- from a template ----


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_builds_runs_and_passes_its_own_test(spinloom, folder, template):
    # Rules: SPIN-1.9.
    assert spinloom("handler", "new", "mine", "--template", template).code == 0
    built = spinloom("handler", "build", "mine.c")
    assert built.code == 0
    assert "payload_handler" in built.out
    ran = spinloom("handler", "run", "mine.c")
    assert ran.code == 0, ran.out + ran.err
    assert "bytes: as mine_expect.py says" in ran.out
    assert (
        spinloom("handler", "run", "mine.elf", "--size", "5000", "--order", "all:4", "--hpus", "3").code == 0
    )
    tested = spinloom("handler", "test", "mine.c")
    assert tested.code == 0, tested.out
    assert "54 runs, 0 in trouble; bytes compared with mine_expect.py" in tested.out


def test_new_replaces_nothing_unless_told(spinloom, folder):
    assert spinloom("handler", "new", "mine").code == 0
    again = spinloom("handler", "new", "mine")
    assert again.code == 2
    assert "--force" in again.err
    assert spinloom("handler", "new", "mine", "--force").code == 0
    assert spinloom("handler", "new", "9lives").code == 2


def test_a_wrong_result_is_found_and_negative(spinloom, folder):
    spinloom("handler", "new", "mine", "--template", "reply")
    text = (folder / "mine.c").read_text()
    (folder / "mine.c").write_text(text.replace("byte ^ 0x20", "byte"))
    ran = spinloom("handler", "run", "mine.c")
    assert ran.code == 1
    assert "WRONG: the sender's memory: byte" in ran.out
    assert spinloom("handler", "test", "mine.c").code == 1


def test_the_compilers_own_words_are_shown(spinloom, folder):
    (folder / "bad.c").write_text(
        '#include "spinloom/handler.h"\nint payload_handler(void) { return oops; }\n'
    )
    built = spinloom("handler", "build", "bad.c")
    assert built.code == 2
    assert "bad.c:2" in built.err
    assert "oops" in built.err


def test_a_source_builds_natively(spinloom, folder):
    spinloom("handler", "new", "mine", "--template", "reply")
    built = spinloom("handler", "build", "--native", "mine.c")
    assert built.code == 0, built.err
    assert "mine.so: " in built.out
    assert "payload_handler" in built.out
    made = ctypes.CDLL(str(folder / "mine.so"))
    assert ctypes.c_uint32.in_dll(made, "spl_hpu_abi").value == 2
    assert made.payload_handler
    assert made.spl_hpu_bind


def test_a_native_build_shows_the_compilers_words_and_what_it_misses(spinloom, folder, monkeypatch):
    body = '#include "spinloom/handler.h"\nint elsewhere(void);\n'
    body += "int payload_handler(const ptl_payload_t p, void *state) { return %s; }\n"
    for returned in ("oops", "elsewhere()"):
        (folder / "bad.c").write_text(body % returned)
        built = spinloom("handler", "build", "--native", "bad.c", "-o", "made.so")
        assert built.code == 2
        assert returned.rstrip("()") in built.err
    (folder / "bad.c").write_text(body % "0")
    monkeypatch.setenv("CC", "no-such-compiler")
    built = spinloom("handler", "build", "--native", "bad.c")
    assert built.code == 3
    assert "set CC" in built.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nic]\norder = 'sideways'\n", "nic.order is 'sideways'"),
        ("[nic]\nhpu = 3\n", "did you mean 'nic.hpus'"),
        ("[memory]\nconstants = [5000000000]\n", "memory.constants"),
        ("[memory]\nstate = true\n", "memory.state is True"),
        ("count = 1\n", "stands outside of the tables"),
        ("[nic\n", "sample.toml"),
    ],
)
def test_a_wrong_setup_is_named(folder, text, said):
    (folder / "sample.toml").write_text(text)
    with pytest.raises(handler_setup.Trouble, match=said.replace("[", r"\[")):
        handler_setup.load(folder / "sample.toml")


def test_json_has_everything(spinloom, folder):
    spinloom("handler", "new", "mine", "--template", "count-words")
    (folder / "text").write_bytes(b"one two three")
    document = json.loads(spinloom("handler", "run", "mine.c", "--message", "text", "--json").out)
    assert bytes.fromhex(document["state"])[:8] == (3).to_bytes(8, "little")
    assert [line[3:] for line in document["debug"]] == [["words so far", 3]]
    assert document["differences"] == []
    assert document["calls"] == {"DMA to host, non-blocking": 1, "state fetch-and-add": 1, "debug": 1}


def test_changed_ranges():
    before, after = bytes(40), bytearray(40)
    after[3] = after[7] = after[30] = 1
    assert list(changed_ranges(before, bytes(after))) == [(3, 8), (30, 31)]
    assert list(changed_ranges(before, before)) == []


def test_a_trace_opens_in_perfetto(spinloom, folder):
    pytest.importorskip("perfetto")
    spinloom("handler", "new", "mine")
    assert spinloom("handler", "run", "mine.c", "--timeline", "out.pftrace").code == 0
    assert (folder / "out.pftrace").stat().st_size > 1000


# ---- where cycles go ----


def test_a_profile_names_lines_and_its_cycles_add_up(spinloom, folder):
    pytest.importorskip("elftools")
    spinloom("handler", "new", "mine", "--template", "count-words")
    image = handler_build.image_of(folder / "mine.c")
    setup = handler_setup.load(folder / "mine.toml")
    ran = handler_runs.run(image, setup, b"some words " * 1000, profile_instructions=True)
    spent = sum(cycles for _, cycles in ran.result["instructions"].values())
    assert spent == sum(kind["cycles"] for kind in ran.result["handlers"].values())
    assert spent == sum(ran.result["function_cycles"].values())
    executed = sum(count for count, _ in ran.result["instructions"].values())
    assert executed == sum(kind["instructions"] for kind in ran.result["handlers"].values())
    loads = sum(loads for loads, *_ in ran.result["traffic"].values())
    assert loads == sum(kind["loads"] for kind in ran.result["handlers"].values())
    lines = (folder / "mine.c").read_text().splitlines()
    table = handler_build.line_table(image)
    hot = max(ran.result["instructions"].items(), key=lambda item: item[1][1])[0]
    file, line = table[hot]
    assert file == "mine.c"
    assert any(word in lines[line - 1] for word in ("for (", "is_blank", "words +=", "inside ="))
    shown = spinloom("handler", "profile", "mine.c", "--no-budget")
    assert shown.code == 0
    assert "words += !blank && !inside;" in shown.out


CALLS_INLINE = """#include "spinloom/handler.h"
#include "twice.h"
int payload_handler(const ptl_payload_t p, void *state) {
  uint64_t before;
  PtlHandlerFAdd(state, &before, 1);
  twice(state);
  PtlHandlerDMAToHostB(p.base, p.entry_offset, p.length, PTL_DMA_NO_EVENT);
  return SUCCESS;
}
"""
TWICE = """static inline void twice(volatile uint32_t *word) {
  word[4] *= 2;
  (void)spl_cycles();
}
"""


def test_inline_functions_of_the_header_count_for_the_line_that_calls_them(spinloom, folder):
    pytest.importorskip("elftools")
    (folder / "twice.h").write_text(TWICE)
    (folder / "mine.c").write_text(CALLS_INLINE)
    (folder / "mine.toml").write_text("[memory]\nstate = 32\n")
    document = json.loads(spinloom("handler", "profile", "mine.c", "--no-budget", "--json").out)
    assert document["failures"] == []
    assert {line["file"] for line in document["lines"]} == {"mine.c", "twice.h"}
    cycles = {(line["file"], line["line"]): line["cycles"] for line in document["lines"]}
    assert sum(cycles.values()) == sum(function["cycles"] for function in document["functions"])
    for place in (("mine.c", 5), ("mine.c", 7), ("twice.h", 2), ("twice.h", 3)):
        assert cycles[place] > 0, place
    assert cycles["mine.c", 5] + cycles["mine.c", 7] > sum(cycles.values()) / 2  # both wait for the NIC
    texts = {(line["file"], line["line"]): line["source"] for line in document["lines"]}
    assert texts["mine.c", 5] == "PtlHandlerFAdd(state, &before, 1);"
    assert texts["twice.h", 2] == "word[4] *= 2;"


def test_a_profile_as_json_has_what_the_tables_have(spinloom, folder):
    pytest.importorskip("elftools")
    image = source(folder, payload("return p.length > 100 ? SUCCESS : DROP;"))
    document = json.loads(spinloom("handler", "profile", "sample.c", "--json", "--size", "64KiB").out)
    assert document["handlers"] == ["payload_handler"]
    assert document["budget"]["hpus_by_law"] >= 1
    assert document["budget"]["packet_ps"] == 2048 * 37.25
    assert document["atomics"] == 0
    assert {"memory", "address", "loads", "loaded_bytes", "stores", "stored_bytes"} == {
        *document["memory"][0]
    }
    (folder / "sample.elf").write_bytes(image.elf)
    of_image = json.loads(spinloom("handler", "profile", "sample.elf", "--json", "--no-budget").out)
    assert of_image["budget"] is None
    assert of_image["functions"] == document["functions"]
    assert sum(row["cycles"] for row in of_image["instructions"]) == document["functions"][0]["cycles"]
    shown = spinloom("handler", "profile", "sample.c", "--no-budget").out
    for line in document["lines"]:
        assert f"{line['file']}:{line['line']}" in shown


# ---- warnings ----

UNUSED = payload("int later = 3; return SUCCESS;") + "static int helper(void) { return 1; }\n"


def test_what_is_unused_is_a_warning_in_a_handler_of_a_user_s_own(spinloom, folder):
    (folder / "mine.c").write_text('#include "spinloom/handler.h"\n' + UNUSED)
    for _ in range(2):  # the compiler's cache forgets no warning
        built = spinloom("handler", "build", "mine.c")
        assert built.code == 0
        assert "mine.c:2:" in built.err
        assert "unused variable 'later'" in built.err
        assert "unused function 'helper'" in built.err
        assert "warnings generated" not in built.err
    ran = spinloom("handler", "profile", "mine.c", "--no-budget")
    assert ran.code == 0
    assert ran.err.count("unused variable") == 1
    native = spinloom("handler", "build", "--native", "mine.c")
    assert native.code == 0
    assert "later" in native.err


def test_other_warnings_are_errors_and_shipped_handlers_have_none(spinloom, folder):
    path = folder / "mine.c"
    path.write_text('#include "spinloom/handler.h"\n' + payload("if (p.length = 3) return DROP;"))
    built = spinloom("handler", "build", "mine.c")
    assert built.code == 2
    assert "error: " in built.err
    path.write_text('#include "spinloom/handler.h"\n' + UNUSED)
    script = data.folder("handlers") / "handler.ld"
    with pytest.raises(toolchain.ToolchainError, match="error: unused variable 'later'"):
        toolchain.compile(path, folder / "mine.elf", include=[data.folder("include")], script=script)


def test_profiling_changes_no_time(folder):
    image = source(folder, payload("return p.length > 100 ? SUCCESS : DROP;"))
    setup = HandlerSetup()
    plain = handler_runs.run(image, setup, bytes(10_000))
    profiled = handler_runs.run(image, setup, bytes(10_000), profile_instructions=True, trace=True)
    assert plain.result["time_ps"] == profiled.result["time_ps"]


def test_the_budget_of_a_handler_of_known_time(folder):
    """A loop of 800 cycles is a microsecond at 800 MHz: 13.1 packets of 2 KiB at 200 Gbit/s."""
    wait = "for (uint64_t begin = spl_cycles(); spl_cycles() - begin < 800;) {} return SUCCESS;"
    image = source(folder, payload(wait))
    profile = profiles.load("sc19-slingshot")
    budget = handler_budget.budget_of(image, HandlerSetup(), profile, seed=1)
    packet_ps = float(profile["link.byte_time"]) * 2048
    handler_ps = float(budget.handler_ps)
    assert 800 <= handler_ps * profile["hpu.clock"] / 1e12 < 850
    assert budget.hpus_by_law == -(-handler_ps // packet_ps)
    assert budget.hpus_by_law - 1 <= budget.hpus_by_simulation <= budget.hpus_by_law + 2


@pytest.mark.parametrize("least", [1, 2, 7, 100, 256])
@pytest.mark.parametrize("guess", [1, 9, 90, 5000])
def test_the_search_finds_the_least_from_any_guess(least, guess):
    assert handler_budget.smallest(lambda hpus: hpus >= least, guess) == least
    assert handler_budget.smallest(lambda hpus: False, guess) is None


def test_disasm_names_the_handlers(spinloom, folder):
    spinloom("handler", "new", "mine")
    shown = spinloom("handler", "disasm", "mine.c")
    assert "payload_handler:" in shown.out
    assert "jalr zero, 0(ra)" in shown.out


def test_disasm_shows_constants_as_data(spinloom, folder):
    source(
        folder,
        "static const volatile uint32_t table[] = {0x00000513, 0xdeadbeef, 7};\n"
        + payload("return (int)table[p.offset % 3];"),
    )
    lines = spinloom("handler", "disasm", "sample.c").out.splitlines()
    data = [line.split(maxsplit=2)[2] for line in lines if " .word " in line or " .half " in line]
    assert data[-3:] == [".word 0x513", ".word 0xdeadbeef", ".word 0x7"]
    assert not any("addi a0, zero, 0" in line for line in lines[-3:])


def test_the_calls_have_the_numbers_of_the_header():
    header = (data.folder("include") / "spinloom/hpu_map.h").read_text()
    numbers = [line.split()[2] for line in header.splitlines() if line.startswith("#define SPL_CALL_")]
    assert sorted(int(number.rstrip("u")) for number in numbers) == sorted(CALLS)


def test_debug_lines_come_with_time_and_hpu(folder):
    # Rules: SPIN-1.7.
    image = source(folder, payload('spl_debug("at", (uint32_t)p.offset); return SUCCESS;'))
    ran = handler_runs.run(image, HandlerSetup(hpus=4), bytes(5 * 2048))
    lines = ran.result["debug"]
    assert sorted(line[4] for line in lines) == [packet * 2048 for packet in range(5)]
    assert {line[3] for line in lines} == {b"at"}
    assert [line[0] for line in lines] == sorted(line[0] for line in lines)
    assert {line[1] for line in lines} <= set(range(4))


def test_a_handler_computes_with_numbers(folder):
    """Sums, roots and quotients of a packet's doubles are Python's own: both round each operation."""
    image = source(
        folder,
        payload("""
  const double *const x = (const double *)p.base;
  double sum = 0, roots = 0;
  for (uint32_t i = 0; i < (uint32_t)p.length / 8; ++i) {
    sum += x[i] / 3;
    roots = roots * 0.5 + __builtin_sqrt(x[i]);
  }
  *(double *)state = sum;
  *(float *)((char *)state + 8) = (float)roots;
  return SUCCESS;"""),
    )
    chance = random.Random(7)
    numbers = [chance.expovariate(1e-3) for _ in range(200)]
    ran = handler_runs.run(image, HandlerSetup(state_bytes=16), struct.pack("<200d", *numbers))
    assert ran.ended_well
    total = roots = 0.0
    for number in numbers:
        total += number / 3
        roots = roots * 0.5 + math.sqrt(number)
    assert ran.result["state"][:12] == struct.pack("<df", total, roots)


def test_a_nic_without_floating_point_refuses_the_handler(spinloom, folder):
    source(folder, payload("*(double *)state *= 2; return SUCCESS;"))
    ran = spinloom("handler", "run", "sample.c", "--nic", "pulp-22nm")
    assert ran.code == 2
    assert "cores with floating point" in ran.err
    assert "a15" in ran.err


# ---- handlers that misbehave: the message ends as docs/handlers.md says, the NIC goes on ----

SEGV, FAULT, BUDGET = "a handler or its DMA left its memory", "a handler faulted", "past its cycle budget"
NULL_TEXT = "(const char *)0"
MISBEHAVIOUR = {
    "wild read": ("return *(volatile int *)0x70000000;", SEGV),
    "wild write": ("*(volatile int *)0x70000000 = 1; return SUCCESS;", SEGV),
    "null": ("*(volatile int *)16 = 1; return SUCCESS;", SEGV),
    "read before the packet": ("return ((volatile const uint8_t *)p.base)[-1];", SEGV),
    "read behind the packet": ("return ((volatile const uint8_t *)p.base)[p.length];", SEGV),
    "write to the packet": ("*(volatile uint8_t *)p.base = 1; return SUCCESS;", SEGV),
    "write to constants": ("*(volatile uint8_t *)spl_constants() = 1; return SUCCESS;", SEGV),
    "write to the code": ("*(volatile uint32_t *)SPL_HPU_IMAGE_BASE = 0; return SUCCESS;", SEGV),
    "write behind the state": ("((volatile uint8_t *)state)[64] = 1; return SUCCESS;", SEGV),
    "stack overflow": (
        "volatile uint8_t big[9000]; for (unsigned i = 0; i < sizeof big; ++i) big[i] = 1; return SUCCESS;",
        SEGV,
    ),
    "endless loop": ('for (;;) __asm__ volatile("");', BUDGET),
    "endless calls": ("for (;;) PtlHandlerYield();", BUDGET),
    "misaligned atomic": (
        '__asm__ volatile("amoadd.w zero, zero, (%0)" ::"r"((char *)state + 1)); return SUCCESS;',
        FAULT,
    ),
    "misaligned state atomic": (
        "PtlHandlerFAdd((uint64_t *)((char *)state + 4), NULL, 1); return SUCCESS;",
        FAULT,
    ),
    "illegal instruction": ('__asm__ volatile(".word 0"); return SUCCESS;', FAULT),
    "reserved rounding mode": ('__asm__ volatile(".word 0x00005053"); return SUCCESS;', FAULT),
    "ecall": ('__asm__ volatile("ecall"); return SUCCESS;', FAULT),
    "jump into the state": ("((void (*)(void))state)(); return SUCCESS;", FAULT),
    "odd word of the window": ("*((volatile uint8_t *)spl_window() + 1) = 1; return SUCCESS;", FAULT),
    "unknown call": ("spl_issue(99); return SUCCESS;", FAULT),
    "unknown option": ("spl_issue(SPL_CALL_DMA_TO_HOST_NB | 1u << 30); return SUCCESS;", FAULT),
    "bad code": ("return 77;", "a code that does not exist"),
    "code of another handler": ("return PROCEED;", "a code that does not exist"),
    "failure": ("return FAIL;", "returned FAIL"),
    "DMA beyond the entry": ("return PtlHandlerDMAToHostB(p.base, 1ull << 40, 8, PTL_DMA_NO_EVENT);", SEGV),
    "DMA that wraps": ("return PtlHandlerDMAToHostB(p.base, ~7ull, 64, PTL_DMA_NO_EVENT);", SEGV),
    "debug text that is not there": (f"spl_debug({NULL_TEXT}, 1); return SUCCESS;", SEGV),
}


def test_troubles_that_are_not_shown_are_counted(spinloom, folder):
    source(folder, payload("return *(volatile int *)0x70000000;"))
    ran = spinloom("handler", "run", "sample.c", "--size", "64", "--count", "32")
    shown = [line for line in ran.out.splitlines() if line.startswith("trouble ")]
    assert len(shown) == 20
    assert "... and 12 more troubles (--json has them)" in ran.out
    assert "memory.state" not in ran.out


@pytest.mark.parametrize(("state_bytes", "is_told"), [(0, True), (8, False)])
def test_a_state_that_is_not_there_is_told(spinloom, folder, state_bytes, is_told):
    source(folder, payload("*(volatile int *)state += 1; return SUCCESS;"))
    (folder / "sample.toml").write_text(f"[memory]\nstate = {state_bytes}\n", encoding="utf-8")
    ran = spinloom("handler", "run", "sample.c", "--size", "64")
    assert ("The context has no state. The size of its state is memory.state." in ran.out) == is_told
    assert ("the state: " in ran.out) != is_told


@pytest.mark.parametrize("trouble", MISBEHAVIOUR)
def test_a_misbehaving_message_fails_and_the_next_one_is_well(folder, trouble):
    """The second packet of the first message misbehaves; what else comes is handled as ever."""
    # Rules: SPIN-1.19, SPIN-1.20, SPIN-5.5, SPIN-7.7.
    body, said = MISBEHAVIOUR[trouble]
    counted = "volatile uint32_t *const seen = state;"
    image = source(
        folder,
        f"__attribute__((noinline)) static int misbehave(const ptl_payload_t p, void *state) {{"
        f" (void)p; (void)state; {body} }}\n"
        + payload(
            f"{counted} if (p.offset == 2048 && __atomic_exchange_n(seen, 1, __ATOMIC_RELAXED) == 0)"
            " return misbehave(p, state);"
            " return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_DMA_NO_EVENT);"
        ),
    )
    setup = HandlerSetup(count=3, hpus=2, state_bytes=64, constants=(7,), budget_cycles=100_000)
    message = handler_runs.random_message(3 * 2048, 1)
    ran = handler_runs.run(image, setup, message)
    puts = [event for event in ran.result["events"] if event["kind"] == "put"]
    assert len(puts) == 3
    bad = [event for event in puts if not event["ok"]]
    assert [said in event["fail"] for event in bad] == [True]
    assert ran.result["counter"] == (2, 1)
    assert ran.result["entry"] == message  # the later messages landed whole
    if said in (SEGV, FAULT, BUDGET) and not trouble.startswith(("DMA", "debug")):
        assert len(ran.result["troubles"]) == 1  # the reason comes with it
        assert ran.result["troubles"][0][3]


def test_a_handler_that_makes_work_for_itself_for_ever_is_stopped(folder):
    storm = (
        "const ptl_process_t here = {.rank = 1};"
        " return PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, here, 1, 0, NULL, 0);"
    )
    with pytest.raises(handler_build.Trouble, match="put to its own entry") as raised:
        handler_runs.run(source(folder, payload(storm)), HandlerSetup(), bytes(100))
    assert raised.value.code == "stalled"


# ---- mutated images never hurt the simulator ----

IMAGES = 240


def mutated(elf: bytes, chance: random.Random, begin: int, end: int) -> bytes:
    """A few bits, bytes or halfwords are others; now and then all of them."""
    content = bytearray(elf)
    if chance.randrange(24) == 0:
        content[begin:end] = chance.randbytes(end - begin)
    for _ in range(chance.choice((1, 1, 1, 1, 1, 1, 2, 8))):
        at = chance.randrange(begin, end)
        match chance.randrange(6):
            case 0 | 1 | 2 | 3:
                content[at] ^= 1 << chance.randrange(8)
            case 4:
                content[at] = chance.randrange(256)
            case _:
                other = chance.randrange(begin, end - 1) & ~1
                content[at & ~1 : (at & ~1) + 2] = content[other : other + 2]
    return bytes(content)


def code_range(elf: bytes) -> tuple[int, int]:
    """Where in the file its first loaded segment lies."""
    header = struct.unpack_from("<I", elf, 28)[0]
    offset, _, _, size = struct.unpack_from("<IIII", elf, header + 4)
    return offset, offset + size


def test_mutated_images_end_or_fail_but_never_hurt_the_simulator(folder, spinloom):
    """Messages come to an end, one way or another; good images then run as before."""
    seed = int(os.environ.get("SPINLOOM_TEST_SEED", "1"))
    replay = f"replay: SPINLOOM_TEST_SEED={seed} pytest tests/handlers/test_handler.py -k mutated"
    originals = {}
    for template in ("count-words", "filter", "reply"):
        name = template.replace("-", "_")
        spinloom("handler", "new", name, "--template", template)
        originals[name] = (
            handler_build.image_of(folder / f"{name}.c"),
            handler_setup.load(folder / f"{name}.toml"),
        )
    chance = random.Random(f"mutated handlers {seed}")
    message = handler_runs.random_message(3000, seed)
    instructions = []
    outcomes: dict[str, int] = {"well": 0, "failed": 0, "refused": 0, "stalled": 0}
    for number in range(IMAGES):
        image, setup = originals[chance.choice(sorted(originals))]
        setup = setup.with_overrides(count=3, hpus=2, packet_bytes=1024, budget_cycles=20_000)
        whole_file = chance.randrange(8) == 0  # headers and symbols, too
        elf = mutated(image.elf, chance, *((0, len(image.elf)) if whole_file else code_range(image.elf)))
        try:
            described = handler_build.describe(image.path, elf)
        except handler_build.Trouble:
            outcomes["refused"] += 1
            continue
        try:
            ran = handler_runs.run(described, setup, message)
        except handler_build.Trouble as trouble:
            outcomes[trouble.code] += 1  # stalled: it put to its own entry for ever
            continue
        told = [event for event in ran.result["events"] if event["rank"] == 1 and event["kind"] == "put"]
        assert len(told) >= 3, f"{replay}, image {number}: messages went missing"
        outcomes["well" if ran.ended_well else "failed"] += 1
        instructions.append(sum(kind["instructions"] for kind in ran.result["handlers"].values()))
    assert min(outcomes[kind] for kind in ("well", "failed", "refused")) > 0, outcomes
    assert statistics.median(instructions) >= 1000, "mutations leave something to run"
    for image, setup in originals.values():
        ran = handler_runs.run(image, setup.with_overrides(count=1), message)
        assert ran.ended_well, replay
