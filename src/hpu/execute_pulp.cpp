#include "hpu/execute.hpp"
#include "hpu/timing_pulp.hpp"

namespace spinloom::hpu {

template class Execution<PulpTiming>;

}  // namespace spinloom::hpu
