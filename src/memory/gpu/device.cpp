#include "memory/gpu/device.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "memory/gpu/device_state.hpp"

namespace spinloom::gpu {
namespace {

// Attributes of devices and pointers by the driver's numbers.
constexpr int attribute_multiprocessors = 16;
constexpr int attribute_compute_major = 75;
constexpr int attribute_compute_minor = 76;
constexpr int pointer_memory_type = 2;
constexpr int pointer_buffer_id = 7;
constexpr int pointer_managed = 8;
constexpr int pointer_ordinal = 9;
constexpr int pointer_range_start = 11;
constexpr int pointer_range_bytes = 12;
constexpr unsigned memory_host = 1;
constexpr unsigned memory_device = 2;
constexpr unsigned pinned_everywhere = 1 | 2;  // portable, mapped

DeviceAddress address_of(const void* pointer) { return reinterpret_cast<DeviceAddress>(pointer); }

Result<std::shared_ptr<const Device::State>> make_state(const Driver& table, int ordinal) {
  auto state = std::make_shared<Device::State>();
  state->driver = &table;
  state->ordinal = ordinal;
  int device = 0;
  int major = 0;
  int minor = 0;
  char name[256] = {};
  SPL_CUDA(table, table.device_get(&device, ordinal), "to open device ", ordinal);
  SPL_CUDA(table, table.device_name(name, sizeof name, device), "to ask device ", ordinal, " for its name");
  SPL_CUDA(table, table.device_attribute(&major, attribute_compute_major, device), "to ask device ", ordinal);
  SPL_CUDA(table, table.device_attribute(&minor, attribute_compute_minor, device), "to ask device ", ordinal);
  SPL_CUDA(table, table.device_attribute(&state->multiprocessors, attribute_multiprocessors, device), "to ask device ",
           ordinal);
  SPL_CUDA(table, table.driver_version(&state->driver_version), "to ask the driver for its version");
  SPL_CUDA(table, table.primary_retain(&state->context, device), "to use device ", ordinal, " (", name, ")");
  state->name = name;
  state->compute_capability = 10 * major + minor;
  return std::shared_ptr<const Device::State>(std::move(state));
}

}  // namespace

Result<Kernels*> Device::State::kernels() const {
  if (!kernels_) kernels_.emplace(load_kernels(*driver));
  if (!*kernels_) return kernels_->error();
  return &**kernels_;
}

Result<void*> Device::State::kernel(size_t entry) const {
  const std::lock_guard lock(mutex_);
  const ContextGuard guard(*driver, context);
  SPL_CUDA(*driver, guard.result(), "to use device ", ordinal);
  SPL_ASSIGN(Kernels* const loaded, kernels());
  void*& function = loaded->functions[entry];
  if (function == nullptr) {
    SPL_ASSIGN(function, compile_kernel(*driver, compute_capability, entry));
  }
  return function;
}

Result<std::string> Device::State::kernel_origin() const {
  const std::lock_guard lock(mutex_);
  const ContextGuard guard(*driver, context);
  SPL_CUDA(*driver, guard.result(), "to use device ", ordinal);
  SPL_ASSIGN(const Kernels* const loaded, kernels());
  return loaded->origin;
}

bool available() { return Device::count() > 0; }

std::string unavailable_reason() {
  const auto table = driver();
  if (!table) return table.error().message;
  return Device::count() > 0 ? "" : "the GPU driver sees no device: look at CUDA_VISIBLE_DEVICES and at nvidia-smi";
}

Result<Pointer> inspect(const void* pointer) {
  SPL_ASSIGN(const Driver* const table, driver());
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  DeviceAddress start = 0;
  size_t bytes = 0;
  unsigned long long allocation_id = 0;
  int attributes[] = {pointer_memory_type, pointer_managed,     pointer_ordinal,
                      pointer_range_start, pointer_range_bytes, pointer_buffer_id};
  void* values[] = {&type, &managed, &ordinal, &start, &bytes, &allocation_id};
  const int result = table->pointer_attributes(6, attributes, values, address_of(pointer));
  // Memory that the driver does not know is a host pointer; older drivers say so by an error.
  if (result == cuda_invalid_value || (result == 0 && type == 0)) return Pointer{};
  SPL_CUDA(*table, result, "to ask the driver about address ", pointer);
  Pointer found;
  found.kind = managed != 0 ? PointerKind::managed : type == memory_device ? PointerKind::device : PointerKind::pinned;
  if (managed == 0 && type != memory_device && type != memory_host) found.kind = PointerKind::host;
  found.ordinal = ordinal;
  found.start = reinterpret_cast<const void*>(start);
  found.bytes = bytes;
  found.allocation_id = allocation_id;
  return found;
}

int Device::count() {
  static const int devices = [] {
    int count = 0;
    const auto table = gpu::driver();
    return table && (*table)->device_count(&count) == 0 ? count : 0;
  }();
  return devices;
}

Result<Device> Device::at(int ordinal) {
  SPL_ASSIGN(const Driver* const table, gpu::driver());
  if (ordinal < 0 || ordinal >= count()) {
    return fail(Code::invalid, "there is no device ", ordinal, ": the driver has ", count());
  }
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<const State>> states;
  const std::lock_guard lock(mutex);
  auto& state = states[ordinal];
  if (state == nullptr) {
    SPL_ASSIGN(state, make_state(*table, ordinal));
  }
  return Device(state);
}

Result<Device> Device::of(const void* pointer) {
  SPL_ASSIGN(const Pointer found, inspect(pointer));
  if (found.kind == PointerKind::host) {
    return fail(Code::invalid, "address ", pointer,
                " is host memory, or memory of a device that was freed: no device owns it");
  }
  return at(found.ordinal);
}

int Device::ordinal() const { return state_->ordinal; }
const std::string& Device::name() const { return state_->name; }
int Device::compute_capability() const { return state_->compute_capability; }
int Device::multiprocessors() const { return state_->multiprocessors; }
std::string Device::driver_version() const {
  return text(state_->driver_version / 1000, ".", state_->driver_version % 1000 / 10);
}

Result<std::string> Device::kernel_origin() const { return state_->kernel_origin(); }

Result<size_t> Device::bytes_free() const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", ordinal());
  size_t free_bytes = 0;
  size_t all_bytes = 0;
  SPL_CUDA(*state_->driver, state_->driver->memory_info(&free_bytes, &all_bytes), "to ask device ", ordinal(),
           " for its free memory");
  return free_bytes;
}

Status Device::synchronise(Stream stream) const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", ordinal());
  SPL_CUDA(*state_->driver, state_->driver->stream_synchronize(stream), "to wait for a stream of device ", ordinal());
  return {};
}

// ---- memory ----

Result<Memory> Memory::device(const Device& device, size_t bytes) {
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  DeviceAddress address = 0;
  SPL_CUDA(*state.driver, state.driver->memory_alloc(&address, std::max<size_t>(bytes, 1)), "to allocate ", bytes,
           " bytes on device ", state.ordinal);
  Memory memory;
  memory.state_ = device.state_;
  memory.data_ = reinterpret_cast<std::byte*>(address);
  memory.bytes_ = bytes;
  return memory;
}

Result<Memory> Memory::pinned(const Device& device, size_t bytes) {
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  void* address = nullptr;
  SPL_CUDA(*state.driver, state.driver->pinned_alloc(&address, std::max<size_t>(bytes, 1), pinned_everywhere),
           "to allocate ", bytes, " bytes of pinned host memory");
  Memory memory;
  memory.state_ = device.state_;
  memory.data_ = static_cast<std::byte*>(address);
  memory.bytes_ = bytes;
  memory.pinned_ = true;
  return memory;
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  const ContextGuard guard(*state_->driver, state_->context);
  if (pinned_) {
    (void)state_->driver->pinned_free(data_);
  } else {
    (void)state_->driver->memory_free(address_of(data_));
  }
}

void Memory::swap(Memory& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(pinned_, other.pinned_);
}

Status copy_bytes(const Device& device, void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  SPL_CUDA(*state.driver, state.driver->copy_async(address_of(to), address_of(from), bytes, stream), "to copy ", bytes,
           " bytes from ", from, " to ", to);
  return {};
}

}  // namespace spinloom::gpu
