"""What the calls of Portals do in C programs, in modelled time."""

from __future__ import annotations

from c_programs import PORTALS, needs_compiler
from conftest import needs_engine

pytestmark = [needs_engine, needs_compiler]


def test_wrong_arguments_are_answered_and_stale_handles_name_nothing(sim):
    code, ran, said = sim(2, PORTALS / "portals_arguments.c")
    assert code == 0, said
    assert ran["output"] == "rank 0: 50 answers\nrank 1: 50 answers\n"


def test_options_decide_what_is_counted_and_told(sim):
    code, ran, said = sim(1, PORTALS / "portals_options.c")
    assert (code, ran["output"]) == (0, "82 answers\n"), said


def test_gets_and_atomics_bring_back_and_change_what_they_say(sim):
    code, ran, said = sim(2, PORTALS / "portals_fetch.c")
    assert code == 0, said
    assert ran["output"].splitlines() == ["rank 1: 36 answers", "rank 0: 102 answers"]


def test_list_entries_take_what_comes_and_interfaces_do_not_mix(sim, source):
    """In C++, on physical interfaces; a portal table index beyond an interface's own finds nothing."""
    program = source(
        """
        int main() {
          const ptl_handle_ni_t ni = begin(PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL);
          ptl_process_t me, to;
          ptl_handle_ct_t landed, acked;
          ptl_handle_le_t handle;
          ptl_handle_md_t md;
          ptl_pt_index_t pt;
          ptl_ct_event_t count;
          char in[8] = "", out[8] = "list";
          PtlGetPhysId(ni, &me);
          to = me;
          to.phys.nid = 1 - me.phys.nid;
          PtlPTAlloc(ni, 0, PTL_EQ_NONE, 3, &pt);
          PtlCTAlloc(ni, &landed);
          PtlCTAlloc(ni, &acked);
          ptl_le_t le = {in, sizeof in, landed, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
          ptl_me_t me_entry = {};
          printf("%d ", PtlMEAppend(ni, pt, &me_entry, PTL_PRIORITY_LIST, nullptr, &handle));
          printf("%d ", PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &handle));
          ptl_md_t what = {out, sizeof out, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked};
          PtlMDBind(ni, &what, &md);
          usleep(100);
          if (me.phys.nid == 0) PtlPut(md, 0, sizeof out, PTL_CT_ACK_REQ, to, pt, 99, 0, nullptr, 0);
          if (me.phys.nid == 0) PtlPut(md, 0, sizeof out, PTL_CT_ACK_REQ, to, pt + 64, 99, 0, nullptr, 0);
          if (me.phys.nid == 0) PtlCTWait(acked, 2, &count);
          else PtlCTWait(landed, 1, &count);
          printf("%s %d %d\\n", in, int(count.success), int(count.failure));
          return 0;
        }
        """,
        "program.cpp",
    )
    code, ran, said = sim(2, program)
    assert code == 0, said
    assert sorted(ran["output"].splitlines()) == ["1 0  1 1", "1 0 list 1 0"]


def test_engines_are_not_opened_where_a_rank_has_ended(sim, tmp_path):
    program = tmp_path / "absent.c"
    program.write_text(
        f"""
        #include "{PORTALS}/portals_common.h"
        #include <spinloom/offload.h>
        int main(void) {{
          const spl_oe_options options = {{.portal = 20}};
          spl_oe *engine;
          begin();
          if (my_rank == 2) return 0;
          EXPECT(PTL_FAIL, spl_oe_open(ni, &options, &engine));
          puts(spl_oe_error(NULL));
          return wrong;
        }}
        """
    )
    code, ran, said = sim(3, program)
    assert code == 0, said
    assert ran["output"].splitlines() == ["rank 2 is gone, and all ranks open their engines together"] * 2
