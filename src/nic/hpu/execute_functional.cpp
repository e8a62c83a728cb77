#include "nic/hpu/execute.hpp"
#include "nic/hpu/instruction_profile.hpp"
#include "nic/hpu/timing_functional.hpp"

namespace spinloom::hpu {

template class Execution<FunctionalTiming>;
template class Execution<Profiled<FunctionalTiming>>;

}  // namespace spinloom::hpu
