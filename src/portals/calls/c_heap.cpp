// Memory that the peers of a rank can map. No NIC takes part, so these calls also work before PtlInit and after
// PtlFini.
#include "base/shared_heap.hpp"
#include "portals4_spin.h"

extern "C" {

int PtlSpinHeapAlloc(ptl_size_t length, void** start) {
  if (start == nullptr || length == 0) return PTL_ARG_INVALID;
  *start = spinloom::process_heap().allocate(length);
  return *start == nullptr ? static_cast<int>(PTL_NO_SPACE) : static_cast<int>(PTL_OK);
}

int PtlSpinHeapFree(void* start) {
  return spinloom::process_heap().release(start) ? static_cast<int>(PTL_OK) : static_cast<int>(PTL_ARG_INVALID);
}

}  // extern "C"
