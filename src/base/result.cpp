#include "base/result.hpp"

namespace spinloom {

const char* name_of(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::overflow: return "overflow";
    case Code::unsupported: return "unsupported";
    case Code::mismatch: return "mismatch";
    case Code::stalled: return "stalled";
    case Code::fault: return "fault";
    case Code::exhausted: return "exhausted";
    case Code::environment: return "environment";
  }
  return "unknown";
}

Error detail::error_of(Code code, const TextPart* parts, size_t count) { return {code, joined_text(parts, count)}; }

}  // namespace spinloom
