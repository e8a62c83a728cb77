"""NIC profiles: every number that decides modelled time, with its label and source.

Contract: load() reads a profile by name (data/nics/NAME.toml) or by path. A file holds one table per section
and one entry {value, label, source} per key; FIELDS lists every key and its kind. `base = "NAME"` begins with
another profile's numbers, `host_profile = "NAME"` takes those of data/hosts/NAME.toml; what the file says
wins. Unknown and missing keys are errors that name the nearest known one. changed() is a loaded profile with
some other numbers, on_host() with another host's. Values are exact: integers (ps, Hz, bytes, cycles,
counts), fractions (ps per byte, plain ratios) or names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from spinloom.common import data, documents, units
from spinloom.common.errors import Trouble, nearest

LABELS = ("given", "derived", "proposed", "measured")
UNMEASURED = "not measured yet"  # the source of a number that only holds its place
CORES = ("a15", "pulp")


def parse_core(text: str) -> str:
    if text not in CORES:
        raise ValueError(f"accepted forms: {', '.join(CORES)}")
    return text


def parse_place(text: str) -> str:
    if text not in ("L1", "L2"):
        raise ValueError("accepted forms: L1 (the cluster's memory), L2 (the memory that all clusters share)")
    return text


Value = int | Fraction | str
Parser = Callable[[str], Value]

FIELDS: dict[str, Parser] = {
    "link.byte_time": units.parse_rate,
    "link.gap": units.parse_time,
    "link.payload": units.parse_bytes,
    "link.switch": units.parse_time,
    "link.wire": units.parse_time,
    "match.header": units.parse_time,
    "match.packet": units.parse_time,
    "hpu.count": units.parse_count,
    "hpu.clock": units.parse_frequency,
    "hpu.core": parse_core,
    "hpu.memory_latency": units.parse_cycles,
    "a15.rename_width": units.parse_count,
    "a15.window": units.parse_count,
    "a15.alus": units.parse_count,
    "a15.multiply": units.parse_cycles,
    "a15.divide": units.parse_cycles,
    "a15.float_units": units.parse_count,
    "a15.float_add": units.parse_cycles,
    "a15.float_multiply": units.parse_cycles,
    "a15.float_multiply_add": units.parse_cycles,
    "a15.float_divide": units.parse_cycles,
    "a15.float_root": units.parse_cycles,
    "a15.float_compare": units.parse_cycles,
    "a15.float_convert": units.parse_cycles,
    "a15.float_move": units.parse_cycles,
    "a15.load": units.parse_cycles,
    "a15.front_end": units.parse_cycles,
    "a15.predictor_entries": units.parse_count,
    "a15.device_load": units.parse_cycles,
    "a15.device_store": units.parse_cycles,
    "a15.device_answer": units.parse_cycles,
    "a15.oldest": units.parse_cycles,
    "pulp.clusters": units.parse_count,
    "pulp.multiply_high": units.parse_cycles,
    "pulp.divide": units.parse_cycles,
    "pulp.branch_taken": units.parse_cycles,
    "pulp.jump": units.parse_cycles,
    "pulp.straddle": units.parse_cycles,
    "pulp.load_use": units.parse_cycles,
    "pulp.counter": units.parse_cycles,
    "pulp.device": units.parse_cycles,
    "pulp.l1": units.parse_cycles,
    "pulp.l2_handler": units.parse_cycles,
    "pulp.l2_packet": units.parse_cycles,
    "pulp.atomic_l1": units.parse_cycles,
    "pulp.atomic_l2": units.parse_cycles,
    "pulp.l1_banks": units.parse_count,
    "pulp.l1_bank_bytes": units.parse_bytes,
    "pulp.l2_banks": units.parse_count,
    "pulp.l2_bank_bytes": units.parse_bytes,
    "pulp.constants": parse_place,
    "pulp.state": parse_place,
    "pulp.packets": parse_place,
    "pulp.port_width": units.parse_bytes,
    "pulp.port_latency": units.parse_cycles,
    "pulp.dma_width": units.parse_bytes,
    "pulp.dma_setup": units.parse_cycles,
    "pulp.dma_latency": units.parse_cycles,
    "pulp.send_latency": units.parse_cycles,
    "memory.channel_byte_time": units.parse_rate,
    "memory.channels_per_hpu": units.parse_count,
    "memory.state_bytes": units.parse_bytes,
    "memory.packet_buffer_bytes": units.parse_bytes,
    "memory.outbound_packets": units.parse_count,
    "scheduler.clock": units.parse_frequency,
    "scheduler.dispatch_cycles": units.parse_cycles,
    "scheduler.start_cycles": units.parse_cycles,
    "scheduler.finish_cycles": units.parse_cycles,
    "scheduler.vhpu_switch_cycles": units.parse_cycles,
    "scheduler.messages": units.parse_count,
    "pcie.byte_time": units.parse_rate,
    "pcie.latency": units.parse_time,
    "pcie.write_payload": units.parse_bytes,
    "pcie.write_overhead": units.parse_bytes,
    "pcie.event_bytes": units.parse_bytes,
    "host.clock": units.parse_frequency,
    "host.memory_latency": units.parse_time,
    "host.streamed_in_flight": units.parse_count,
    "host.strided_in_flight": units.parse_count,
    "host.scattered_in_flight": units.parse_count,
    "host.refill_cycles": units.parse_rational,
    "host.memory_byte_time": units.parse_rate,
    "host.line": units.parse_bytes,
    "host.cache": units.parse_bytes,
    "host.cache_ways": units.parse_count,
    "host.mpitypes_vector_cycles": units.parse_rational,
    "host.mpitypes_list_cycles": units.parse_rational,
    "host.best_vector_cycles": units.parse_rational,
    "host.best_list_cycles": units.parse_rational,
    "host.segment_block_cycles": units.parse_rational,
    "host.command_latency": units.parse_time,
    "host.call": units.parse_time,
    "checkpoint.paper_bytes": units.parse_bytes,
    "checkpoint.epsilon": units.parse_rational,
    "iovec.entries": units.parse_count,
    "iovec.refill": units.parse_time,
    "frame.bytes_min": units.parse_bytes,
    "frame.bytes_max": units.parse_bytes,
    "frame.ingress_min": units.parse_cycles,
    "frame.ingress_max": units.parse_cycles,
}

OF_THE_NIC = ("host.command_latency",)  # the way from the host to its NIC: stays when the host changes
HOST_FIELDS = [field for field in FIELDS if field.startswith("host.") and field not in OF_THE_NIC]
SECTIONS = tuple(dict.fromkeys(field.split(".")[0] for field in FIELDS))

# Fields that only profiles with that core have; every other field stands in every profile.
ONLY_WITH_CORE = {
    field: field.split(".")[0] if field.startswith(("a15.", "pulp.")) else "a15"
    for field in FIELDS
    if field.startswith(("a15.", "pulp.", "memory.channel")) or field == "hpu.memory_latency"
}


OPTIONAL = "frame."  # a profile has the whole section or nothing of it


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
        raise Trouble("invalid", f"there is no {kind} profile '{text}'{nearest(text, candidates)}") from None


def load_host(name_or_path: str | Path) -> tuple[str, str, dict[str, Entry]]:
    """Name, about and numbers of a host profile. Raises Trouble('invalid')."""
    table, path = read_toml(str(name_or_path), "hosts", "host", hosts())
    name, about = name_and_about(table, path)
    written = entries_in(table, path)
    for field in written:
        if not field.startswith("host."):
            raise Trouble("invalid", f"{path}: a host profile has a section [host] only, not {field}")
    missing = [field for field in HOST_FIELDS if field not in written]
    if missing:
        raise Trouble("invalid", f"{path}: key {missing[0]} is missing")
    return name, about, {field: read_entry(path, field, entry) for field, entry in written.items()}


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
    for field, text in by_field.items():
        if field not in entries:
            raise Trouble("invalid", f"profile {profile.name} has no {field}{nearest(field, entries)}")
        value = parsed(field, text, f"profile {profile.name}")
        if field == "hpu.core" and value != profile[field]:
            raise Trouble(
                "invalid", f"hpu.core decides which fields a profile has; {profile.name} is {profile[field]}"
            )
        entries[field] = Entry(field, text, value, "proposed", "changed for a trial")
    return replace(
        profile, entries=entries, changes=tuple(sorted({**dict(profile.changes), **by_field}.items()))
    )


def read(table: dict, path: Path, based_on_it: tuple[Path, ...] = ()) -> Profile:
    """A profile from a parsed TOML table; `path` names the file in errors."""
    name, about = name_and_about(table, path)
    base, host = table.pop("base", None), table.pop("host_profile", None)
    inherited, host_name = based_on(str(base), path, based_on_it) if base is not None else ({}, "")
    if host is not None:
        host_name, _, of_host = load_host(file_beside(str(host), path))
        inherited = {**inherited, **of_host}
    written = entries_in(table, path)
    core = core_in(path, written, inherited)
    needed = fields_of(core, [*written, *inherited])
    for field in written:
        if field not in needed:
            raise Trouble("invalid", f"{path}: {field} belongs to hpu.core = {ONLY_WITH_CORE[field]}")
    missing = [field for field in needed if field not in written and field not in inherited]
    if missing:
        unused = [field for field in written if field.split(".")[0] == missing[0].split(".")[0]]
        beside_it = f"; its section has {', '.join(unused)}" if unused else "; its section is missing too"
        raise Trouble("invalid", f"{path}: key {missing[0]} is missing{beside_it}")
    entries = {
        field: read_entry(path, field, written[field]) if field in written else inherited[field]
        for field in needed
    }
    return Profile(name, about, entries, host=host_name)


def name_and_about(table: dict, path: Path) -> tuple[str, str]:
    """Name, which is the file's otherwise, and about. Raises Trouble('invalid')."""
    name, about = table.pop("name", path.stem), table.pop("about", "")
    for key, value in (("name", name), ("about", about)):
        if not isinstance(value, str) or (key == "name" and not value.strip()):
            raise Trouble("invalid", f'{path}: {key} = {value!r}: it must be a text, such as "my-cluster"')
    return name, about


def based_on(base: str, path: Path, others: tuple[Path, ...]) -> tuple[dict[str, Entry], str]:
    """The numbers of another profile, and the name of its host. `others`: those based on this one."""
    table, file = read_toml(file_beside(base, path), "nics", "NIC", names())
    above = (*others, path.resolve())
    if file.resolve() in above:
        whose = "is the file itself" if len(above) == 1 else "is based on this file"
        raise Trouble("invalid", f"{path}: base = '{base}' {whose}")
    base_profile = read(table, file, above)
    return base_profile.entries, base_profile.host


def file_beside(name: str, path: Path) -> str:
    """Returns the path of a FILE.toml that a profile names: beside it, unless absolute. Other names stay."""
    return str(path.parent / name) if name.endswith(".toml") else name


def entries_in(table: dict, path: Path) -> dict[str, object]:
    """{"section.key": entry} of a parsed file; unknown names are refused."""
    written = {}
    for section, keys in table.items():
        if not isinstance(keys, dict):
            accepted = (*FIELDS, "name", "about", "base", "host_profile")
            raise Trouble(
                "invalid", f"{path}: '{section}' stands outside of a section{nearest(section, accepted)}"
            )
        if section not in SECTIONS:
            raise Trouble("invalid", f"{path}: unknown section [{section}]{nearest(section, SECTIONS)}")
        if not keys:
            raise Trouble("invalid", f"{path}: section [{section}] is empty")
        for key, entry in keys.items():
            written[f"{section}.{key}"] = entry
    for field in written:
        if field not in FIELDS:
            raise Trouble("invalid", f"{path}: unknown key {field}{nearest(field, FIELDS)}")
    return written


def core_in(path: Path, written: dict, inherited: dict[str, Entry]) -> str:
    """Returns which core the file describes: it decides which fields there are."""
    if "hpu.core" not in written and "hpu.core" in inherited:
        return str(inherited["hpu.core"].value)
    if "hpu.core" not in written:
        raise Trouble("invalid", f"{path}: key hpu.core is missing")
    return str(read_entry(path, "hpu.core", written["hpu.core"]).value)


def read_entry(path: Path, field: str, entry: object) -> Entry:
    if not isinstance(entry, dict) or set(entry) != {"value", "label", "source"}:
        raise Trouble("invalid", f"{path}: {field} must be {{ value = ..., label = ..., source = ... }}")
    text, label, source = (str(entry[part]) for part in ("value", "label", "source"))
    if label not in LABELS:
        raise Trouble("invalid", f"{path}: {field} has label '{label}'{nearest(label, LABELS)}")
    if not source.strip():
        raise Trouble("invalid", f"{path}: {field} has no source; say in one line where '{text}' comes from")
    return Entry(field, text, parsed(field, text, str(path)), label, source)


def parsed(field: str, text: str, where: str) -> Value:
    """The value of a field from its text; `where` begins the sentence of an error."""
    try:
        return FIELDS[field](text)
    except ValueError as error:
        raise Trouble("invalid", f"{where}: {field} = '{text}': {error}") from None
