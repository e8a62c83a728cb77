// Each rank has its own inline variables, variable templates, and static variables of inline functions.
// Compiled with -shared -fPIC, such names have a binding by which a loader gives all copies of a program one variable.
#include <portals4.h>

#include <cstdio>

inline unsigned variable = 0;
template <class T>
T of_template = T(0);
inline unsigned& of_function() {
  static unsigned own = 0;
  return own;
}

int main() {
  ptl_handle_ni_t ni;
  ptl_process_t me;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &ni) != PTL_OK) {
    return 1;
  }
  PtlGetId(ni, &me);
  variable += 10 + me.rank;
  of_template<unsigned> += 20 + me.rank;
  of_function() += 30 + me.rank;
  std::printf("rank %u: %u %u %u\n", me.rank, variable, of_template<unsigned>, of_function());
  PtlNIFini(ni);
  PtlFini();
}
