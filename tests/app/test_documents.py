"""TOML and JSON files of users: limits, and a sentence for every file that is none, in every verb."""

from __future__ import annotations

import os
import re

import pytest

from conftest import needs_engine
from spinloom import cli
from spinloom.common import documents, files
from spinloom.common.errors import Trouble

HANDLER = "int payload_handler(void *p, void *state) { return 0; }\n"
DEEP = 2000


@pytest.fixture
def bad(tmp_path):
    """Makes a file that cannot be read, of a kind and an ending; its path, a word of the sentence."""

    def made(kind: str, ending: str) -> tuple[str, str]:
        path = tmp_path / f"bad{ending}"
        if kind == "a name that is too long":
            return str(path.with_name(f"{'x' * 300}{ending}")), "File name too long"
        if kind == "nothing":
            return str(path), ""
        if kind == "a folder":
            path.mkdir()
            return str(path), "Is a directory"
        if kind == "no text":
            path.write_bytes(b'x = "\xff"')
            return str(path), "codec can't decode"
        if kind == "unreadable":
            path.write_text("x = 1\n")
            path.chmod(0)
            if os.access(path, os.R_OK):
                pytest.skip("this user may read every file")
            return str(path), "Permission denied|is not readable"  # the latter: of click
        brackets = "[" * DEEP + "]" * DEEP
        path.write_text(brackets if ending == ".json" else f"x = {brackets}\n")
        return str(path), f"nest deeper than {documents.DEPTH_MAX}"

    return made


KINDS = ("brackets", "a name that is too long", "nothing", "a folder", "no text", "unreadable")
TOML_VERBS = {
    "nics": ["info", "nics", "{}"],
    "--nic": ["simulate", "MILC", "--nic", "{}"],
    "--host": ["simulate", "MILC", "--host", "{}"],
    "--config": ["nic", "run", "--config", "{}"],
    "--rules": ["nic", "run", "--wire", "pcap:none", "--handlers", "icmp_echo", "--rules", "{}"],
    "torture": ["torture", "{}", "--seeds", "1..1"],
    "sweep": ["sweep", "{}", "--out", "{}.out"],
}


def check(ran, word: str) -> None:
    assert ran.code == 2, ran.err
    lines = [line for line in ran.err.splitlines() if line.startswith(("spinloom: ", "Error: "))]
    assert lines, ran.err
    assert re.search(word, lines[-1]), ran.err


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", TOML_VERBS)
def test_a_verb_says_why_it_cannot_read_a_file(spinloom, bad, verb, kind):
    name, word = bad(kind, ".toml")
    check(spinloom(*(part.format(name) for part in TOML_VERBS[verb])), word)


@needs_engine
@pytest.mark.parametrize("kind", ["brackets", "a folder", "no text", "unreadable"])
def test_the_file_beside_a_handler_s_source(spinloom, bad, tmp_path, kind):
    _, word = bad(kind, ".toml")
    (tmp_path / "bad.c").write_text(HANDLER)
    check(spinloom("handler", "run", str(tmp_path / "bad.c")), word)


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_of_a_job(spinloom, bad, kind):
    name, word = bad(kind, ".json")
    check(spinloom("explain", f"{name}:0"), word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = " + "[" * DEEP + "]" * DEEP, "nest deeper"),
        ("x = " + "{a=" * DEEP + "1" + "}" * DEEP, "nest deeper"),
        ("[" + ".".join("a" * DEEP) + "]", "nest deeper"),
        (".".join("a" * DEEP) + " = 1", "nest deeper"),
        (".".join("a" * 10**6) + " = 1", "nest deeper"),
        ("x = {" + " . ".join(['"a"', "b"] * 10**5) + " = 1}", "nest deeper"),
        ("x = 1e999", "finite size"),
        ("x = inf", "finite size"),
        ("x = " + "9" * 5000, "4300 digits"),
        ("x = ", "Invalid value"),
    ],
)
def test_no_toml(tmp_path, text, word):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(Trouble, match=word) as caught:
        documents.toml(tmp_path / "a.toml", "thing ")
    assert caught.value.message.startswith(f"thing {tmp_path}/a.toml cannot be read: ")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 10**5, "nest deeper"),
        ("[" * DEEP + "]" * DEEP, "nest deeper"),
        ('{"a":' * DEEP + "1" + "}" * DEEP, "nest deeper"),
        ("1e999", "finite size"),
        ("NaN", "finite size"),
        ("[-Infinity]", "finite size"),
        ("9" * 5000, "4300 digits"),
        (r'{"a": "\ud800"}', "surrogates not allowed"),
        ("{", "Expecting property name"),
    ],
)
def test_no_json(tmp_path, text, word):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(Trouble, match=word):
        documents.json(tmp_path / "a.json")


def test_what_is_at_the_limit_is_read(tmp_path, monkeypatch):
    depth = documents.DEPTH_MAX
    for text in ("1", '"text"', "[]", "[" * depth + "]" * depth, r'"\ud83d\ude00"'):
        (tmp_path / "a.json").write_text(text)
        documents.json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[" * (depth + 1) + "]" * (depth + 1))
    with pytest.raises(Trouble, match="nest deeper"):
        documents.json(tmp_path / "a.json")
    (tmp_path / "a.toml").write_text("x = " + "[" * (depth - 1) + "]" * (depth - 1))
    assert documents.toml(tmp_path / "a.toml")
    monkeypatch.setattr(documents, "TOML_BYTES_MAX", 100)
    with pytest.raises(Trouble, match="it has more than"):
        documents.toml(tmp_path / "a.toml")


def test_dots_in_texts_and_numbers_are_no_keys(tmp_path):
    text = f'about = "{"a.b" * 1000}"\nmore = [{"1.5, " * 1000}]\n'
    (tmp_path / "a.toml").write_text(text)
    assert len(documents.toml(tmp_path / "a.toml")["more"]) == 1000


def test_a_file_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "TOML_BYTES_MAX", 1 << 20)
    with pytest.raises(Trouble, match="/dev/zero cannot be read: it has more than 1 MiB"):
        documents.toml(documents.Path("/dev/zero"))


def test_a_name_with_a_nul(tmp_path):
    (tmp_path / "a.toml").write_text('from = "no\\u0000ne.toml"\n')
    with pytest.raises(Trouble, match=r"no\\0ne.toml cannot be read: embedded null byte"):
        documents.toml(tmp_path / "no\0ne.toml")


@needs_engine
def test_profiles_that_are_based_on_each_other(spinloom, tmp_path):
    (tmp_path / "a.toml").write_text('from = "b.toml"\n')
    (tmp_path / "b.toml").write_text('from = "c.toml"\n')
    (tmp_path / "c.toml").write_text('from = "a.toml"\n')
    check(spinloom("info", "nics", str(tmp_path / "a.toml")), "from = 'a.toml' is based on this file")
    (tmp_path / "d.toml").write_text('from = "no\\u0000ne.toml"\n')
    check(spinloom("info", "nics", str(tmp_path / "d.toml")), "embedded null byte")


@pytest.mark.parametrize(
    "text", ["context = 3", "context = [3]", "[[context]]\nhandlers = 3", "[[context]]\nrules = 3"]
)
def test_contexts_that_are_none(spinloom, tmp_path, text):
    (tmp_path / "nic.toml").write_text(text)
    check(spinloom("nic", "run", "--wire", "pcap:none", "--config", str(tmp_path / "nic.toml")), "nic.toml: ")


LONG = "x" * 300


@needs_engine
@pytest.mark.parametrize(
    "arguments",
    [
        ("handler", "build", f"{LONG}.c"),
        ("handler", "run", f"{LONG}.c"),
        ("nic", "run", "--wire", f"pcap:{LONG}", "--handlers", "icmp_echo", "--rules", "icmp"),
        ("nic", "run", "--wire", "pcap:none", "--handlers", LONG, "--rules", "icmp"),
        ("trace", LONG),
        ("predict", LONG),
        ("goal", "run", LONG),
        ("paper", "study", "spc", "--trace", LONG),
        ("paper", "validate", "--last", "--golden", LONG),
        ("paper", "validate", "--only", "DDT-2", "--golden", LONG),
        ("simulate", "MILC:8^4", "--strategies", "seek", "--out", LONG),
        ("explain", "int", "--strategies", "none", "--plot", LONG),
        ("nic", "send", LONG, "localhost"),
        ("record", "-o", LONG, "--", "true"),
        ("run", f"--report={LONG}", "--", "true"),
        ("sim", "-n", "2", LONG),
    ],
)
def test_a_name_that_is_too_long_is_a_sentence(spinloom, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    ran = spinloom(*arguments)
    assert ran.code in (2, 3), ran.err
    assert "spinloom: " in ran.err or "Error: " in ran.err, ran.err


# ---- folders that this user may not read ----


def test_names_in_a_folder_that_may_not_be_read(tmp_path):
    assert files.names_if_readable(tmp_path / "none") == []
    assert files.names_if_readable(tmp_path / "no\0ne") == []
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    assert files.names_if_readable(tmp_path) == ["a", "b"]
    assert files.names_if_readable(tmp_path / "a") == []
    tmp_path.chmod(0)
    try:
        if not os.access(tmp_path, os.R_OK):
            assert files.names_if_readable(tmp_path) == []
    finally:
        tmp_path.chmod(0o700)


def test_an_error_of_the_system_is_a_sentence_with_the_file(capsys, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied", "/root/x")

    monkeypatch.setattr(cli.cli, "main", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "spinloom: /root/x: Permission denied\n"
