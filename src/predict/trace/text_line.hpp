// TextLine - a line of a text trace: the call's name, and its fields between colons.
//
// Contract: split() takes `MPI_Name:begin:arguments:end`; a field may hold a list, with commas. The numbers of fields
//   are read by number_in(), whole, or not at all. time_ns() reads microseconds, with decimals or without, and returns
//   ns.
// Invariants: (1) names and fields are views into the line; nothing is copied.
// Threads: pure. Time: the writing host's, in ns.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spinloom::trace {

struct TextLine {
  std::string_view name;  // "MPI_Send"
  std::vector<std::string_view> fields;  // the first is when it began, the last when it ended

  // Returns false if the line is no call.
  [[nodiscard]] bool split(std::string_view line);
};

[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char separator);

template <class Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view field) {
  Number value{};
  const auto read = std::from_chars(field.data(), field.data() + field.size(), value);
  if (read.ec != std::errc{} || read.ptr != field.data() + field.size()) return std::nullopt;
  return value;
}

[[nodiscard]] std::optional<uint64_t> time_ns(std::string_view field);

}  // namespace spinloom::trace
