#include "nic/hpu/execute.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "nic/hpu/timing_a15.hpp"

namespace spinloom::hpu {

template class Execution<A15Timing>;
template class Execution<Profiled<A15Timing>>;

}  // namespace spinloom::hpu
