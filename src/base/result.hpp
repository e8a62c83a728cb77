// Result - a value or an Error: how every floor reports trouble that is not our own bug.
//
// Contract: trouble that comes from users, data, the environment or peers travels as an Error: a code, and one
//   sentence with the values and with what the user can change. Our own bugs are assertions (assert.hpp).
// Invariants: (1) a Result holds either a value or an error, never both; (2) value() on an error and error() on a
//   value are bugs and throw InternalError.
// Threads: plain values. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "base/text.hpp"

namespace spinloom {

// The kind of an Error. The command line maps each kind to one exit code (EXIT_OF_CODE in errors.py).
enum class Code : uint8_t {
  invalid,      // the input is wrong: usage, text, blob, image, profile (exit 2)
  overflow,     // a size or displacement does not fit in 64 bits or a named limit (exit 2)
  unsupported,  // legal, but Spinloom cannot do it (exit 2)
  mismatch,     // bytes differ from the oracle (exit 1)
  stalled,      // a simulation cannot go on, or a peer does not come: the sentence says who waits for what (exit 1)
  fault,        // a handler or a peer broke its rules: it faulted, overran its budget, sent nonsense (exit 1)
  exhausted,    // a resource is full: the sentence says which one, and what enlarges it (exit 1)
  environment,  // the machine lacks something (exit 3)
};

[[nodiscard]] const char* name_of(Code code);

struct Error {
  Code code = Code::invalid;
  std::string message;
};

namespace detail {
[[nodiscard, gnu::cold]] Error error_of(Code code, const TextPart* parts, size_t count);
}

// Makes an Error, for example fail(Code::invalid, "count is ", count, ", it must not be negative").
// It stays out of line, so that the list of parts takes neither stack nor code of the function that may fail.
template <class... Parts>
[[nodiscard, gnu::noinline, gnu::cold]] Error fail(Code code, const Parts&... parts) {
  const detail::TextPart list[] = {detail::text_part(parts)..., {nullptr, nullptr}};
  return detail::error_of(code, list, sizeof...(parts));
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() {
    SPL_ASSERT(ok(), "value() of an error: ", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const {
    SPL_ASSERT(ok(), "value() of an error: ", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  [[nodiscard]] T& operator*() { return value(); }
  [[nodiscard]] const T& operator*() const { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    SPL_ASSERT(!ok(), "error() of a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    SPL_ASSERT(!ok(), "error() of a success");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace spinloom

// SPL_TRY(status_expression): if the status is an error, returns it from the enclosing function.
#define SPL_TRY(expression)                            \
  do {                                                 \
    if (auto spl_status = (expression); !spl_status) { \
      return spl_status.error();                       \
    }                                                  \
  } while (false)

// SPL_ASSIGN(auto x, result_expression): sets x to the value; if there is an error instead, returns it from the
// enclosing function.
#define SPL_CONCAT_(a, b) a##b
#define SPL_CONCAT(a, b) SPL_CONCAT_(a, b)
#define SPL_ASSIGN(target, expression) SPL_ASSIGN_(SPL_CONCAT(spl_result_, __LINE__), target, expression)
#define SPL_ASSIGN_(result, target, expression) \
  auto result = (expression);                   \
  if (!result) {                                \
    return result.error();                      \
  }                                             \
  target = std::move(result.value())
