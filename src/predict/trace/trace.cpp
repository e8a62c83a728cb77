#include "predict/trace/trace.hpp"

#include "base/assert.hpp"

namespace spinloom::trace {

std::string_view name_of(Call call) {
  static constexpr std::string_view names[] = {
#define SPINLOOM_TRACE_NAME(name) #name,
      SPINLOOM_TRACE_CALLS(SPINLOOM_TRACE_NAME)
#undef SPINLOOM_TRACE_NAME
  };
  const auto number = static_cast<size_t>(call);
  SPL_ASSERT(number < std::size(names), "there is no call ", number);
  return names[number];
}

}  // namespace spinloom::trace
