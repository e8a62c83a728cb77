"""What the sPIN interface for Portals 4 promises a handler (SC'17 paper, appendix B), in the simulator."""

from __future__ import annotations

import struct

import pytest

from conftest import needs_engine
from spinloom.handlers import handler_build, handler_runs, toolchain
from spinloom.handlers.handler_setup import HandlerSetup

pytestmark = [
    needs_engine,
    pytest.mark.skipif(
        toolchain.compiler_version() != toolchain.COMPILER_VERSION,
        reason="the handler compiler is not installed",
    ),
]

PACKET = 256


def header(body: str) -> str:
    return f"int header_handler(const ptl_header_t h, void *state) {{ (void)h; (void)state; {body} }}\n"


def payload(body: str) -> str:
    return f"int payload_handler(const ptl_payload_t p, void *state) {{ (void)p; (void)state; {body} }}\n"


def completion(body: str) -> str:
    return (
        "int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {"
        f" (void)dropped_bytes; (void)flow_control_triggered; (void)state; {body} }}\n"
    )


@pytest.fixture
def run(tmp_path):
    """run("C source", message, state_bytes=8, ...) runs handlers on a message of packets of 256 B."""

    def built_and_run(source: str, message: bytes, **setup) -> handler_runs.HandlerRun:
        path = tmp_path / "sample.c"
        path.write_text('#include "spinloom/handler.h"\n' + source)
        values = {"packet_bytes": PACKET, "state_bytes": 64, "entry_bytes": len(message), "hpus": 4}
        image = handler_build.image_of(path)
        return handler_runs.run(image, HandlerSetup(**{**values, **setup}), message)

    return built_and_run


def good(ran: handler_runs.HandlerRun) -> dict:
    assert ran.ended_well, ran.failures
    return ran.result


def words(content: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(content) // 8}Q", content)


def message_of(size: int) -> bytes:
    return handler_runs.random_message(size, 3)


# ---- HPUs ----


def test_handlers_know_their_hpu_and_how_many_there_are(run):
    """Each handler says twice where it runs, before and after it has waited for host memory."""
    # Rules: SPIN-1.16, SPIN-1.17, SPIN-1.18.
    source = payload(
        "uint64_t was = PTL_MY_HPU, *said = (uint64_t *)state + p.offset / 256 * 2, there;"
        "if (PtlHandlerDMAFromHostB(0, &there, 8, PTL_ME_HOST_MEM) != SUCCESS) return FAIL;"
        "said[0] = PTL_NUM_HPUS; said[1] = was == PTL_MY_HPU ? was : 99; return SUCCESS;"
    )
    packets = 12
    said = words(good(run(source, message_of(packets * PACKET), state_bytes=16 * packets))["state"])
    assert set(said[::2]) == {4}
    assert set(said[1::2]) == {0, 1, 2, 3}


def test_an_hpu_runs_one_handler_at_a_time_and_several_hpus_run_at_once(run):
    """`busy` has a flag for each HPU, `most` the largest number of handlers at work that one has seen."""
    # Rules: SPIN-1.10, SPIN-1.15, SPIN-1.16, SPIN-1.17.
    source = "typedef struct { uint32_t busy[4], now, most; } shared_t;\n" + payload(
        "shared_t *s = state;"
        "if (__atomic_exchange_n(&s->busy[PTL_MY_HPU], 1, __ATOMIC_RELAXED) != 0) return FAIL;"
        "const uint32_t seen = __atomic_add_fetch(&s->now, 1, __ATOMIC_RELAXED);"
        "if (seen > s->most) s->most = seen;"
        "for (uint64_t from = spl_cycles(); spl_cycles() - from < 2000;) {}"
        "__atomic_sub_fetch(&s->now, 1, __ATOMIC_RELAXED);"
        "s->busy[PTL_MY_HPU] = 0; return SUCCESS;"
    )
    state = good(run(source, message_of(20 * PACKET)))["state"]
    assert struct.unpack_from("<6I", state) == (0, 0, 0, 0, 0, 4)


def test_state_is_shared_and_lasts_from_message_to_message(run):
    # Rules: SPIN-1.15, SPIN-3.8, SPIN-7.18.
    source = payload("return PtlHandlerFAdd(state, NULL, p.length);")
    message = message_of(5 * PACKET + 7)
    assert words(good(run(source, message, count=3))["state"])[0] == 3 * len(message)


def test_data_that_a_source_initialises_is_in_its_image(run):
    # Rules: SPIN-1.21.
    source = "static const uint16_t table[4] = {7, 11, 13, 17};\n" + payload(
        "for (uint32_t i = 0; i < 4; ++i) ((uint64_t *)state)[i] = table[(p.base[0] + i) % 4];return SUCCESS;"
    )
    assert words(good(run(source, b"\x02"))["state"])[:4] == (13, 17, 7, 11)


# ---- which handlers run, and in which order ----


def counting(code: str) -> str:
    """Handlers that count their runs of each kind, and what comes out of turn, in four words of the state."""
    return (
        "typedef struct { uint64_t headers, payloads, completions, wrong; } log_t;\n"
        + header(
            f"log_t *l = state; l->wrong += l->payloads + l->completions != 0; ++l->headers;return {code};"
        )
        + payload(
            "log_t *l = state; if (l->headers != 1 || l->completions != 0) l->wrong = 1;"
            "return PtlHandlerFAdd(&l->payloads, NULL, 1);"
        )
        + completion("log_t *l = state; ++l->completions; return SUCCESS;")
    )


@pytest.mark.parametrize("order", ["in", "all:7"])
def test_one_header_handler_then_one_payload_handler_a_packet_then_one_completion_handler(run, order):
    # Rules: SPIN-1.5, SPIN-1.6, SPIN-1.7, SPIN-1.9, SPIN-1.12, SPIN-4.8.
    ran = run(counting("PROCESS_DATA"), message_of(9 * PACKET + 1), order=order)
    assert words(good(ran)["state"])[:4] == (1, 10, 1, 0)


@pytest.mark.parametrize("code", ["DROP", "PROCEED"])
def test_after_drop_and_proceed_no_payload_handler_runs(run, code):
    # Rules: SPIN-4.7, SPIN-4.9.
    message = message_of(4 * PACKET)
    result = good(run(counting(code), message))
    assert words(result["state"])[:4] == (1, 0, 1, 0)
    assert result["entry"] == (message if code == "PROCEED" else bytes(len(message)))


def test_handlers_of_an_entry_are_independent(run):
    """A payload handler alone; a completion handler alone, beside bytes that land by themselves."""
    # Rules: SPIN-2.1, SPIN-2.2.
    message = message_of(3 * PACKET)
    result = good(run(payload("return PtlHandlerFAdd(state, NULL, 1);"), message))
    assert (words(result["state"])[0], result["entry"]) == (3, bytes(len(message)))
    result = good(run(completion("*(uint64_t *)state = 5; return SUCCESS;"), message))
    assert (words(result["state"])[0], result["entry"]) == (5, message)


# ---- what handlers see ----


def test_a_payload_handler_sees_its_packet(run):
    """It writes length and offset of each packet, and its bytes to their places."""
    # Rules: SPIN-5.1, SPIN-7.1.
    source = payload(
        "uint64_t *said = (uint64_t *)state + p.offset / 256 * 2; said[0] = p.length; said[1] = p.offset;"
        "return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_DMA_NO_EVENT);"
    )
    message = message_of(2 * PACKET + 10)
    result = good(run(source, message))
    assert words(result["state"])[:6] == (256, 0, 256, 256, 10, 512)
    assert result["entry"] == message


def test_a_user_header_is_seen_by_the_header_handler_and_is_no_payload(run):
    # Rules: SPIN-1.11, SPIN-4.2, SPIN-4.5.
    source = header(
        "((uint64_t *)state)[0] = h.user_hdr_length; ((uint64_t *)state)[1] = *(const uint32_t *)h.user_hdr;"
        "((uint64_t *)state)[2] = h.length; return PROCESS_DATA;"
    ) + payload("return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_DMA_NO_EVENT);")
    message = message_of(2 * PACKET)
    result = good(run(source, message, user_header_bytes=12))
    assert words(result["state"])[:3] == (12, int.from_bytes(message[:4], "little"), len(message))
    assert result["entry"] == message[12:] + bytes(12)


def test_what_proceed_lands_includes_the_user_header(run):
    # Rules: SPIN-4.11.
    message = message_of(2 * PACKET)
    result = good(run(header("return PROCEED;"), message, user_header_bytes=12))
    assert result["entry"] == message


def test_a_completion_handler_hears_how_many_bytes_were_dropped(run):
    # Rules: SPIN-1.14, SPIN-5.3.
    source = payload("return p.offset == 0 ? SUCCESS : DROP;") + completion(
        "((uint64_t *)state)[0] = (uint64_t)dropped_bytes; ((uint64_t *)state)[1] = flow_control_triggered;"
        "return SUCCESS;"
    )
    result = good(run(source, message_of(3 * PACKET + 5)))
    assert words(result["state"])[:2] == (2 * PACKET + 5, 0)


def test_the_event_of_a_message_comes_after_its_completion_handler(run):
    """What the completion handler writes last is in memory; the host's counter counts the message once."""
    # Rules: SPIN-1.13.
    source = payload("return SUCCESS;") + completion(
        "*(uint64_t *)state = 0x1122334455667788;"
        "return PtlHandlerDMAToHostNB(state, 0, 8, PTL_DMA_NO_EVENT, NULL);"
    )
    result = good(run(source, message_of(PACKET)))
    assert words(result["entry"][:8]) == (0x1122334455667788,)
    assert result["counter"] == (1, 0)


# ---- actions ----


def test_dmas_name_the_entry_s_memory_or_the_handler_s(run):
    # Rules: SPIN-2.4, SPIN-7.2, SPIN-7.3.
    source = payload(
        "uint64_t *s = state; ptl_dma_h first, second;"
        "if (PtlHandlerDMAFromHostNB(8, s, 8, PTL_ME_HOST_MEM, &first) != SUCCESS) return FAIL;"
        "if (PtlHandlerDMAFromHostNB(8, s + 1, 8, PTL_HANDLER_HOST_MEM, &second) != SUCCESS) return FAIL;"
        "if (PtlHandlerDMAWait(first) != SUCCESS || PtlHandlerDMAWait(second) != SUCCESS) return FAIL;"
        "if (PtlHandlerDMATest(first) != 1 || PtlHandlerDMATest(second) != 1) return FAIL;"
        "if (PtlHandlerDMAToHostB(s, 0, 8, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT) != SUCCESS) return FAIL;"
        "return PtlHandlerDMAToHostB(s + 1, 0, 8, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);"
    )
    memories = {
        "entry_bytes": 16,
        "entry_from": (0, 0, 5, 0),
        "handler_bytes": 16,
        "handler_from": (0, 0, 6, 0),
    }
    result = good(run(source, b"x", **memories))
    assert words(result["entry"]) == (6, 5)
    assert words(result["handler_memory"]) == (5, 6)


@pytest.mark.parametrize("blocking", [True, False])
def test_compare_and_swap_in_host_memory(run, blocking):
    """It swaps where the old value is the one that is compared with, and gives the old value either way."""
    # Rules: SPIN-7.8, SPIN-7.10.
    failed = "PtlHandlerDMACASB({0}, 10, 20, &s[{1}], PTL_ME_HOST_MEM) != SUCCESS"
    if not blocking:
        failed = (
            "PtlHandlerDMACASNB({0}, 10, 20, &s[{1}], PTL_ME_HOST_MEM, &h) != SUCCESS"
            " || PtlHandlerDMAWait(h) != SUCCESS"
        )
    source = payload(
        "uint64_t *s = state; ptl_dma_h h = 0; (void)h;"
        f"if ({failed.format(0, 0)} || {failed.format(8, 1)}) return FAIL;"
        "return SUCCESS;"
    )
    result = good(run(source, b"x", entry_bytes=16, entry_from=(10, 0, 11, 0)))
    assert words(result["entry"]) == (20, 11)
    assert words(result["state"])[:2] == (10, 11)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_fetch_and_add_in_host_memory_stays_in_its_width(run, width):
    # Rules: SPIN-7.12.
    source = payload(f"return PtlHandlerDMAFetchAddB(8, 3, (uint64_t *)state, {width}, PTL_ME_HOST_MEM);")
    result = good(run(source, b"x", entry_bytes=24, entry_from=(0xFFFFFFFF,) * 6))
    most = 2 ** (8 * width) - 1
    assert words(result["state"])[0] == most
    expected = bytearray(b"\xff" * 24)
    expected[8 : 8 + width] = (2).to_bytes(width, "little")
    assert result["entry"] == bytes(expected)


def test_compare_and_swap_in_hpu_memory_says_whether_it_swapped(run):
    # Rules: SPIN-7.16.
    source = payload(
        "uint64_t *s = state; s[0] = 1ull << 40;"
        "s[1] = (uint64_t)PtlHandlerCAS(s, 1ull << 40, 5); s[2] = s[0];"
        "s[3] = (uint64_t)PtlHandlerCAS(s, 1ull << 40, 6); s[4] = s[0]; return SUCCESS;"
    )
    assert words(good(run(source, b"x"))["state"])[1:5] == (1, 5, 0, 5)


def test_fetch_and_add_in_hpu_memory_gives_the_value_before(run):
    # Rules: SPIN-7.18.
    source = payload(
        "uint64_t *s = state; s[0] = ~0ull; if (PtlHandlerFAdd(s, s + 1, 3) != SUCCESS) return FAIL;"
        "return PtlHandlerFAdd(s, s + 2, 1ull << 40);"
    )
    assert words(good(run(source, b"x"))["state"])[:3] == (2 + (1 << 40), 2**64 - 1, 2)


def test_handlers_of_several_hpus_exclude_each_other_by_compare_and_swap(run):
    """Under the lock a number is read, and written a thousand cycles later."""
    # Rules: SPIN-7.17.
    source = payload(
        "uint64_t *s = state; while (!PtlHandlerCAS(s, 0, 1)) PtlHandlerYield();"
        "uint64_t seen = ((volatile uint64_t *)s)[1];"
        "for (uint64_t from = spl_cycles(); spl_cycles() - from < 1000;) {}"
        "((volatile uint64_t *)s)[1] = seen + 1;"
        "return PtlHandlerCAS(s, 1, 0) ? SUCCESS : FAIL;"
    )
    packets = 16
    assert words(good(run(source, message_of(packets * PACKET)))["state"])[:2] == (0, packets)


def test_counter_calls_read_set_and_add(run):
    # Rules: SPIN-7.28.
    source = payload(
        "uint64_t *s = state; ptl_ct_event_t now, change = {5, 2}, last = {40, 0};"
        "if (PtlHandlerCTInc(change) != SUCCESS || PtlHandlerCTGet(&now) != SUCCESS) return FAIL;"
        "s[0] = now.success; s[1] = now.failure;"
        "return PtlHandlerCTSet(last);"
    )
    result = good(run(source, b"x"))
    assert words(result["state"])[:2] == (5, 2)
    assert result["counter"] == (41, 0)  # the message itself is one more


def test_dma_events_are_told_unless_no_event_is_given(run):
    # Rules: SPIN-8.1.
    def events(options: str) -> list[str]:
        source = payload(f"return PtlHandlerDMAToHostB(p.base, 0, p.length, {options});")
        told = good(run(source, message_of(PACKET)))["events"]
        return [event["kind"] for event in told if event["rank"] == 1]

    assert events("PTL_ME_HOST_MEM") == ["dma", "put"]
    assert events("PTL_DMA_NO_EVENT") == ["put"]
