#include "hpu/execute.hpp"
#include "hpu/instruction_profile.hpp"
#include "hpu/timing_functional.hpp"

namespace spinloom::hpu {

template class Execution<FunctionalTiming>;
template class Execution<Profiled<FunctionalTiming>>;

}  // namespace spinloom::hpu
