#include "base/text.hpp"

#include <sstream>

#include "base/assert.hpp"

namespace spinloom::detail {
namespace {

void write_parts(std::ostream& out, const TextPart* parts, size_t count) {
  for (size_t i = 0; i < count; ++i) parts[i].write(out, parts[i].value);
}

}  // namespace

void write_chars(std::ostream& out, const void* value) { out << static_cast<const char*>(value); }

std::string joined_text(const TextPart* parts, size_t count) {
  std::ostringstream stream;
  write_parts(stream, parts, count);
  return stream.str();
}

void throw_internal_error(const AssertionPlace& place, const TextPart* parts, size_t count) {
  std::ostringstream stream;
  stream << place.file << ":" << place.line << ": internal error, please report: " << place.condition;
  if (count > 0) stream << ": ";
  write_parts(stream, parts, count);
  throw InternalError(stream.str());
}

}  // namespace spinloom::detail
