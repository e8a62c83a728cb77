#include "mpi/entry/device_watch.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <string_view>

#include "memory/gpu/device.hpp"
#include "mpi/entry/loaded.hpp"

namespace spinloom::mpi {
namespace {

constexpr const char* driver_name = "libcuda.so.1";

// The driver's numbers of attributes of an address, and of a type of memory.
constexpr int attribute_type = 2;
constexpr int attribute_number = 7;
constexpr int attribute_managed = 8;
constexpr unsigned type_device = 2;

bool lists_driver() {
  bool found = false;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        const std::string_view path = info->dlpi_name;
        const bool is_driver = path.substr(path.rfind('/') + 1).starts_with("libcuda.so");
        *static_cast<bool*>(into) = is_driver;
        return is_driver ? 1 : 0;
      },
      &found);
  return found;
}

}  // namespace

DeviceWatch& DeviceWatch::of_process() {
  static auto* const watch = new DeviceWatch;  // calls come until the very end of the process
  return *watch;
}

bool DeviceWatch::look_for_driver() {
  const uint64_t loaded = load_count();
  if (loaded == loads_seen_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  if (has_driver_) return true;
  if (lists_driver()) {
    void* const driver = dlopen(driver_name, RTLD_LAZY | RTLD_NOLOAD);
    if (driver != nullptr) get_attributes_ = reinterpret_cast<Attributes>(dlsym(driver, "cuPointerGetAttributes"));
  }
  if (get_attributes_ != nullptr) has_driver_.store(true, std::memory_order_release);
  loads_seen_.store(loaded, std::memory_order_relaxed);
  return has_driver_;
}

Result<DeviceWatch::Owner> DeviceWatch::owner(const void* address) {
  if (!has_driver_.load(std::memory_order_acquire) || address == nullptr) return Owner{};
  unsigned type = 0;
  unsigned managed = 0;
  unsigned long long number = 0;
  int attributes[] = {attribute_type, attribute_managed, attribute_number};
  void* values[] = {&type, &managed, &number};
  // A driver that is not initialised has given out no memory; memory that it does not know is the host's.
  if (get_attributes_(3, attributes, values, reinterpret_cast<uintptr_t>(address)) != 0) return Owner{};
  if (type != type_device || managed != 0) return Owner{};
  const std::lock_guard lock(mutex_);
  if (const Owner* const known = owners_.find(number)) return *known;
  SPL_ASSIGN(const gpu::Pointer found, gpu::inspect(address));
  const Owner owner{found.ordinal, static_cast<const std::byte*>(found.start), found.bytes, number};
  constexpr size_t kept_max = 4096;
  if (owners_.size() >= kept_max) owners_ = {};
  owners_.put(number, owner);
  return owner;
}

bool DeviceWatch::is_wanted(const char* setting) {
  const std::string_view value = setting == nullptr ? "" : setting;
  if (value == "on" || value == "host" || value == "off") return value != "off";
  // The last two are the devices of Linux on Windows, and of Tegra.
  for (const char* const device : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvmap"}) {
    if (access(device, F_OK) == 0) return true;
  }
  return lists_driver();
}

}  // namespace spinloom::mpi
