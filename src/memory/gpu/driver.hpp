// Driver - the calls of libcuda.so.1, which the first call finds. For the floor only.
//
// Contract: driver() opens the library, calls cuInit once and returns the table of calls, or an Error that says why
//   there is none; the answer is kept. Nothing is printed. driver_error() makes an Error of a result of the driver:
//   what was tried, what the driver said, and what helps. ContextGuard makes a device's primary context current and
//   puts back what was.
// Threads: any. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::gpu {

using DeviceAddress = unsigned long long;

struct IpcHandle {
  char bytes[64];
};

struct DeviceUuid {
  char bytes[16];  // a UUID
};

// name in the table, name in the library, arguments
#define SPL_DRIVER_CALLS(call)                                                                                        \
  call(init, "cuInit", (unsigned flags)) call(driver_version, "cuDriverGetVersion", (int* version)) call(             \
      device_count, "cuDeviceGetCount", (int* count)) call(device_get, "cuDeviceGet", (int* device, int ordinal))     \
      call(device_name, "cuDeviceGetName", (char* name, int bytes, int device)) call(                                 \
          device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))                          \
          call(primary_retain, "cuDevicePrimaryCtxRetain", (void** context, int device)) call(                        \
              context_push, "cuCtxPushCurrent_v2",                                                                    \
              (void* context)) call(context_pop, "cuCtxPopCurrent_v2",                                                \
                                    (void** context)) call(context_current, "cuCtxGetCurrent", (void** context))      \
              call(memory_info, "cuMemGetInfo_v2", (size_t* free_bytes, size_t* all_bytes)) call(                     \
                  memory_alloc, "cuMemAlloc_v2",                                                                      \
                  (DeviceAddress * address, size_t bytes)) call(memory_free, "cuMemFree_v2", (DeviceAddress address)) \
                  call(pinned_alloc, "cuMemHostAlloc", (void** address, size_t bytes, unsigned flags))                \
                      call(pinned_free, "cuMemFreeHost", (void* address)) call(                                       \
                          copy, "cuMemcpy", (DeviceAddress to, DeviceAddress from, size_t bytes))                     \
                          call(copy_async, "cuMemcpyAsync",                                                           \
                               (DeviceAddress to, DeviceAddress from, size_t bytes,                                   \
                                void* stream)) call(pointer_attributes, "cuPointerGetAttributes",                     \
                                                    (unsigned count, int* attributes, void** values, DeviceAddress))  \
                              call(stream_synchronize, "cuStreamSynchronize", (void* stream)) call(                   \
                                  event_create, "cuEventCreate", (void** event, unsigned flags))                      \
                                  call(event_record, "cuEventRecord", (void* event, void* stream)) call(              \
                                      event_synchronize, "cuEventSynchronize",                                        \
                                      (void* event)) call(event_destroy, "cuEventDestroy_v2", (void* event))          \
                                      call(module_load, "cuModuleLoadData", (void** module, const void* image)) call( \
                                          module_function,                                                            \
                                          "cuModuleGetFunction", (void** function, void* module, const char* name))   \
                                          call(launch, "cuLaunchKernel",                                              \
                                               (void* function, unsigned x, unsigned y, unsigned z, unsigned block_x, \
                                                unsigned block_y, unsigned block_z, unsigned shared_bytes,            \
                                                void* stream, void** arguments, void** extra))                        \
                                              call(ipc_get, "cuIpcGetMemHandle",                                      \
                                                   (IpcHandle * handle, DeviceAddress address))                       \
                                                  call(ipc_open, "cuIpcOpenMemHandle_v2",                             \
                                                       (DeviceAddress * address, IpcHandle handle, unsigned flags))   \
                                                      call(ipc_close, "cuIpcCloseMemHandle", (DeviceAddress address)) \
                                                          call(error_name, "cuGetErrorName",                          \
                                                               (int result, const char** name))                       \
                                                              call(error_string, "cuGetErrorString",                  \
                                                                   (int result, const char** text))

// Further calls, for memory and events between processes and for pinned memory.
#define SPL_DRIVER_PEER_CALLS(call)                                                                              \
  call(device_uuid, "cuDeviceGetUuid", (DeviceUuid * name, int device))                                          \
      call(event_query, "cuEventQuery", (void* event))                                                           \
          call(stream_wait, "cuStreamWaitEvent", (void* stream, void* event, unsigned flags))                    \
              call(ipc_get_event, "cuIpcGetEventHandle", (IpcHandle * handle, void* event))                      \
                  call(ipc_open_event, "cuIpcOpenEventHandle", (void** event, IpcHandle handle))                 \
                      call(host_register, "cuMemHostRegister_v2", (void* address, size_t bytes, unsigned flags)) \
                          call(host_unregister, "cuMemHostUnregister", (void* address))                          \
                              call(host_address, "cuMemHostGetDevicePointer_v2",                                 \
                                   (DeviceAddress * address, void* host, unsigned flags))

struct Driver {
#define SPL_DRIVER_MEMBER(name, symbol, arguments) int(*name) arguments = nullptr;
  SPL_DRIVER_CALLS(SPL_DRIVER_MEMBER)
  SPL_DRIVER_PEER_CALLS(SPL_DRIVER_MEMBER)
#undef SPL_DRIVER_MEMBER
};

// Results of the driver that the code here compares with.
inline constexpr int cuda_invalid_value = 1;
inline constexpr int cuda_out_of_memory = 2;
inline constexpr int cuda_invalid_context = 201;
inline constexpr int cuda_not_ready = 600;

Result<const Driver*> driver();
// Loads the library of this name and finds its calls, but does not call cuInit. driver() uses it; tests name a library
// that is missing.
Result<Driver> load_driver(const char* library);
// Makes the Error for a `result` that is not 0.
Error driver_error(const Driver& driver, int result, std::string_view tried);

class ContextGuard {
 public:
  ContextGuard(const Driver& driver, void* context) : driver_(driver) {
    void* current = nullptr;
    result_ = driver_.context_current(&current);
    if (result_ == 0 && current != context) {
      result_ = driver_.context_push(context);
      pushed_ = result_ == 0;
    }
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  ~ContextGuard() {
    void* ours = nullptr;
    if (pushed_) (void)driver_.context_pop(&ours);
  }
  [[nodiscard]] int result() const { return result_; }

 private:
  const Driver& driver_;
  int result_ = 0;
  bool pushed_ = false;
};

}  // namespace spinloom::gpu

// SPL_CUDA(driver, call, what was tried): returns the Error of a driver call that fails.
#define SPL_CUDA(driver, call, ...)                                                          \
  do {                                                                                       \
    if (const int spl_cuda = (call); spl_cuda != 0) {                                        \
      return ::spinloom::gpu::driver_error(driver, spl_cuda, ::spinloom::text(__VA_ARGS__)); \
    }                                                                                        \
  } while (false)
