#include "hpu/execute.hpp"
#include "hpu/timing_a15.hpp"

namespace spinloom::hpu {

template class Execution<A15Timing>;

}  // namespace spinloom::hpu
