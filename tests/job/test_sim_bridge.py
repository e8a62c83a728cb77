"""C programs on two simulated fabrics that a gateway joins: their times, by an algebra that comes first."""

from __future__ import annotations

import re

import pytest

from c_programs import NIC, needs_compiler
from conftest import needs_engine
from spinloom.nics import profiles

pytestmark = [needs_engine, needs_compiler]

PING = """
enum { rounds = 10 };
int main(int argc, char **argv) {
  const size_t bytes = strtoul(argv[1], NULL, 0);
  const ptl_handle_ni_t ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
  ptl_pt_index_t portal;
  PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal);
  char *in = calloc(1, bytes), *out = calloc(1, bytes);
  memset(out, 7 + rank_of(), bytes);
  ptl_handle_ct_t landed;
  ptl_ct_event_t count;
  PtlCTAlloc(ni, &landed);
  ptl_me_t me = {.start = in, .length = bytes, .ct_handle = landed, .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .match_id = {.rank = PTL_RANK_ANY}};
  ptl_handle_me_t handle;
  PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, NULL, &handle);
  ptl_md_t md = {.start = out, .length = bytes, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t source;
  PtlMDBind(ni, &md, &source);
  usleep(100);
  ptl_process_t other = {.rank = 1 - rank_of()};
  for (int round = 0; round < rounds; ++round) {
    if (rank_of() == 1) PtlCTWait(landed, round + 1, &count);
    PtlPut(source, 0, bytes, PTL_NO_ACK_REQ, other, portal, 0, 0, NULL, 0);
    if (rank_of() == 0) PtlCTWait(landed, round + 1, &count);
  }
  for (size_t i = 0; i < bytes; ++i) if (in[i] != 8 - rank_of()) return 1;
  return 0;
}
"""
ROUNDS = 10


@pytest.fixture
def time_of(sim, source):
    program = source(PING)

    def time(length: int, *options: str) -> int:
        code, ran, said = sim(2, program, str(length), options=options)
        assert code == 0, said
        return ran["ranks"][0]["end_ps"]  # it takes the last answer

    return time


def test_cut_through_costs_a_latency_and_the_gateway_s_time(time_of):
    """Each way: L + f more, whatever the length of a packet, with L = switch + wire."""
    link = profiles.load(NIC, None)
    latency = link["link.switch"] + link["link.wire"]
    for length in (8, 2048):
        more = time_of(length, "--bridge", "1", "--forward", "500ns") - time_of(length)
        assert more == 2 * ROUNDS * (latency + 500_000)


def test_a_stored_message_is_once_more_on_the_wire(time_of):
    """Each way: N G more than cut through, less the last packet's part that a link overlaps with nothing."""
    link = profiles.load(NIC, None)
    packets, packet = 8, 2048
    through = time_of(packets * packet, "--bridge", "1")
    stored = time_of(packets * packet, "--bridge", "1", "--stored")
    on_wire = -(-packet * link["link.byte_time"] // 1)
    assert stored - through == pytest.approx(2 * ROUNDS * packets * on_wire, abs=2 * ROUNDS * packets)


def test_what_makes_no_sense_is_refused(sim, source):
    program = source("int main(void) { return 0; }")
    for options, words in {
        ("--bridge", "2"): "must be 1 to 1",
        ("--bridge", "0"): "must be 1 to 1",
        ("--stored",): "--bridge",
        ("--bridge", "1", "--forward", "soon"): "--forward 'soon'",
    }.items():
        code, _, said = sim(2, program, options=options)
        assert code != 0
        assert re.search(re.escape(words), said), said
