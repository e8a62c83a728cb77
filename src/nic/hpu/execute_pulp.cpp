#include "nic/hpu/execute.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "nic/hpu/timing_pulp.hpp"

namespace spinloom::hpu {

template class Execution<PulpTiming>;
template class Execution<Profiled<PulpTiming>>;

}  // namespace spinloom::hpu
