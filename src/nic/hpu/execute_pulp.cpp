#include "hpu/execute.hpp"
#include "hpu/instruction_profile.hpp"
#include "hpu/timing_pulp.hpp"

namespace spinloom::hpu {

template class Execution<PulpTiming>;
template class Execution<Profiled<PulpTiming>>;

}  // namespace spinloom::hpu
