#include "portals/calls/call.hpp"

namespace spinloom::calls {

bool begin(Process& process, const char* name) {
  if (process.initialised == 0) return false;
  process.call = name;
  ++process.calls;
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
