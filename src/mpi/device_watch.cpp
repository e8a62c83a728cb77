#include "mpi/device_watch.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "gpu/device.hpp"

namespace spinloom::mpi {
namespace {

constexpr const char* driver_name = "libcuda.so.1";

// By the driver's numbers.
constexpr int attribute_type = 2;
constexpr int attribute_number = 7;
constexpr int attribute_managed = 8;
constexpr unsigned type_device = 2;

struct Listed {
  std::string last;  // the library that was loaded last
  bool has_driver = false;
};

Listed list() {
  Listed listed;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        auto& found = *static_cast<Listed*>(into);
        const std::string_view path = info->dlpi_name;
        found.last = path;
        if (path.substr(path.rfind('/') + 1).starts_with("libcuda.so")) found.has_driver = true;
        return 0;
      },
      &listed);
  return listed;
}

}  // namespace

DeviceWatch& DeviceWatch::of_process() {
  static auto* const watch = new DeviceWatch;  // calls come until the very end of the process
  return *watch;
}

bool DeviceWatch::look() {
  const std::lock_guard lock(mutex_);
  if (has_driver_) return true;
  const Listed listed = list();
  if (listed.has_driver) {
    void* const driver = dlopen(driver_name, RTLD_LAZY | RTLD_NOLOAD);
    if (driver != nullptr) attributes_ = reinterpret_cast<Attributes>(dlsym(driver, "cuPointerGetAttributes"));
  }
  if (attributes_ != nullptr) {
    news_.store(&unknown_, std::memory_order_relaxed);
    has_driver_.store(true, std::memory_order_release);
    return true;
  }
  // Libraries that were loaded later come behind this one, which this handle keeps where it is.
  void* const last = dlopen(listed.last.empty() ? nullptr : listed.last.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  const link_map* entry = nullptr;
  if (last != nullptr && dlinfo(last, RTLD_DI_LINKMAP, &entry) == 0 && entry != nullptr) {
    news_.store(reinterpret_cast<void* const volatile*>(&entry->l_next), std::memory_order_relaxed);
  }
  return false;
}

Result<DeviceWatch::Owner> DeviceWatch::owner(const void* address) {
  if (!has_driver_.load(std::memory_order_acquire) || address == nullptr) return Owner{};
  unsigned type = 0;
  unsigned managed = 0;
  unsigned long long number = 0;
  int attributes[] = {attribute_type, attribute_managed, attribute_number};
  void* values[] = {&type, &managed, &number};
  // A driver that nobody has initialised has given out no memory; what it does not know is the host's.
  if (attributes_(3, attributes, values, reinterpret_cast<uintptr_t>(address)) != 0) return Owner{};
  if (type != type_device || managed != 0) return Owner{};
  const std::lock_guard lock(mutex_);
  if (const Owner* const known = owners_.find(number)) return *known;
  SPL_ASSIGN(const gpu::Pointer found, gpu::inspect(address));
  const Owner owner{found.ordinal, static_cast<const std::byte*>(found.start), found.bytes};
  constexpr size_t kept_max = 4096;
  if (owners_.size() >= kept_max) owners_ = {};
  owners_.put(number, owner);
  return owner;
}

bool DeviceWatch::is_wanted(const char* setting) {
  const std::string_view value = setting == nullptr ? "" : setting;
  if (value == "on" || value == "off") return value == "on";
  for (const char* const device : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvmap"}) {  // also Windows' Linux, and Tegra
    if (access(device, F_OK) == 0) return true;
  }
  return list().has_driver;
}

}  // namespace spinloom::mpi
