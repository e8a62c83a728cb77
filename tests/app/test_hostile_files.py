"""Files of somebody else whose names and words would steer a terminal, or are no text: never printed raw."""

from __future__ import annotations

import os

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_USAGE
from spinloom.handlers import handler_build, toolchain

pytestmark = needs_engine

RAW = b"\xff\x1b[31m"
SHOWN = r"\xff\x1b[31m"
needs_compiler = pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)


def refused(ran) -> str:
    assert (ran.code in (EXIT_USAGE, EXIT_ENVIRONMENT), ran.out) == (True, "")
    assert "\x1b" not in ran.err
    assert "Traceback" not in ran.err
    return ran.err


def test_a_schedule(spinloom, tmp_path):
    path = tmp_path / "bad.goal"
    path.write_bytes(b"num_ranks 1\nrank 0 {\n" + RAW + b": calc 1\n}\n")
    assert "bad.goal" in refused(spinloom("goal", "run", str(path)))


def test_a_schedule_whose_words_are_repeated(spinloom, tmp_path):
    path = tmp_path / "bad.goal"
    path.write_bytes(b"num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires \xe2\x80\xaelabel\n}\n")
    assert "\u202e" not in refused(spinloom("goal", "run", str(path)))


def test_a_file_whose_name_is_no_text(spinloom, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + RAW + b".goal")
    assert SHOWN in refused(spinloom("goal", "run", path))
    with open(path, "wb") as file:
        file.write(b"num_ranks 1\nrank 0 {\nl1: calc 1\n}\n")
    assert spinloom("goal", "run", path).code == 0


def test_a_datatype(spinloom):
    assert "found byte 27" in refused(spinloom("explain", "vector(1,2,3,\x1b[31m)"))
    assert r"\u202e" in refused(spinloom("simulate", "\u202eMILC"))


def test_keys_of_a_profile(spinloom, tmp_path):
    path = tmp_path / "nic.toml"
    path.write_text('"\\u001b[31m\\u202e" = 1\n')
    assert r"\x1b[31m\u202e" in refused(spinloom("info", "nics", str(path)))


@needs_compiler
def test_a_source_that_is_no_utf_8(spinloom, tmp_path):
    source = tmp_path / "bad.c"
    source.write_bytes(b"#include <spinloom/handler.h>\nint payload_handler(" + RAW + b" x) { return 0; }\n")
    assert "bad.c does not build" in refused(spinloom("handler", "build", str(source)))


@needs_compiler
def test_names_in_an_image(spinloom, tmp_path):
    source = tmp_path / "named.c"
    source.write_text(
        "#include <spinloom/handler.h>\n"
        "__attribute__((noinline, used)) int qqqqqqqq(int n) { return n * 3; }\n"
        "int payload_handler(const ptl_payload_t p, void *state) { return qqqqqqqq((int)(long)state); }\n"
    )
    image = tmp_path / "named.elf"
    image.write_bytes(handler_build.build(source).replace(b"qqqqqqqq", RAW + b"qq"))
    assert r"\xff" + "\x1b[31mqq" in core.load().describe_image(image.read_bytes())["symbols"]
    ran = spinloom("handler", "disasm", str(image))
    assert (ran.code, ran.err) == (0, "")
    assert f"\n{SHOWN}qq:\n" in ran.out


def test_words_in_a_trace(tmp_path):
    name = os.fsdecode(RAW)
    core.load().TraceWriter(str(tmp_path), 0, 1, 0, name, name).end()
    trace = core.load().read_trace(str(tmp_path), 0)
    assert trace.host == r"\xff" + "\x1b[31m"  # it is written out where it is printed
