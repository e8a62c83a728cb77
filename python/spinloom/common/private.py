"""Folders that nobody but this user may change, and whether a file or a process is this user's.

Contract: trouble_with(folder) is why a folder is not private, or empty: it must be a folder, not a link,
belong to this user, and neither its group nor others may write to it. runtime_folder() is where this user's
sockets lie, as src/base/private_folder.hpp finds it: Trouble where somebody else may change it.
cache_folder() is a private folder for what can be made again: under the cache home where that can be written
to and is private, else one with a random name that ends with this process. All look again at each call: a
name proves nothing, and who has a number in a user namespace is not who has it outside.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from pathlib import Path

from spinloom.common.errors import Trouble

ALL_NUMBERS = 2**32 - 1  # the numbers that the first user namespace maps
STRANGERS = 65534  # the number of users whom a namespace does not know, unless the system says otherwise
own_folders: dict[str, Path] = {}  # folders of this process, by what they are for
NO_HOME = os.devnull  # the home of users without one: nobody can make a folder there


def number_outside() -> int | None:
    """This user's number outside of the user namespace. None where the number inside is also that of
    strangers."""
    own = os.geteuid()
    try:
        rows = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return own  # a kernel without namespaces
    for inside, outside, count in (map(int, row.split()) for row in rows):
        if inside <= own < inside + count:
            return None if count < ALL_NUMBERS and own == number_of_strangers() else outside + own - inside
    return None


def number_of_strangers() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return STRANGERS


def is_this_user(number: int) -> bool:
    """True if a number, a file's owner or a peer's as this process sees it, is this user's."""
    return number == os.geteuid() and number_outside() is not None


def trouble_with(folder: Path) -> str:
    try:
        status = folder.lstat()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return f"{folder} is a link, which may lead anywhere"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is no folder"
    if status.st_uid == os.geteuid() and not is_this_user(status.st_uid):
        return f"{folder} may be anybody's: this user has no number of his own in this user namespace"
    if not is_this_user(status.st_uid):
        return f"{folder} belongs to user {status.st_uid}, not to this one ({os.geteuid()})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{folder} may be changed by other users (chmod go-w {folder})"
    return ""


def runtime_folder() -> Path:
    """Need not be there: then no NIC of this user runs."""
    if named := os.environ.get("XDG_RUNTIME_DIR"):
        folder = Path(named)
        if os.path.lexists(folder) and (why := trouble_with(folder)):
            raise Trouble("environment", f"XDG_RUNTIME_DIR: {why}; name a folder of your own, or none")
        return folder
    user = number_outside()
    if user is None:
        raise Trouble(
            "environment", "this user has no number of his own in this user namespace (unshare -r gives one)"
        )
    folder = Path(f"/tmp/spinloom-{user}")
    if os.path.lexists(folder) and (why := trouble_with(folder)):
        raise Trouble(
            "environment", f"{why}: set XDG_RUNTIME_DIR to a folder of your own, or have this one removed"
        )
    return folder


def cache_home() -> Path:
    """$XDG_CACHE_HOME/spinloom, or ~/.cache/spinloom. Nothing is promised of it: it need not be there."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "spinloom"
    home = os.path.expanduser("~") if os.environ.get("HOME", "/") else NO_HOME
    return Path(home if os.path.isabs(home) else NO_HOME) / ".cache" / "spinloom"


def cache_folder(name: str) -> tuple[Path, str]:
    """A private folder of this name, and why it is not the one in the cache home: empty where it is, and
    where that can just not be written to."""
    home = cache_home()
    folder = home / name
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return own_folder(name), ""
    why = trouble_with(home) or trouble_with(folder)
    if why or not os.access(folder, os.W_OK | os.X_OK):
        return own_folder(name), why
    return folder, ""


def own_folder(name: str) -> Path:
    """One that this process has made under a random name, and removes at its end."""
    folder = own_folders.get(name)
    if folder is None or trouble_with(folder):
        folder = own_folders[name] = Path(tempfile.mkdtemp(prefix=f"spinloom-{name}-"))
        atexit.register(remove, folder, os.getpid())
    return folder


def remove(folder: Path, process: int) -> None:
    """A forked child leaves it to the process that made it."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
