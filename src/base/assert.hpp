// Assert - SPL_ASSERT reports bugs of Spinloom itself, with the values that led to them.
//
// Contract: SPL_ASSERT(condition, parts...) throws InternalError when the condition is false. The error names the
//   place, the condition and the streamed parts. It is on in every build. Trouble that comes from users, peers or
//   files is never asserted: that is an Error (result.hpp). It throws instead of aborting because the library lives
//   in users' processes.
// Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "base/text.hpp"

namespace spinloom {

class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {

struct AssertionPlace {
  const char* file;
  int line;
  const char* condition;
};
[[noreturn, gnu::cold]] void throw_internal_error(const AssertionPlace& place, const TextPart* parts, size_t count);

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void assertion_failed(const char* file, int line, const char* condition,
                                                             const Parts&... parts) {
  const TextPart list[] = {text_part(parts)..., {nullptr, nullptr}};
  throw_internal_error({file, line, condition}, list, sizeof...(parts));
}

}  // namespace detail
}  // namespace spinloom

#define SPL_ASSERT(condition, ...)                                                                     \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]] {                                                                   \
      ::spinloom::detail::assertion_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                  \
  } while (false)
