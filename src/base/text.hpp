// Text - streams values of any types into one string: text("got ", 3, " of ", 4).
//
// Contract: text() writes its arguments to one stream, in order, by their operator<<. Manipulators such as std::hex
//   work. Only text.cpp makes the stream, because the compiler takes long for each place that makes one.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <type_traits>

namespace spinloom {
namespace detail {

// Points to a value of the caller, and to the function that writes it.
struct TextPart {
  const void* value;
  void (*write)(std::ostream& out, const void* value);
};

void write_chars(std::ostream& out, const void* value);

template <class T>
TextPart text_part(const T& value) {
  if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_extent_t<T>, char>) {
    return {value, &write_chars};
  } else if constexpr (std::is_function_v<T>) {  // a manipulator
    return {reinterpret_cast<const void*>(&value),
            [](std::ostream& out, const void* at) { out << *reinterpret_cast<T*>(const_cast<void*>(at)); }};
  } else {
    return {&value, [](std::ostream& out, const void* at) { out << *static_cast<const T*>(at); }};
  }
}

[[nodiscard]] std::string joined_text(const TextPart* parts, size_t count);

}  // namespace detail

template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  const detail::TextPart list[] = {detail::text_part(parts)..., {nullptr, nullptr}};
  return detail::joined_text(list, sizeof...(parts));
}

}  // namespace spinloom
