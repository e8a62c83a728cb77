// A driver for tests: libcuda.so.1 without a GPU. Its device memory is memory that only the driver can touch
//   (memory.hpp), its kernels are the kernels' own source, run by the host.
//
// Contract: the calls of src/memory/gpu/driver.hpp. Work is queued and done when somebody waits, so that who forgets to
//   wait reads old bytes. Copies from and to memory of the host that is not pinned are done at once, as CUDA does. An
//   event that is asked for is reached at the second time; one between processes is reached some time after it was
//   recorded, whether anybody waits or not.
//   FAKE_GPU_OPEN: everybody may touch device memory.
//   FAKE_GPU_DEVICES: how many there are, 1 unless told. FAKE_GPU_BYTES: memory of all of them.
//   FAKE_GPU_NO_IPC: another process's memory cannot be opened. FAKE_GPU_NO_PINNING: memory of the host cannot be
//   pinned where it lies. FAKE_GPU_PINNED_MAX: no allocation of pinned memory may have more bytes.
//   FAKE_GPU_LOST_AFTER: the launch after so many fails, and all that follow.
//   FAKE_GPU_LOG: a file to which the process adds a line when it ends: launches, copies, calls that ask about an
//   address.
// Threads: any; one works at a time. Time: none.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fault.hpp"
#include "memory.hpp"
#include "memory/gpu/kernel_bodies.h"
#include "memory/gpu/kernel_brief.h"

namespace kernel = spinloom::gpu::kernel;

namespace {

enum Answer {
  ok = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialised = 3,
  no_device = 100,
  bad_device = 101,
  invalid_context = 201,
  already_mapped = 208,
  not_found = 500,
  not_ready = 600,
  not_supported = 801,
  launch_failed = 719,
};

struct IpcHandle {
  char bytes[64];
};

std::atomic<bool> is_initialised{false};
std::atomic<int> failed{ok};  // every call says so when a kernel has failed
std::atomic<long> launches{0};
std::atomic<long> copies{0};
std::atomic<long> questions{0};
thread_local void* contexts[16];
thread_local int depth = 0;

constexpr const char* names[] = {"spinloom_word",     "spinloom_warp",  "spinloom_tile",
                                 "spinloom_pieces",   "spinloom_walk",  "spinloom_set",
                                 "spinloom_set_many", "spinloom_words", "spinloom_brief"};
constexpr int first_of_many = 5;
constexpr int many_ends_entry = 6;
constexpr int brief_entry = 8;

void log_at_end() {
  const char* const path = std::getenv("FAKE_GPU_LOG");
  if (path == nullptr) return;
  if (std::FILE* const file = std::fopen(path, "a")) {
    std::fprintf(file, "launches %ld copies %ld questions %ld\n", launches.load(), copies.load(), questions.load());
    std::fclose(file);
  }
}

// The work of all streams in the order in which it was submitted: a stream waits for all others.
class Queue {
 public:
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  void drain() {
    const std::lock_guard lock(mutex_);
    if (work_.empty()) return;
    const fake::Open open;
    while (!work_.empty()) {
      const auto next = std::move(work_.front());
      work_.pop_front();
      if (failed == ok) next();
    }
  }

 private:
  std::recursive_mutex mutex_;
  std::deque<std::function<void()>> work_;
};
Queue& queue() {
  static auto* const made = new Queue;
  return *made;
}

// A flag, in memory of its own where another process may open it.
struct Event {
  std::atomic<bool>* flag = nullptr;
  int file = -1;
  bool is_import = false;

  explicit Event(int shared_file) : file(shared_file) {
    if (file < 0) {
      flag = new std::atomic<bool>(true);
      return;
    }
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) flag = static_cast<std::atomic<bool>*>(memory);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (file < 0) {
      delete flag;
      return;
    }
    if (flag != nullptr) munmap(static_cast<void*>(flag), 4096);
    close(file);
  }
};
using SharedEvent = std::shared_ptr<Event>;
SharedEvent& event_at(void* event) { return *static_cast<SharedEvent*>(event); }

struct EventHandle {
  int32_t process = 0;
  int32_t file = -1;
};

bool has_ipc() { return std::getenv("FAKE_GPU_NO_IPC") == nullptr; }

struct Launch {
  int entry = 0;
  uint32_t blocks = 0;
  kernel::Arguments arguments{};
  kernel::ManyEnds ends{};
  kernel::Part part{};
  kernel::Brief brief{};
};

template <uint32_t kind>
void run_tiles(const Launch& launch) {
  alignas(16) static thread_local kernel::u8 shared[kernel::shared_bytes];
  for (uint32_t tile = 0; tile < launch.blocks; ++tile) {
    const kernel::Part& part = launch.entry < first_of_many ? launch.part : kernel::part_of(launch.arguments, tile);
    const kernel::Ends here = launch.ends.ends[launch.entry == many_ends_entry ? part.ends_index : 0];
    const uint32_t phases = part.kind == kernel::kind_tile ? 2 : 1;
    for (uint32_t phase = 0; phase < phases; ++phase) {
      for (uint32_t thread = 0; thread < kernel::threads; ++thread) {
        kernel::run<kind>(launch.arguments, part, here, tile, thread, phase, shared);
      }
    }
  }
}

void run(const Launch& launch) {
  switch (launch.entry) {
    case 0:
    case 7: run_tiles<kernel::kind_word>(launch); break;
    case 1: run_tiles<kernel::kind_warp>(launch); break;
    case 2: run_tiles<kernel::kind_tile>(launch); break;
    case 3: run_tiles<kernel::kind_pieces>(launch); break;
    case 4: run_tiles<kernel::kind_walk>(launch); break;
    case brief_entry:
      for (uint32_t block = 0; block < launch.blocks; ++block) {
        for (uint32_t thread = 0; thread < kernel::threads; ++thread) {
          kernel::run_brief(launch.brief, launch.arguments.arena, launch.ends.ends[0], block, thread);
        }
      }
      break;
    default: run_tiles<kernel::kinds>(launch); break;
  }
}

// FAKE_GPU_DEVICES: how many there are, 1 unless told.
int devices() {
  const char* const told = std::getenv("FAKE_GPU_DEVICES");
  return told != nullptr ? std::atoi(told) : 1;
}

int primaries[8] = {};  // contexts by their addresses

bool has_context() { return depth > 0 && contexts[depth - 1] != nullptr; }

int ready() {
  if (!is_initialised) return not_initialised;
  if (failed != ok) return failed;
  return has_context() ? ok : invalid_context;
}

int current_device() { return static_cast<int>(static_cast<int*>(contexts[depth - 1]) - primaries); }

bool is_pageable(uint64_t address) { return !fake::Memory::all().find(address); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned flags) {
  if (flags != 0) return invalid_value;
  if (!is_initialised.exchange(true)) {
    std::atexit(&log_at_end);
    fake::tell_faults();
  }
  return ok;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return ok;
}
int cuDeviceGetCount(int* count) {
  *count = devices();
  return is_initialised ? ok : not_initialised;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices() ? ok : bad_device;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "a GPU of the tests");
  return ok;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 16;
  return ok;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= devices()) return bad_device;
  *context = &primaries[device];
  return ok;
}
int cuCtxPushCurrent_v2(void* context) {
  if (depth == 16) return invalid_value;
  contexts[depth++] = context;
  return ok;
}
int cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return invalid_context;
  *context = contexts[--depth];
  return ok;
}
int cuCtxGetCurrent(void** context) {
  *context = has_context() ? contexts[depth - 1] : nullptr;
  return is_initialised ? ok : not_initialised;
}
int cuCtxSetCurrent(void* context) {
  depth = depth == 0 ? 1 : depth;
  contexts[depth - 1] = context;
  return is_initialised ? ok : not_initialised;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* all_bytes) {
  *free_bytes = fake::Memory::all().bytes_left();
  *all_bytes = size_t{8} << 30;
  return ready();
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (const int code = ready(); code != ok) return code;
  *address = fake::Memory::all().device(bytes, current_device());
  return *address != 0 ? ok : out_of_memory;
}
int cuMemFree_v2(uint64_t address) {
  queue().drain();
  return fake::Memory::all().free(address, true) ? ok : invalid_value;
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  if (const int code = ready(); code != ok) return code;
  if (const char* const most = std::getenv("FAKE_GPU_PINNED_MAX"); most != nullptr && bytes > std::stoul(most)) {
    *address = nullptr;
    return out_of_memory;
  }
  *address = reinterpret_cast<void*>(fake::Memory::all().pinned(bytes));
  return *address != nullptr ? ok : out_of_memory;
}
int cuMemFreeHost(void* address) {
  queue().drain();
  return fake::Memory::all().free(reinterpret_cast<uint64_t>(address), false) ? ok : invalid_value;
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void*) {
  if (const int code = ready(); code != ok) return code;
  ++copies;
  queue().put([=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  if (is_pageable(to) || is_pageable(from)) queue().drain();
  return ok;
}
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  const int code = cuMemcpyAsync(to, from, bytes, nullptr);
  queue().drain();
  return code;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return cuMemcpy(to, reinterpret_cast<uint64_t>(from), bytes);
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return cuMemcpy(reinterpret_cast<uint64_t>(to), from, bytes);
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** values, uint64_t address) {
  ++questions;
  if (!is_initialised) return not_initialised;
  const auto found = fake::Memory::all().find(address);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2: *static_cast<unsigned*>(values[i]) = !found ? 0U : found->is_device ? 2U : 1U; break;
      case 7: *static_cast<unsigned long long*>(values[i]) = found ? found->number : 0; break;
      case 8: *static_cast<unsigned*>(values[i]) = 0; break;
      case 9: *static_cast<int*>(values[i]) = found ? found->ordinal : -2; break;
      case 11: *static_cast<uint64_t*>(values[i]) = found ? found->start : 0; break;
      case 12: *static_cast<size_t*>(values[i]) = found ? found->bytes : 0; break;
      default: return invalid_value;
    }
  }
  return ok;
}
int cuStreamSynchronize(void*) {
  if (const int code = ready(); code != ok) return code;
  queue().drain();
  return failed;
}
int cuEventCreate(void** event, unsigned flags) {
  if (const int code = ready(); code != ok) return code;
  int file = -1;
  if ((flags & 4U) != 0) {
    file = memfd_create("fake-event", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 4096) != 0) return out_of_memory;
  }
  auto made = std::make_shared<Event>(file);
  if (made->flag == nullptr) return out_of_memory;
  made->flag->store(true);
  *event = new SharedEvent(std::move(made));
  return ok;
}
int cuEventRecord(void* event, void*) {
  if (event == nullptr) return invalid_value;
  if (const int code = ready(); code != ok) return code;
  const SharedEvent marked = event_at(event);
  marked->flag->store(false);
  queue().put([marked] { marked->flag->store(true); });
  if (marked->file >= 0) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      queue().drain();
    }).detach();
  }
  return ok;
}
int cuEventQuery(void* event) {
  if (event == nullptr) return invalid_value;
  if (const int code = ready(); code != ok) return code;
  if (event_at(event)->flag->load()) return failed;
  if (!event_at(event)->is_import) queue().drain();
  return failed != ok ? failed.load() : static_cast<int>(not_ready);
}
int cuEventSynchronize(void* event) {
  if (event == nullptr) return invalid_value;
  return cuStreamSynchronize(nullptr);
}
int cuStreamWaitEvent(void*, void* event, unsigned) {
  if (event == nullptr) return invalid_value;
  if (const int code = ready(); code != ok) return code;
  const SharedEvent marked = event_at(event);
  if (!marked->is_import) return ok;  // all streams are one
  queue().put([marked] {
    for (int i = 0; i < 100'000 && !marked->flag->load(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  return ok;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<SharedEvent*>(event);
  return ok;
}
int cuIpcGetEventHandle(void* handle, void* event) {
  if (!has_ipc()) return not_supported;
  if (event == nullptr || event_at(event)->file < 0) return invalid_value;
  const EventHandle told{getpid(), event_at(event)->file};
  std::memset(handle, 0, 64);
  std::memcpy(handle, &told, sizeof told);
  return ready();
}
int cuIpcOpenEventHandle(void** event, IpcHandle handle) {
  if (!has_ipc()) return not_supported;
  EventHandle told;
  std::memcpy(&told, handle.bytes, sizeof told);
  const std::string path = "/proc/" + std::to_string(told.process) + "/fd/" + std::to_string(told.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return invalid_value;
  auto made = std::make_shared<Event>(file);
  if (made->flag == nullptr) return out_of_memory;
  made->is_import = true;
  *event = new SharedEvent(std::move(made));
  return ready();
}
int cuDeviceGetUuid(void* uuid, int number) {
  std::memcpy(uuid, "a GPU for tests", 16);
  static_cast<char*>(uuid)[15] = static_cast<char>(number);
  return ok;
}
int cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  if (std::getenv("FAKE_GPU_NO_PINNING") != nullptr) return not_supported;
  if (const int code = ready(); code != ok) return code;
  return fake::Memory::all().pin(reinterpret_cast<uint64_t>(address), bytes) ? ok : invalid_value;
}
int cuMemHostUnregister(void* address) {
  queue().drain();
  return fake::Memory::all().unpin(reinterpret_cast<uint64_t>(address)) ? ok : invalid_value;
}
int cuMemHostGetDevicePointer_v2(uint64_t* address, void* host, unsigned) {
  *address = reinterpret_cast<uint64_t>(host);
  return fake::Memory::all().find(*address) ? ready() : static_cast<int>(invalid_value);
}
int cuModuleLoadData(void** module, const void* image) {
  static int loaded = 0;
  *module = &loaded;
  return image == nullptr ? static_cast<int>(invalid_value) : ready();
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  for (size_t i = 0; i < std::size(names); ++i) {
    if (std::strcmp(names[i], name) != 0) continue;
    *function = reinterpret_cast<void*>(i + 1);
    return ready();
  }
  return not_found;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned, void*, void** parameters, void**) {
  if (const int code = ready(); code != ok) return code;
  if (x == 0 || y * z * block_y * block_z != 1 || block_x != kernel::threads) return invalid_value;
  if (const char* const last = std::getenv("FAKE_GPU_LOST_AFTER"); last != nullptr && launches >= std::atol(last)) {
    failed = launch_failed;
    return ok;  // a kernel's failure comes out later
  }
  ++launches;
  Launch launch;
  launch.entry = static_cast<int>(reinterpret_cast<uintptr_t>(function)) - 1;
  launch.blocks = x;
  launch.arguments = *static_cast<kernel::Arguments*>(parameters[0]);
  const auto arena = fake::Memory::all().find(reinterpret_cast<uint64_t>(launch.arguments.arena));
  if (arena && arena->ordinal != current_device()) return invalid_context;  // the plan is one of another device
  const bool many = launch.entry == many_ends_entry;
  std::memcpy(&launch.ends, parameters[1], many ? sizeof(kernel::ManyEnds) : sizeof(kernel::OneEnds));
  if (launch.entry < first_of_many) launch.part = *static_cast<kernel::Part*>(parameters[2]);
  if (launch.entry == brief_entry) launch.brief = *static_cast<kernel::Brief*>(parameters[2]);
  queue().put([launch] { run(launch); });
  return ok;
}
int cuIpcGetMemHandle(void* handle, uint64_t address) {
  const auto found = fake::Memory::all().handle_of(address);
  if (!found) return invalid_value;
  std::memset(handle, 0, 64);
  std::memcpy(handle, &*found, sizeof *found);
  return ready();
}
int cuIpcOpenMemHandle_v2(uint64_t* address, IpcHandle handle, unsigned) {
  if (!has_ipc()) return not_supported;
  fake::Handle told;
  std::memcpy(&told, handle.bytes, sizeof told);
  if (told.process == getpid()) return invalid_context;
  bool stale = false;
  *address = fake::Memory::all().open(told, stale);
  if (stale) return already_mapped;
  return *address != 0 ? ready() : static_cast<int>(invalid_value);
}
int cuIpcCloseMemHandle(uint64_t address) {
  queue().drain();
  return fake::Memory::all().free(address, true) ? ok : invalid_value;
}
int cuGetErrorName(int result, const char** name) {
  *name = result == out_of_memory   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == launch_failed ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == not_supported ? "CUDA_ERROR_NOT_SUPPORTED"
                                    : "CUDA_ERROR_OF_THE_TESTS";
  return ok;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == out_of_memory   ? "out of memory"
          : result == launch_failed ? "unspecified launch failure"
          : result == not_supported ? "operation not supported"
                                    : "an error";
  return ok;
}

// No call of CUDA: for tests that look at device memory.
void* fake_gpu_window(uint64_t start) { return fake::Memory::all().window(start); }

}  // extern "C"
#pragma GCC visibility pop
