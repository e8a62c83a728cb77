"""Handlers in PsPIN's style: how the build recognises them, and what it says when it cannot build them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinloom.common.errors import Trouble
from spinloom.handlers import handler_build, toolchain
from spinloom.verbs.handler import handler

pytestmark = pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler 'cc'")

TURN = """
#include <handler.h>
#include <packets.h>
#include <spin_dma.h>

/* void not_ph(handler_args_t *args) is only talked about */
__handler__ void turn_ph(handler_args_t *args) {
  pkt_hdr_t *headers = args->task->pkt_mem;
  uint32_t address = headers->ip_hdr.source_id;
  spin_cmd_t sent;
  headers->ip_hdr.source_id = headers->ip_hdr.dest_id;
  headers->ip_hdr.dest_id = address;
  spin_send_packet(headers, args->task->pkt_mem_size, &sent);
}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
  volatile handler_fn all[] = {NULL, turn_ph, NULL};
  *hh = all[0], *ph = all[1], *th = all[2];
}
"""


def source(folder: Path, text: str = TURN, name: str = "turn.c") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def built(folder: Path, text: str = TURN, **options) -> handler_build.Image:
    return handler_build.image_of(source(folder, text), **options)


def test_names_become_handlers(tmp_path):
    # Rules: FPS-55.
    assert built(tmp_path).handlers == ("payload_handler",)
    three = TURN + "".join(f"void turn_{role}(handler_args_t *args) {{}}\n" for role in ("hh", "th"))
    assert set(built(tmp_path, three).handlers) == set(toolchain.HANDLERS)


@pytest.mark.parametrize(
    "include", ['"pspin.h"\n#include <handler.h>', '"handler.h"', '"spinloom/pspin_compat.h"']
)
def test_it_is_recognised_by_its_includes(tmp_path, include):
    assert built(tmp_path, TURN.replace("<handler.h>", include)).elf == built(tmp_path).elf


def test_a_comment_with_an_include_is_no_include(tmp_path):
    text = "/*\n#include <handler.h>\n*/\n" + TURN.replace("#include <handler.h>", "")
    with pytest.raises(Trouble, match="defines none of header_handler, payload_handler, completion_handler"):
        built(tmp_path, text)


def test_a_source_names_its_handlers_itself(tmp_path):
    text = "#define SPL_PAYLOAD_HANDLER turn\n" + TURN.replace("turn_ph", "turn")
    assert built(tmp_path, text).handlers == ("payload_handler",)


def test_without_handlers_it_says_what_it_looked_for(tmp_path):
    # Rules: FPS-55.
    with pytest.raises(Trouble, match="nor NAME_hh, NAME_ph or NAME_th with a handler_args_t"):
        built(tmp_path, TURN.replace("turn_ph", "turn"))


def test_of_two_handlers_one_is_chosen(tmp_path):
    two = TURN + "void other_ph(handler_args_t *args) { (void)args; }\n"
    with pytest.raises(Trouble) as told:
        built(tmp_path, two)
    assert "more than one payload handler: turn_ph, other_ph" in str(told.value)
    assert "-D SPL_PAYLOAD_HANDLER=turn_ph" in str(told.value)
    chosen = built(tmp_path, two, defines=["SPL_PAYLOAD_HANDLER=other_ph"])
    assert chosen.code_bytes < built(tmp_path).code_bytes


def test_the_packets_of_the_test_bench_are_others(tmp_path):
    frame, bench = built(tmp_path), built(tmp_path, defines=[toolchain.PSPIN_PACKETS])
    assert frame.elf != bench.elf
    assert built(tmp_path, "#define SPL_PSPIN_PACKETS\n" + TURN).elf == bench.elf


@needs_cc
@pytest.mark.parametrize("kind", [[], ["--native"]])
def test_the_command_takes_macros(tmp_path, kind):
    text = TURN.replace(
        "#include <packets.h>", "#include <packets.h>\n#if LEVEL != 3\n#error no level\n#endif\n"
    )
    path, output = source(tmp_path, text), tmp_path / "out"
    without = CliRunner().invoke(handler, ["build", *kind, str(path), "-o", str(output)])
    assert "no level" in str(without.exception)
    given = ["build", *kind, "--pspin", "-D", "LEVEL=3", str(path), "-o", str(output)]
    ran = CliRunner().invoke(handler, given, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert "payload_handler" in ran.output


def test_addresses_may_be_numbers(tmp_path):
    """PsPIN's examples give pointers where numbers are wanted, and unsigned words where signed ones are."""
    text = TURN.replace(
        "spin_send_packet(",
        "uint32_t *words = args->task->scratchpad[0];\n  amo_add(&words[1], 1);\n"
        "  spin_dma_to_host(0, args->task->pkt_mem, 8, 0, &sent);\n  spin_send_packet(",
    )
    assert built(tmp_path, text).handlers == ("payload_handler",)


def test_variables_that_handlers_use_do_not_link(tmp_path):
    unused = TURN.replace("/* void", "uint32_t total;\n/* void")
    assert built(tmp_path, unused).elf == built(tmp_path).elf
    with pytest.raises(Trouble, match="a handler image has no writable data"):
        built(tmp_path, unused.replace("spin_cmd_t sent;", "spin_cmd_t sent;\n  total += address;"))


def test_data_of_handler_memory_is_left_out(tmp_path):
    memory = 'volatile __attribute__((section(".l2_handler_data"))) uint8_t handler_mem[] = {1, 2};\n'
    text = TURN.replace("/* void", memory + "/* void").replace(
        "*hh = all[0]", "*handler_mem_ptr = (void *)handler_mem;\n  *hh = all[0]"
    )
    assert built(tmp_path, text).elf == built(tmp_path).elf


def test_floating_point_may_be_named_in_a_header_beside_it(tmp_path):
    (tmp_path / "kind.h").write_text("#define NUMBER float\n")
    text = TURN.replace("#include <packets.h>", '#include <packets.h>\n#include "kind.h"').replace(
        "spin_cmd_t sent;", "spin_cmd_t sent;\n  *(NUMBER *)args->task->scratchpad[0] *= address;"
    )
    assert built(tmp_path, text).handlers == ("payload_handler",)


@needs_cc
def test_it_builds_natively(tmp_path):
    assert handler_build.build_native(source(tmp_path), tmp_path / "turn.so") == ["payload_handler"]
