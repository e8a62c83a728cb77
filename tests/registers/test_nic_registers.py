"""`spinloom nic list` and its like against a board with no NIC behind it, over a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from patience import seconds
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_OF_CODE, EXIT_USAGE, Trouble
from spinloom.ethernet import nic_control
from spinloom.nics import fpspin_registers

ROOT = Path(__file__).resolve().parents[2]
CXX = os.environ.get("CXX") or shutil.which("c++") or "g++"


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Path:
    """The board of board_server.cpp, made of the floor's own sources."""
    out = tmp_path_factory.mktemp("board") / "board_server"
    floor = ROOT / "src/nic/registers"
    tests = re.compile(r"_test\.cpp|fuzz_")
    sources = [path for path in sorted(floor.glob("*.cpp")) if not tests.search(path.name)]
    command = [CXX, "-std=c++20", "-O1", f"-I{ROOT / 'src'}", Path(__file__).with_name("board_server.cpp")]
    base = [ROOT / "src/base" / name for name in ("result.cpp", "text.cpp")]
    done = subprocess.run([*command, *sources, *base, "-o", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


class Board:
    def __init__(self, process: subprocess.Popen, path: Path) -> None:
        self.process = process
        self.path = path

    def tell(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "taken\n"


@pytest.fixture
def board(server):
    with tempfile.TemporaryDirectory(prefix="spl") as folder:  # a socket's path is short
        path = Path(folder) / "spinloom-board.control"
        process = subprocess.Popen(
            [server, "board"],
            env={"XDG_RUNTIME_DIR": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert process.stdout.readline() == "ready\n"
        yield Board(process, path)
        process.stdin.close()
        assert process.wait(seconds(60)) == 0
        process.stdout.close()


@pytest.fixture
def ctl(board, spinloom):
    """ctl("read", "me/valid") asks the board."""
    return lambda *arguments: spinloom("nic", *arguments, "--socket", str(board.path))


def good(ran) -> str:
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_a_context_is_installed_as_the_boards_library_does(ctl, board):
    board.tell(f"MAP 0 {0x7F00_0000_0000} 65536")
    steps = {
        "her_meta/handler_mem_addr/0": 0x1C0C_0000,
        "her_meta/handler_mem_size/0": 4096,
        "her_meta/host_mem_addr_1/0": 0x7F00,
        "her_meta/host_mem_size/0": 65536,
        "her_meta/ph_addr/0": 0x1D00_0400,
        "her_meta/ph_size/0": 4096,
        "her/ctx_enabled/0": 1,
        "her/valid": 1,
        "me/mask/0": 0xFFFF,  # IPv4, its bytes swapped
        "me/idx/0": 3,
        "me/start/0": 8,
        "me/end/0": 8,
        "me/valid/0": 1,
    }
    for name, value in steps.items():
        good(ctl("write", name, hex(value)))
    said = good(ctl("status"))
    assert "word 3 & 0xffff in 0x8 .. 0x8" in said
    assert "context 0: active" in said
    assert "host 0x7f0000000000 + 65536" in said
    refused = ctl("write", "me/idx/0", "5")
    assert refused.code == EXIT_USAGE
    assert "me/idx/0 cannot be written while me/valid/0 is 1" in refused.err


def test_the_walk_through_of_the_page(ctl):
    # Rules: FPS-12.
    page = (ROOT / "docs/registers.md").read_text(encoding="utf-8")
    part = page.split("## A context by hand")[1].split("## The map")[0]
    blocks = re.findall(r"(?:^    .*\n)+", part, re.MULTILINE)
    commands = [line.split()[2:] for line in "".join(blocks).splitlines() if "spinloom nic " in line]
    assert len(commands) == 27
    for command in commands:
        assert good(ctl(*command)) == ""
    status, refusal = (textwrap.dedent(block) for block in blocks[-2:])
    assert good(ctl("status")).startswith(status)
    assert ctl("write", "me/idx/0", "5").err == refusal


def test_registers_are_read_by_path_and_address(ctl):
    # Rules: FPS-10.
    rows = json.loads(good(ctl("read", "me/start/15", "2", "--json")))
    assert [(row["register"], row["value"]) for row in rows] == [("me/start/15", 1), ("me/end/0", 0)]
    good(ctl("write", "0x2020", "9"))
    assert json.loads(good(ctl("read", "me/idx/3", "--json")))[0]["hexadecimal"] == "0x00000009"
    assert "me/valid/0" in good(ctl("read", "me/valid"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("read", "me/vaild"), "did you mean 'me/valid'"),
        (("read", "me/idx"), "from me/idx/0 to me/idx/15"),
        (("read", "me/idx/16"), "no register 'me/idx/16'"),
        (("read", "0x2021"), "no register at address 0x2021"),
        (("read", "counts/mails_refused", "2"), "2 registers from counts/mails_refused/0 on"),
        (("write", "me/valid", "yes"), "value 'yes'"),
        (("write", "me/valid", "2"), "too wide for me/valid/0"),
        (("write", "stats/mpq", "1"), "stats/mpq/0 is read only"),
        (("memory", "0x1c100000"), "are not in NIC memory"),
        (("memory", "0x1c000000", "1", "--count", "2"), "one at a time"),
        (("list", "mee"), "did you mean 'me'"),
        (("stdout", "--core", "1"), "CLUSTER.CORE"),
    ],
)
def test_what_is_wrong_is_said(ctl, arguments, said):
    ran = ctl(*arguments)
    assert (ran.code, ran.out) == (EXIT_USAGE, "")
    assert said in ran.err


def test_memory_is_written_and_printed_as_words(ctl):
    # Rules: FPS-21.
    good(ctl("memory", "0x1c000010", "0x1122334455667788"))
    assert good(ctl("memory", "0x1c000008", "--count", "2")) == (
        "0x1c000008: 0000000000000000\n0x1c000010: 1122334455667788\n"
    )
    good(ctl("write", "cl/ctrl/1", "1"))
    assert "held in reset" in ctl("memory", "0x1c000010").err


def test_the_list_is_the_map(ctl):
    rows = json.loads(good(ctl("list", "--json")))
    expected = [
        (f"{one.path}/{i}", f"{one.address + 4 * i:#06x}", one.reset, one.access)
        for one in fpspin_registers.REGISTERS.values()
        for i in range(one.count)
    ]
    assert [(row["register"], row["address"], row["reset"], row["access"]) for row in rows] == expected
    me = json.loads(good(ctl("list", "me", "--json")))
    assert len(me) == 69
    assert {row["closed by"] for row in me} == {"", "me/valid/0"}
    assert "the greatest masked word" in good(ctl("list", "me"))


def test_stdout_comes_by_core(ctl, board, tmp_path):
    # Rules: FPS-17, FPS-64.
    for line in ("0 1 one", "1 7 other", "0 1 two"):
        board.tell(line)
    logs = tmp_path / "logs"
    assert good(ctl("stdout", "--split", str(logs))) == "0.1: one\n1.7: other\n0.1: two\n"
    assert good(ctl("stdout")) == "", "it was taken out"
    board.tell("0 1 three")
    assert good(ctl("stdout", "--core", "0.1", "--split", str(logs))) == "three\n"
    assert {path.name: path.read_text() for path in logs.iterdir()} == {
        "pspin-stdout-0.1.log": "one\ntwo\nthree\n",
        "pspin-stdout-1.7.log": "other\n",
    }


def test_stdout_follows_until_interrupted(board):
    command = [sys.executable, "-c", "from spinloom import cli; cli.main()"]
    process = subprocess.Popen(
        [*command, "nic", "stdout", "--socket", board.path, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in ("first", "second"):
        board.tell(f"1 2 {line}")
        assert process.stdout.readline() == f"1.2: {line}\n"
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=seconds(60))
    assert (out, said.strip()) == ("", "spinloom: interrupted")
    assert process.returncode == 130


def test_the_socket_is_found_by_the_nics_name(board, spinloom, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(board.path.parent))
    assert "matching: off" in good(spinloom("nic", "status", "--name", "board"))
    ran = spinloom("nic", "status")
    assert ran.code == EXIT_ENVIRONMENT
    assert f"no NIC answers at {board.path.parent}/spinloom-spinloom0.control" in ran.err


def test_a_nic_that_goes_away_is_an_error(board):
    with nic_control.Nic(board.path) as nic:
        assert nic.read(0x2000) == [0]
        board.process.kill()
        board.process.wait()
        with pytest.raises(Trouble, match="has gone"):
            nic.read(0x2000)
    board.process.returncode = 0  # the code that it should have


def test_who_does_not_speak_the_protocol_is_not_believed(tmp_path):
    with (
        tempfile.TemporaryDirectory(prefix="spl") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening,
    ):
        path = Path(folder) / "other.sock"
        listening.bind(str(path))
        listening.listen()

        def answer_nonsense() -> None:
            client, _ = listening.accept()
            with client:
                for answer in (b"hello", nic_control.ANSWER.pack(b"SPL!", 1, 1, 0, 0, 3)):
                    client.recv(1000)
                    client.send(answer)

        thread = threading.Thread(target=answer_nonsense)
        thread.start()
        with nic_control.Nic(path) as nic:
            for said in ("does not speak the protocol", "that was not asked"):
                with pytest.raises(Trouble, match=said):
                    nic.read(0x2000)
        thread.join()


def entry(name: bytes, access: int = 0) -> bytes:
    return nic_control.ENTRY.pack(0x2000, 1, 0, nic_control.NO_GUARD, access, 1, name)


def answered(kind: int, body: bytes, entries: int = 0, count: int = 0, code: int = 0) -> bytes:
    return nic_control.ANSWER.pack(b"SPL!", 1, kind, code, entries, count) + body


@pytest.fixture
def garbled():
    """garbled(answers) is the path of a NIC of this user that answers so."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spl"))
        listening = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        path = Path(folder) / "garbled.control"

        def serve(answers: dict[int, bytes]) -> Path:
            def answer() -> None:
                client, _ = listening.accept()
                with client:
                    while asked := client.recv(65536):
                        client.send(answers[asked[6]])

            listening.bind(str(path))
            listening.listen()
            threading.Thread(target=answer, daemon=True).start()
            return path

        yield serve


LIST, READ, STATUS = nic_control.LIST_REGISTERS, nic_control.READ_REGISTERS, nic_control.STATUS
FULL = entry(b"me/idx/0") * nic_control.ENTRIES_MAX


@pytest.mark.parametrize(
    ("answers", "arguments", "said"),
    [
        ({LIST: answered(LIST, entry(b"me/idx/0", 9), 1)}, ["list"], "lists me/idx/0 with access 9"),
        ({LIST: answered(LIST, entry(b"\xff\x1b/0", 9), 1)}, ["list"], r"lists \xff\x1b/0 with access 9"),
        (
            {LIST: answered(LIST, FULL, nic_control.ENTRIES_MAX)},
            ["list"],
            "that was not asked",
        ),  # a list without end
        ({LIST: answered(LIST, b"")}, ["list"], "that was not asked"),
        ({LIST: answered(LIST, bytes(8), 0, 1)}, ["list"], "that was not asked"),
        (
            {LIST: answered(LIST, entry(b"me/idx/0"), 1), READ: answered(READ, b"")},
            ["read", "me/idx/0"],
            "that was not asked",
        ),
        ({STATUS: answered(STATUS, entry(b"me/idx/0"), 1)}, ["status"], "that was not asked"),
        ({STATUS: answered(STATUS, b"\x1b]0;\xff", code=8)}, ["status"], r"spinloom: \x1b]0;\xff"),
        ({STATUS: answered(STATUS, b"broken", code=99)}, ["status"], "spinloom: broken"),
    ],
)
def test_a_nic_that_answers_nonsense_is_a_sentence(garbled, spinloom, answers, arguments, said):
    ran = spinloom("nic", *arguments, "--socket", str(garbled(answers)))
    assert (ran.out, ran.code in EXIT_OF_CODE.values()) == ("", True)
    assert said in ran.err
    assert "\x1b" not in ran.err


def test_what_a_nic_says_does_not_steer_the_terminal(garbled, spinloom):
    words = b"\x1b]0;owned\x07\xff\n"
    path = str(garbled({STATUS: answered(STATUS, words, 0, len(words))}))
    assert spinloom("nic", "status", "--socket", path).out == "\\x1b]0;owned\\x07\\xff\n"


def test_what_a_nic_lists_does_not_steer_the_terminal(garbled, spinloom):
    path = str(garbled({LIST: answered(LIST, entry(b"\xff\x1b/x"), 1)}))
    listed = spinloom("nic", "list", "--socket", path)
    assert listed.code == 0
    assert r"\xff\x1b/x" in listed.out
    assert "\x1b" not in listed.out


def test_codes_and_kinds_are_those_of_the_nic():
    result = (ROOT / "src/base/result.hpp").read_text(encoding="utf-8")
    enumeration = result.split("enum class Code")[1].split("};")[0]
    assert tuple(re.findall(r"^  (\w+),", enumeration, re.MULTILINE)) == nic_control.CODES[1:]
    assert set(nic_control.CODES[1:]) == set(EXIT_OF_CODE)
    form = (ROOT / "src/nic/registers/control_format.hpp").read_text(encoding="utf-8")
    kinds = {name: int(value) for name, value in re.findall(r"^  (\w+) = (\d),", form, re.MULTILINE)}
    assert kinds == {name.lower(): getattr(nic_control, name.upper()) for name in kinds}
    assert len(kinds) == 7
    (most,) = re.findall(r"words_max = (\d+);", form)
    assert int(most) == nic_control.WORDS_MAX
