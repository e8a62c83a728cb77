#include "predict/trace/text_line.hpp"

namespace spinloom::trace {

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t first = 0;;) {
    const size_t end = text.find(separator, first);
    parts.push_back(text.substr(first, end == std::string_view::npos ? end : end - first));
    if (end == std::string_view::npos) return parts;
    first = end + 1;
  }
}

bool TextLine::split(std::string_view line) {
  fields = split_at(line, ':');
  name = fields[0];
  fields.erase(fields.begin());
  return name.size() > 4 && name.starts_with("MPI_") && fields.size() >= 2;
}

std::optional<uint64_t> time_ns(std::string_view field) {
  constexpr uint64_t ns_a_us = 1'000;
  constexpr uint64_t us_max = uint64_t{1} << 53;  // 285 years; what a double holds
  const size_t point = field.find('.');
  const auto us = number_in<uint64_t>(field.substr(0, point));
  if (!us || *us > us_max) return std::nullopt;
  uint64_t ns = *us * ns_a_us;
  if (point == std::string_view::npos) return ns;
  uint64_t digit_ns = ns_a_us / 10;
  for (const char digit : field.substr(point + 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    ns += static_cast<uint64_t>(digit - '0') * digit_ns;
    digit_ns /= 10;
  }
  return ns;
}

}  // namespace spinloom::trace
