"""The report of `spinloom handler run`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from spinloom.common import core, output, units
from spinloom.common.handler_calls import CALLS
from spinloom.handlers import handler_build, handler_runs
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_runs import MEMORIES, HandlerRun

RETURN_CODES = (
    "SUCCESS",
    "DROP",
    "DROP_PENDING",
    "PROCESS_DATA",
    "PROCESS_DATA_PENDING",
    "PROCEED",
    "PROCEED_PENDING",
    "SUCCESS_PENDING",
    "SEGV",
    "FAIL",
)
EVENTS_SHOWN, LINES_SHOWN, RANGES_SHOWN, BYTES_SHOWN = 12, 20, 4, 16
STATE = re.compile(r"address 0x30[0-9a-f]{6}\b")  # an address of the state (spinloom/hpu_map.h)


def as_json(ran: HandlerRun, differences: list[str]) -> str:
    plain = {key: value for key, value in ran.result.items() if key not in MEMORIES and key != "trace"}
    for lines in ("debug", "troubles"):
        plain[lines] = [[*line[:3], decoded(line[3]), *line[4:]] for line in plain[lines]]
    plain["calls"] = {CALLS.get(number, str(number)): count for number, count in plain["calls"].items()}
    plain |= {memory: ran.result[memory].hex() for memory in MEMORIES}
    return json.dumps({**plain, "partial": ran.partial, "differences": differences}, indent=1)


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def show(chosen: Any, ran: HandlerRun, differences: list[str]) -> None:
    result, setup, profile = ran.result, ran.setup, chosen.profile
    console = output.console()

    def tell(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    times = "message" if setup.count == 1 else f"{setup.count:,} messages"
    size, packet = (units.format_bytes(count) for count in (len(ran.message), setup.packet_of(profile)))
    tell(f"{times} of {size} in {result['packets']:,} packets of up to {packet}")
    tell(f"{profile}, {setup.hpus_of(profile)} HPUs, order {setup.order}")
    show_events(result["events"], tell)
    success, failure = result["counter"]
    tell(f"the entry's counter: {success} messages, {failure} failures")
    marks = {
        "first byte": result["first_byte_ps"],
        "last handler's end": result["last_handler_ps"],
        "told to the host": result["time_ps"],
    }
    mark_texts = (f"{mark} {units.format_time(ps) if ps >= 0 else 'never'}" for mark, ps in marks.items())
    tell(f"modelled time from the first put: {', '.join(mark_texts)}")
    if is_lower_bound(chosen):
        tell(
            f"lower bounds: the handlers use atomics, and HPUs of {profile.name} never wait for each other "
            "at a word of memory; those of profiles with pulp cores do"
        )
    show_handlers(result)
    show_calls(result, tell)
    for line in result["debug"][:LINES_SHOWN]:
        tell(f"debug {units.format_time(line[0])}  HPU {line[1]}  {line[2]}: {decoded(line[3])} {line[4]}")
    rest = len(result["debug"]) - LINES_SHOWN + result["debug_dropped"]
    if rest > 0:
        tell(f"... and {rest:,} more debug lines (--json has them)")
    show_endings(chosen.image, result, setup.state_bytes, tell)
    for memory, name in MEMORIES.items():
        show_memory(name, ran.before[memory], result[memory], tell)
    if ran.partial:
        tell("partial: true (interrupted; bytes: not compared)")
    elif chosen.expect is None:
        tell(f"bytes: not compared, there is no {chosen.image.beside('_expect.py')}")
    elif differences:
        for difference in differences:
            tell(f"WRONG: {difference}")
    else:
        left_out = handler_runs.not_compared(ran, chosen.expect)
        rest = f"; not compared: {', '.join(left_out)}" if left_out else ""
        tell(f"bytes: as {chosen.image.beside('_expect.py')} says{rest}")


def is_lower_bound(chosen: Any) -> bool:
    """True if several HPUs may change one word with atomics, on cores whose model has no contention (a15)."""
    if chosen.profile["hpu.core"] != "a15" or chosen.setup.hpus_of(chosen.profile) == 1:
        return False
    code = core.load().disassemble_image(chosen.image.elf)
    return any(text.startswith(("amo", "lr.", "sc.")) for *_, text in code)


def show_events(events: list[dict[str, Any]], tell: Any) -> None:
    for event in events[:EVENTS_SHOWN]:
        dropped = f", {event['dropped_bytes']} B dropped" if event["dropped_bytes"] else ""
        ending = f"{event['kind']}: {event['fail']}, {event['bytes']} B{dropped}"
        tell(f"event {units.format_time(event['time_ps'])}  rank {event['rank']}  {ending}")
    if len(events) > EVENTS_SHOWN:
        tell(f"... and {len(events) - EVENTS_SHOWN:,} more events (--json has them)")


def show_handlers(result: dict[str, Any]) -> None:
    rows, causes = [], []
    for kind, ran in result["handlers"].items():
        if not ran["handlers"]:
            continue
        mean = ran["cycles"] / ran["handlers"]
        cells = [
            ran["handlers"],
            ran["cycles_min"],
            mean,
            ran["cycles_max"],
            ran["instructions"],
            ran["calls"],
        ]
        stalled = ran["stalls"]
        rows.append(
            [
                kind,
                *(f"{cell:,.0f}" for cell in cells),
                f"{sum(stalled.values()) / max(ran['cycles'], 1):.0%}",
            ]
        )
        causes += [
            [kind, cause, f"{cycles:,}", f"{cycles / max(ran['cycles'], 1):.0%}"]
            for cause, cycles in stalled.items()
            if cycles
        ]
    columns = ["handler", "runs", "cycles min", "mean", "max", "instructions", "calls", "stalled"]
    if rows:
        output.show(output.table(columns, rows, numeric=set(columns[1:])))
    if causes:
        named = ["handler", "stalled by", "cycles", "of its cycles"]
        output.show(output.table(named, causes, numeric=set(named[2:])))


def show_calls(result: dict[str, Any], tell: Any) -> None:
    call_texts = [
        f"{CALLS.get(number, f'call {number}')} {count:,}" for number, count in result["calls"].items()
    ]
    if call_texts:
        tell(f"calls: {'; '.join(call_texts)}")
    if result["dma_writes"]:
        tell(f"DMA writes to the host: {result['dma_writes']:,}, {units.format_bytes(result['dma_bytes'])}")


def show_endings(image: Image, result: dict[str, Any], state_bytes: int, tell: Any) -> None:
    for kind, end, code, count in result["endings"]:
        returned = RETURN_CODES[code] if code < len(RETURN_CODES) else f"{code}, which does not exist"
        tell(
            f"{kind} handlers: {count:,} {f'returned {returned}' if end == 'returned' else f'ended by {end}'}"
        )
    troubles = result["troubles"][:LINES_SHOWN]
    reasons = handler_build.with_source_lines(image, [decoded(reason) for *_, reason, _ in troubles])
    for (time_ps, hpu, kind, *_), reason in zip(troubles, reasons, strict=True):
        tell(f"trouble {units.format_time(time_ps)}  HPU {hpu}  {kind}: {reason}")
    if state_bytes == 0 and any(map(STATE.search, reasons)):
        tell("The context has no state. The size of its state is memory.state.")
    if len(result["troubles"]) > LINES_SHOWN:
        tell(f"... and {len(result['troubles']) - LINES_SHOWN:,} more troubles (--json has them)")


def show_memory(name: str, before: bytes, after: bytes, tell: Any) -> None:
    if not after:
        return
    ranges = list(changed_ranges(before, after))
    total = sum(end - start for start, end in ranges)
    if not ranges:
        tell(f"{name}: {units.format_bytes(len(after))}, nothing changed")
        return
    tell(f"{name}: {total:,} of {len(after):,} B changed, in {len(ranges):,} ranges")
    for start, end in ranges[:RANGES_SHOWN]:
        beginning = after[start : min(end, start + BYTES_SHOWN)]
        more = " ..." if end - start > BYTES_SHOWN else ""
        tell(f"  {start:8x}  {beginning.hex(' ')}{more}  ({end - start:,} B)")
    if len(ranges) > RANGES_SHOWN:
        tell("  ... (--memory-out, --json)")


def changed_ranges(before: bytes, after: bytes, join: int = 8) -> Iterator[tuple[int, int]]:
    """The ranges that differ; fewer than `join` equal bytes between two ranges join them."""
    start = end = -1
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        if start >= 0 and at - end >= join:
            yield start, end
            start = at
        elif start < 0:
            start = at
        end = at + 1
    if start >= 0:
        yield start, end
