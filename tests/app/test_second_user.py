"""What another user of this machine has prepared for this one is not used; a sentence says whose it is."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import patience
from conftest import needs_engine
from spinloom.accelerate import mpi_layer
from spinloom.common import files, private
from spinloom.common.errors import EXIT_ENVIRONMENT, Trouble
from spinloom.ethernet import nic_control
from spinloom.handlers import handler_build, toolchain

STRANGER = 12345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


def become_stranger() -> None:
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)


def as_stranger(act: Callable[[], None]) -> None:
    """Done by a process of the other user."""

    def run() -> None:
        become_stranger()
        act()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(patience.seconds(60))
    assert process.exitcode == 0


@contextlib.contextmanager
def stranger_listens(path: Path, answers: Callable[[bytes], bytes]) -> Iterator[None]:
    """A process of the other user at a socket of this name."""
    ready, begun = multiprocessing.get_context("fork").Pipe(duplex=False)

    def run() -> None:
        become_stranger()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(path))
            path.chmod(0o777)
            listening.listen()
            begun.send(True)
            while True:
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    while asked := client.recv(65536):
                        client.send(answers(asked))

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    assert ready.poll(patience.seconds(60))
    yield
    process.kill()
    process.join()


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder like /tmp: everybody's, where nobody can remove what is another's."""
    with tempfile.TemporaryDirectory(prefix="spl", dir="/tmp") as folder:
        os.chmod(folder, 0o1777)
        yield Path(folder)


def status(asked: bytes) -> bytes:
    said = b"\x1b]0;owned\x07 a NIC"
    return nic_control.ANSWER.pack(b"SPL!", 1, asked[6], 0, 0, len(said)) + said


@pytest.mark.parametrize("trick", ["socket", "handed over"])
def test_a_false_nic_is_not_asked(common, spinloom, trick):
    path = common / "spinloom-red.control"
    with stranger_listens(path, status):
        if trick == "handed over":
            os.chown(path, 0, 0)  # the file is this user's; who listens is not
        ran = spinloom("nic", "status", "--socket", str(path))
    assert (ran.code, ran.out) == (EXIT_ENVIRONMENT, "")
    who = "belongs to" if trick == "socket" else "is answered by"
    assert ran.err == f"spinloom: {path} {who} user {STRANGER}, not this one (0): it is not asked\n"


def test_a_link_in_the_place_of_a_socket_is_not_followed(common, spinloom):
    as_stranger(lambda: (common / "other.control").symlink_to("/anywhere"))
    ran = spinloom("nic", "status", "--socket", str(common / "other.control"))
    assert ran.code == EXIT_ENVIRONMENT
    assert "is a link, which may lead anywhere" in ran.err


PLACES = {
    "a folder of his": lambda place: place.mkdir(mode=0o777),
    "a link": lambda place: place.symlink_to("/root"),
    "a file": lambda place: place.touch(),
}


@needs_engine
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("named", [True, False])
def test_sockets_do_not_lie_in_his_folder(common, place, named):
    """The folder that the environment names, and the one in /tmp, here a /tmp of the test's own."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare command")
    folder = common / ("run" if named else f"spinloom-{private.number_outside()}")
    as_stranger(lambda: PLACES[place](folder))
    if place == "a folder of his":
        as_stranger(lambda: (folder / "spinloom-red.control.lock").touch())
        as_stranger(lambda: (folder / "spinloom-red.host").symlink_to("/etc/passwd"))
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    if named:
        environment["XDG_RUNTIME_DIR"] = str(folder)
    bound = "" if named else f"mount --bind {common} /tmp && "
    script = (
        "from spinloom import cli\nfrom spinloom.common import core\n"
        "try: core.load().Card('pcap:,', None, 4, 1.0).serve('red')\n"
        "except Exception as trouble: print(trouble)\n"
        "cli.main(['nic', 'status', '--name', 'red'])"
    )
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{bound}exec "$@"', "sh", sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience.seconds(120),
    )
    if "unshare failed" in ran.stderr or "mount" in ran.stderr:
        pytest.skip(ran.stderr.strip())
    why = {"a link": "is a link", "a file": "is no folder"}.get(place, f"belongs to user {STRANGER}")
    for said in (ran.stdout, ran.stderr):
        assert why in said
        assert "XDG_RUNTIME_DIR" in said
        assert "Traceback" not in said
    assert ran.returncode == EXIT_ENVIRONMENT


@pytest.mark.skipif(
    toolchain.compiler_version() != toolchain.COMPILER_VERSION, reason="the handler compiler is not installed"
)
@needs_engine
def test_a_compilers_cache_of_his_is_not_used(common, tmp_path, monkeypatch, capsys):
    source = Path(__file__).resolve().parents[2] / "handlers/icmp_echo.c"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    expected = handler_build.build(source)
    capsys.readouterr()
    old = [common / f"spinloom-zig-{user}" for user in (os.getuid(), private.number_outside())]
    for folder in {common / "spinloom", *old}:
        as_stranger(lambda folder=folder: (folder / "zig").mkdir(parents=True, mode=0o777))
    monkeypatch.setattr(tempfile, "tempdir", str(common))
    monkeypatch.setenv("XDG_CACHE_HOME", str(common))
    monkeypatch.setattr(private, "own_folders", {})
    assert handler_build.build(source) == expected
    assert f"{common / 'spinloom'} belongs to user {STRANGER}, not to this one (0)" in capsys.readouterr().err
    assert [name for folder in {common / "spinloom", *old} for name in os.listdir(folder / "zig")] == []


def test_what_he_calls_a_board_is_left_to_him():
    """In shared memory, where ranks meet: a name of that kind does not stop spinloom run."""
    job = f"test-{os.getpid()}"
    name = f"spinloom-mpi-{os.getuid()}-{mpi_layer.board_hash(job)}"
    places = (f"{name}-theirs", f"{name}-folder", f"{name}-own")
    theirs, folder, own = (mpi_layer.SHARED_MEMORY / place for place in places)
    as_stranger(theirs.touch)
    as_stranger(folder.mkdir)
    own.touch()
    try:
        mpi_layer.forget_boards(job)
        assert (theirs.exists(), folder.exists(), own.exists()) == (True, True, False)
    finally:
        theirs.unlink()
        folder.rmdir()
        own.unlink(missing_ok=True)


def test_files_are_not_written_through_his_links(common, tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("kept")
    out = common / "report.json"
    as_stranger(lambda: Path(f"{out}.part").symlink_to(mine))
    files.write(out, "new")
    assert (out.read_text(), mine.read_text()) == ("new", "kept")
    assert out.stat().st_uid == os.getuid()


def test_an_ordinary_user_gets_a_sentence_too(common):
    """The other way round: root's folder in his way."""
    (common / "spinloom").mkdir(mode=0o700)

    def act() -> None:
        os.environ |= {"XDG_CACHE_HOME": str(common), "XDG_RUNTIME_DIR": str(common / "spinloom")}
        tempfile.tempdir = str(common)
        private.own_folders.clear()
        folder, why = private.cache_folder("zig")
        assert (folder.parent, "belongs to user 0" in why or why == "") == (common, True)
        with pytest.raises(Trouble, match="belongs to user 0"):
            private.runtime_folder()

    as_stranger(act)
