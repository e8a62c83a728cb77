// Assert - SPL_ASSERT reports bugs of Spinloom itself, with the values that led to them.
//
// Contract: SPL_ASSERT(condition, parts...) throws InternalError when the condition is false. The error names the
//   place, the condition and the streamed parts. It is on in every build. Trouble that comes from users, peers or
//   files is never asserted: that is an Error (result.hpp). It throws instead of aborting because the library lives
//   in users' processes.
// Threads: any. Time: none.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace spinloom {

class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void assertion_failed(const char* file, int line, const char* condition,
                                                             const Parts&... parts) {
  std::ostringstream stream;
  stream << file << ":" << line << ": internal error, please report: " << condition;
  if constexpr (sizeof...(parts) > 0) {
    stream << ": ";
    (stream << ... << parts);
  }
  throw InternalError(stream.str());
}

}  // namespace detail
}  // namespace spinloom

#define SPL_ASSERT(condition, ...)                                                                     \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]] {                                                                   \
      ::spinloom::detail::assertion_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                  \
  } while (false)
