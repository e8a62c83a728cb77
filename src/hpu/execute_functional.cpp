#include "hpu/execute.hpp"
#include "hpu/timing_functional.hpp"

namespace spinloom::hpu {

template class Execution<FunctionalTiming>;

}  // namespace spinloom::hpu
