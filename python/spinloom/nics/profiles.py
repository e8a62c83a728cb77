"""NIC profiles: every number that decides modelled time, with its label and source.

Contract: load() reads a profile by name (data/nics/NAME.toml) or by path. A file holds one table per
section and one entry {value, label, source} per key; FIELDS (profile_fields.py) lists every key. `from =
"NAME"` begins with another profile's numbers, `host_profile = "NAME"` takes those of data/hosts/NAME.toml;
what the file says wins. All unknown keys are one error, which names the nearest known ones, and so are all
missing ones, and all wrong values. changed() is a loaded profile with some other numbers, on_host() with
another host's; template() is the text of a new profile. Values are exact: integers (ps, Hz, bytes, cycles,
counts), fractions (ps per byte, plain ratios) or names.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from spinloom.common import data, documents
from spinloom.common.errors import Trouble, nearest
from spinloom.nics.profile_fields import FIELDS, HOST_FIELDS, ONLY_WITH_CORE, OPTIONAL, SECTIONS, Value

LABELS = ("given", "derived", "proposed", "measured")
UNMEASURED = "not measured yet"  # the source of a number that only holds its place


def fields_of(core: str, present: Iterable[str] = ()) -> list[str]:
    """The fields of a profile with that core, in the order of FIELDS; the optional section if any of it is
    given."""
    optional = any(field.startswith(OPTIONAL) for field in present)
    return [
        field
        for field in FIELDS
        if ONLY_WITH_CORE.get(field, core) == core and (optional or not field.startswith(OPTIONAL))
    ]


@dataclass(frozen=True)
class Entry:
    """One number of a profile: as written, as read, and where it comes from."""

    field: str
    text: str
    value: Value
    label: str
    source: str

    @property
    def native(self) -> int | str | list[int]:
        """The value as the engine takes it: an integer, a name, or [numerator, denominator]."""
        if isinstance(self.value, Fraction):
            return [self.value.numerator, self.value.denominator]
        return self.value


@dataclass(frozen=True)
class Profile:
    name: str
    about: str
    entries: dict[str, Entry]
    changes: tuple[tuple[str, str], ...] = ()  # fields that are not as in the file, with their text
    host: str = ""  # the host profile that its host numbers are from; empty: the file's own

    def __str__(self) -> str:
        """Name, host and changes: 'sc19-slingshot, host i7-4770, with hpu.clock = 1GHz'."""
        named = f"{self.name}, host {self.host}" if self.host else self.name
        changes = ", ".join(f"{field} = {text}" for field, text in self.changes)
        return f"{named}, with {changes}" if changes else named

    def native(self) -> dict[str, int | str | list[int]]:
        """{field: value} for the engine, in the order of FIELDS."""
        return {field: entry.native for field, entry in self.entries.items()}

    def unmeasured(self) -> list[str]:
        """Fields whose number only holds its place: results that depend on them are not final."""
        return [field for field, entry in self.entries.items() if entry.source == UNMEASURED]

    def __getitem__(self, field: str) -> Value:
        return self.entries[field].value


def names() -> list[str]:
    """The shipped profiles."""
    return sorted(path.stem for path in data.folder("nics").glob("*.toml"))


def hosts() -> list[str]:
    """The shipped host profiles."""
    return sorted(path.stem for path in data.folder("hosts").glob("*.toml"))


def load(name_or_path: str | Path, host: str | Path | None = None) -> Profile:
    """The NIC profile of that name, or in that file; on another host where one is named. Raises
    Trouble('invalid')."""
    table, path = read_toml(str(name_or_path), "nics", "NIC", names())
    profile = read(table, path)
    return profile if host is None else on_host(profile, host)


def read_toml(text: str, folder: str, kind: str, candidates: list[str]) -> tuple[dict, Path]:
    """A profile's file by name or path."""
    path = Path(text) if text.endswith(".toml") or "/" in text else data.folder(folder) / f"{text}.toml"
    try:
        return documents.toml(path, f"{kind} profile "), path
    except documents.MissingFile:
        if path.suffix == ".toml" and path == Path(text):
            raise Trouble("invalid", f"there is no file '{text}'") from None
        beside = Path(f"{text}.toml")
        hint = f"; did you mean '{beside}'?" if beside.is_file() else nearest(text, candidates)
        raise Trouble("invalid", f"there is no {kind} profile '{text}'{hint}") from None


def load_host(name_or_path: str | Path) -> tuple[str, str, dict[str, Entry]]:
    """Name, about and numbers of a host profile. Raises Trouble('invalid')."""
    table, path = read_toml(str(name_or_path), "hosts", "host", hosts())
    name, about = name_and_about(table, path)
    written = entries_in(table, path)
    others = [field for field in written if not field.startswith("host.")]
    if others:
        raise Trouble("invalid", f"{path}: a host profile has a section [host] only, not {', '.join(others)}")
    refuse_missing(path, [field for field in HOST_FIELDS if field not in written])
    return name, about, read_entries(path, written)


def on_host(profile: Profile, name_or_path: str | Path) -> Profile:
    """The NIC in another host; what of the host's section belongs to the NIC stays (OF_THE_NIC)."""
    name, _, entries = load_host(name_or_path)
    changes = tuple((field, text) for field, text in profile.changes if field not in entries)
    return replace(profile, entries={**profile.entries, **entries}, host=name, changes=changes)


def changed(profile: Profile, changes: Iterable[tuple[str, str]]) -> Profile:
    """The profile with some of its numbers replaced by what these texts say; the last one wins. Raises
    Trouble('invalid') for a field that it does not have, and for a text that is no value of it."""
    by_field = dict(changes)
    entries = dict(profile.entries)
    wrong = []
    for field, text in by_field.items():
        if field not in entries:
            wrong.append(f"profile {profile.name} has no {field}{nearest(field, entries)}")
            continue
        try:
            value = parsed(field, text)
        except ValueError as error:
            wrong.append(f"profile {profile.name}: {error}")
            continue
        if field == "hpu.core" and value != profile[field]:
            wrong.append(f"hpu.core decides which fields a profile has; {profile.name} is {profile[field]}")
        entries[field] = Entry(field, text, value, "proposed", "changed for a trial")
    if wrong:
        raise Trouble("invalid", "; ".join(wrong))
    return replace(
        profile, entries=entries, changes=tuple(sorted({**dict(profile.changes), **by_field}.items()))
    )


def read(table: dict, path: Path, based_on_it: tuple[Path, ...] = ()) -> Profile:
    """A profile from a parsed TOML table; `path` names the file in errors."""
    name, about = name_and_about(table, path)
    base, host = table.pop("from", None), table.pop("host_profile", None)
    inherited, host_name = inherit(str(base), path, based_on_it) if base is not None else ({}, "")
    if host is not None:
        host_name, _, of_host = load_host(file_beside(str(host), path))
        inherited = {**inherited, **of_host}
    written = entries_in(table, path)
    present = [*written, *inherited]
    if "hpu.core" not in present:
        needed = [field for field in fields_of("", present) if field not in ONLY_WITH_CORE]
        refuse_missing(path, [field for field in needed if field not in present])
    core = core_in(path, written, inherited)
    needed = fields_of(core, present)
    if others := [field for field in written if field not in needed]:
        belong = "belongs" if len(others) == 1 else "belong"
        other = ONLY_WITH_CORE[others[0]]
        raise Trouble(
            "invalid", f"{path}: {', '.join(others)} {belong} to hpu.core = {other}; this one is {core}"
        )
    refuse_missing(path, [field for field in needed if field not in present], is_whole=base is None)
    read_here = read_entries(path, written)
    entries = {field: read_here.get(field) or inherited[field] for field in needed}
    return Profile(name, about, entries, host=host_name)


def refuse_missing(path: Path, missing: list[str], is_whole: bool = False) -> None:
    """Raises Trouble('invalid') that names all fields that are missing. is_whole: the file has no `from`."""
    if not missing:
        return
    hint = '; from = "NAME" at the file\'s top takes those of another profile' if is_whole else ""
    which = "key" if len(missing) == 1 else f"{len(missing)} keys"
    are = "is" if len(missing) == 1 else "are"
    raise Trouble("invalid", f"{path}: {which} {', '.join(missing)} {are} missing{hint}")


def name_and_about(table: dict, path: Path) -> tuple[str, str]:
    """Name, which is the file's otherwise, and about. Raises Trouble('invalid')."""
    name, about = table.pop("name", path.stem), table.pop("about", "")
    for key, value in (("name", name), ("about", about)):
        if not isinstance(value, str) or (key == "name" and not value.strip()):
            raise Trouble("invalid", f'{path}: {key} = {value!r}: it must be a text, such as "my-cluster"')
    return name, about


def inherit(base: str, path: Path, others: tuple[Path, ...]) -> tuple[dict[str, Entry], str]:
    """The numbers of another profile, and the name of its host. `others`: those based on this one."""
    table, file = read_toml(file_beside(base, path), "nics", "NIC", names())
    above = (*others, path.resolve())
    if file.resolve() in above:
        whose = "is the file itself" if len(above) == 1 else "is based on this file"
        raise Trouble("invalid", f"{path}: from = '{base}' {whose}")
    base_profile = read(table, file, above)
    return base_profile.entries, base_profile.host


def file_beside(name: str, path: Path) -> str:
    """Returns the path of a FILE.toml that a profile names: beside it, unless absolute. Other names stay."""
    return str(path.parent / name) if name.endswith(".toml") else name


def entries_in(table: dict, path: Path) -> dict[str, object]:
    """{"section.key": entry} of a parsed file; unknown names are refused."""
    unknown = []
    written = {}
    for section, keys in table.items():
        if not isinstance(keys, dict):
            accepted = (*FIELDS, "name", "about", "from", "host_profile")
            unknown.append(f"'{section}' stands outside of a section{nearest(section, accepted)}")
        elif section not in SECTIONS:
            unknown.append(f"unknown section [{section}]{nearest(section, SECTIONS)}")
        elif not keys:
            unknown.append(f"section [{section}] is empty")
        else:
            written |= {f"{section}.{key}": entry for key, entry in keys.items()}
    for field in written:
        if field not in FIELDS:
            beside = [known for known in FIELDS if known.startswith(field.split(".")[0] + ".")]
            unknown.append(f"unknown key {field}{nearest(field, beside)}")
    if unknown:
        raise Trouble("invalid", f"{path}: {'; '.join(unknown)}")
    return written


def core_in(path: Path, written: dict, inherited: dict[str, Entry]) -> str:
    """Returns which core the file describes: it decides which fields there are."""
    if "hpu.core" not in written and "hpu.core" in inherited:
        return str(inherited["hpu.core"].value)
    return str(read_entries(path, {"hpu.core": written["hpu.core"]})["hpu.core"].value)


def read_entries(path: Path, written: dict[str, object]) -> dict[str, Entry]:
    """Reads every entry. Raises Trouble('invalid') that names all entries that are wrong."""
    entries: dict[str, Entry] = {}
    wrong: list[str] = []
    for field, entry in written.items():
        try:
            entries[field] = read_entry(field, entry)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise Trouble("invalid", f"{path}: {'; '.join(wrong)}")
    return entries


def read_entry(field: str, entry: object) -> Entry:
    """Raises ValueError with a sentence that names the field."""
    if not isinstance(entry, dict) or set(entry) != {"value", "label", "source"}:
        raise ValueError(f"{field} must be {{ value = ..., label = ..., source = ... }}")
    text, label, source = (str(entry[part]) for part in ("value", "label", "source"))
    if label not in LABELS:
        raise ValueError(f"{field} has label '{label}'{nearest(label, LABELS)}")
    if not source.strip():
        raise ValueError(f"{field} has no source; say in one line where '{text}' comes from")
    return Entry(field, text, parsed(field, text), label, source)


def parsed(field: str, text: str) -> Value:
    """The value of a field from its text. Raises ValueError with a sentence that names the field."""
    try:
        return FIELDS[field].parse(text)
    except ValueError as error:
        raise ValueError(f"{field} = '{text}': {error}") from None


TEMPLATE = """# {name} - a NIC profile that begins with the numbers of {base}
#
# To change a number, remove the '#' before its key, and say in `source` where your number comes from.
# `label` is one of {labels}. Above a key stand its meaning, unit and range.

name = {name_text}
about = "{base} with other numbers"
from = {base_text}
# host_profile = "zen5"  # the numbers of a host, by name or FILE.toml
"""


def template(name: str, base: str) -> str:
    """The text of a new profile, with every key as a comment. Raises Trouble('invalid') for the base."""
    profile = load(base)
    is_path = base.endswith(".toml") or "/" in base
    shown = toml_text(profile.name)[1:-1]
    head = TEMPLATE.format(
        name=toml_text(name)[1:-1],
        base=shown,
        labels=", ".join(LABELS),
        name_text=toml_text(name),
        base_text=toml_text(str(Path(base).resolve()) if is_path else base),
    )
    return head + "".join(template_entry(entry, shown) for entry in profile.entries.values())


def template_entry(entry: Entry, base: str) -> str:
    """A key of a template: what it means, and a line to begin with."""
    field = FIELDS[entry.field]
    about = (
        f"{field.meaning}. Unit: {field.unit}. Range: {field.range}. {base}: {entry.text} ({entry.label})."
    )
    comment = "".join(f"# {line}\n" for line in textwrap.wrap(about, 108))
    value = toml_text(entry.text)
    return f'\n{comment}# {entry.field} = {{ value = {value}, label = "proposed", source = "" }}\n'


def toml_text(text: str) -> str:
    """A text in quotes: what JSON escapes, TOML escapes so, too, but for one more character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
