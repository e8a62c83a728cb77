/* The public headers in a C program: what the compiler accepts is the test. */
#include "portals4.h"
#include "portals4_spin.h"
#include "spinloom/rma.h"

/* A name that older headers had is not one of the newer ones. */
static int one_of_a_kind(int code) {
  switch (code) {
    case PTL_OK: return 0;
    case PTL_ARG_INVALID: return 1;
    case PTL_CT_NONE_REACHED: return 2;
    case PTL_EQ_DROPPED: return 3;
    case PTL_EQ_EMPTY: return 4;
    case PTL_FAIL: return 5;
    case PTL_IGNORED: return 6;
    case PTL_IN_USE: return 7;
    case PTL_LIST_TOO_LONG: return 8;
    case PTL_NO_INIT: return 9;
    case PTL_NO_SPACE: return 10;
    case PTL_PID_IN_USE: return 11;
    case PTL_PT_FULL: return 12;
    case PTL_PT_EQ_NEEDED: return 13;
    case PTL_PT_IN_USE: return 14;
    case PTL_ABORTED: return 15;
    case PTL_INTERRUPTED: return 16;
    default: return -1;
  }
}

int spl_header_test(void);
int spl_header_test(void) {
  ptl_md_t md = {0};
  ptl_process_t target;
  target.phys.nid = PTL_NID_ANY;
  target.phys.pid = PTL_PID_ANY;
  return one_of_a_kind(PTL_OK) + (md.length == 0 && target.rank == PTL_NID_ANY ? 0 : 1);
}
