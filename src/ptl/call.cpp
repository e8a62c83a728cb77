#include "ptl/call.hpp"

namespace spinloom::ptl {

Process* begin(const char* name) {
  Process* process = Process::current();
  if (process == nullptr || process->initialised == 0) return nullptr;
  process->call = name;
  ++process->calls;
  return process;
}

int code_of(const Error& error) {
  switch (error.code) {
    case Code::exhausted: return PTL_NO_SPACE;
    case Code::invalid:
    case Code::overflow: return PTL_ARG_INVALID;
    default: return PTL_FAIL;
  }
}

}  // namespace spinloom::ptl
