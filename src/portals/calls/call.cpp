#include "portals/calls/call.hpp"

namespace spinloom::calls {

bool record_call(Process& process, const char* name) {
  if (process.init_count == 0) return false;
  process.latest_call = name;
  ++process.call_count;
  return true;
}

int code_of(const Error& error) {
  switch (error.code) {
    case Code::exhausted: return PTL_NO_SPACE;
    case Code::invalid:
    case Code::overflow: return PTL_ARG_INVALID;
    default: return PTL_FAIL;
  }
}

}  // namespace spinloom::calls
