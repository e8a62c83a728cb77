#include "memory/gpu/driver.hpp"

#include <dlfcn.h>

#include <string>

namespace spinloom::gpu {
namespace {

// Returns advice for a result of the driver; null if there is none.
const char* help_for(int result) {
  switch (result) {
    case cuda_invalid_value: return "an argument is not what the call takes, for example memory that was freed";
    case cuda_out_of_memory: return "free memory of the device, or move less at once";
    case 3:
    case 4: return "the driver is not initialised, or the process is ending";
    case 46: return "the device is in use by another process, in exclusive mode";
    case 100: return "the driver sees no device: look at CUDA_VISIBLE_DEVICES and at nvidia-smi";
    case 101: return "there is no device of that number";
    case cuda_invalid_context: return "the context of the device is gone: it was reset by this process";
    case 200:
    case 209:
    case 218:
    case 222: return "the kernels do not fit this device or driver: update the driver, or install nvidia-cuda-nvrtc";
    case 205:
    case 217: return "these two devices do not reach each other's memory";
    case 214: return "the device reports an error of its memory that cannot be corrected: it must be reset";
    case 400: return "the stream, event or allocation is of another device or was destroyed";
    case 700:
    case 716:
    case 717:
    case 718:
    case 719:
      return "a kernel failed: it was given memory that was freed, that is too short for the layout, or of another "
             "device. The device's context is lost; start the process again";
    case 721:
    case 999: return "the device was lost; start the process again, and look at dmesg";
    case 801: return "the system does not support it";
    case 900:
    case 901:
    case 906: return "the stream is capturing a graph, and this call cannot be part of one";
    default: return nullptr;
  }
}

Result<Driver> start_driver() {
  SPL_ASSIGN(const Driver table, load_driver("libcuda.so.1"));
  SPL_CUDA(table, table.init(0), "to start the driver of the GPU");
  return table;
}

}  // namespace

Error driver_error(const Driver& driver, int result, std::string_view tried) {
  const char* name = nullptr;
  const char* what = nullptr;
  if (driver.error_name == nullptr || driver.error_name(result, &name) != 0 || name == nullptr) name = "CUDA error";
  if (driver.error_string == nullptr || driver.error_string(result, &what) != 0 || what == nullptr) what = "unknown";
  const char* const help = help_for(result);
  const Code code = result == cuda_out_of_memory                    ? Code::exhausted
                    : result == cuda_invalid_value || result == 400 ? Code::invalid
                                                                    : Code::environment;
  return fail(code, tried, ": ", what, " (", name, ", ", result, ")", help != nullptr ? ": " : "",
              help != nullptr ? help : "");
}

Result<Driver> load_driver(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return fail(Code::environment, "no GPU driver: ", library, " is not there (", dlerror(), ")");
  }
  Driver table;
#define SPL_DRIVER_FIND(name, symbol, arguments)                                                                 \
  table.name = reinterpret_cast<int(*) arguments>(dlsym(handle, symbol));                                        \
  if (table.name == nullptr) {                                                                                   \
    return fail(Code::environment, "the GPU driver is too old: ", library, " has no ", symbol, "; CUDA 11 has"); \
  }
  SPL_DRIVER_CALLS(SPL_DRIVER_FIND)
  SPL_DRIVER_PEER_CALLS(SPL_DRIVER_FIND)
#undef SPL_DRIVER_FIND
  return table;
}

Result<const Driver*> driver() {
  static const Result<Driver> started = start_driver();
  if (!started) return started.error();
  return &*started;
}

}  // namespace spinloom::gpu
