#include "memory/gpu/peer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "memory/gpu/device_state.hpp"

namespace spinloom::gpu {
namespace {

constexpr unsigned ipc_lazy_peer_access = 1;

// Returns this process's id, and above it the namespace of ids: in containers many a process has the id 1.
uint64_t this_process_key() {
  struct stat space{};
  const uint64_t ids = stat("/proc/self/ns/pid", &space) == 0 ? static_cast<uint64_t>(space.st_ino) : 0;
  return ids << 32 | static_cast<uint32_t>(getpid());
}

Status check_not_own(const PeerHandle& handle) {
  if (handle.process != this_process_key()) return {};
  return fail(Code::invalid, "this process exported that memory itself: use its address");
}

}  // namespace

struct PeerMemory::Mapping {
  std::shared_ptr<const Device::State> state;
  Device device;
  PeerHandle handle;
  std::byte* start = nullptr;

  Mapping(Device on, const PeerHandle& of) : device(std::move(on)), handle(of) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (start == nullptr) return;
    const Device::State& here = device.state();
    const ContextGuard guard(*here.driver, here.context);
    (void)here.driver->ipc_close(reinterpret_cast<DeviceAddress>(start));
  }
};

// Mapped allocations, the latest used first.
class PeerCache {
 public:
  using Entry = std::shared_ptr<const PeerMemory::Mapping>;

  static PeerCache& process() {
    static auto* const cache = new PeerCache;  // never destroyed, because the driver may end before
    return *cache;
  }

  Result<Entry> open(const Device& device, const PeerHandle& handle) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry->device == device && entry->handle.handle == handle.handle &&
             entry->handle.process == handle.process;
    });
    if (found != entries_.end() && (*found)->handle.allocation_id != handle.allocation_id) {
      entries_.erase(found);  // a PeerMemory that still holds it stands for memory that was freed
    } else if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return entries_.front();
    }
    for (auto entry = entries_.end(); entries_.size() >= static_cast<size_t>(PeerMemory::open_max);) {
      if (entry == entries_.begin()) break;
      --entry;
      if (entry->use_count() == 1) entry = entries_.erase(entry);
    }
    auto mapping = map(device, handle);
    // The exporter may have freed memory and allocated other memory at its place: then the old mapping is in the way.
    if (!mapping && unmap_unused(handle.process)) mapping = map(device, handle);
    if (!mapping) return mapping.error();
    entries_.push_front(std::move(*mapping));
    return entries_.front();
  }

  static Result<Entry> map(const Device& device, const PeerHandle& handle) {
    const Device::State& state = device.state();
    const ContextGuard guard(*state.driver, state.context);
    SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
    IpcHandle raw{};
    std::memcpy(raw.bytes, handle.handle.data(), sizeof raw.bytes);
    DeviceAddress address = 0;
    auto mapping = std::make_shared<PeerMemory::Mapping>(device, handle);
    SPL_CUDA(*state.driver, state.driver->ipc_open(&address, raw, ipc_lazy_peer_access), "to map memory that process ",
             static_cast<uint32_t>(handle.process), " exported");
    mapping->start = reinterpret_cast<std::byte*>(address);
    return Entry(std::move(mapping));
  }

  void unmap_unused_of(uint64_t process) {
    const std::lock_guard lock(mutex_);
    (void)unmap_unused(process);
  }

 private:
  // Drops the mappings of a process that no PeerMemory holds. False: there were none.
  bool unmap_unused(uint64_t process) {
    return entries_.remove_if(
               [&](const Entry& entry) { return entry->handle.process == process && entry.use_count() == 1; }) > 0;
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
};

// The handles that this process has exported, by the allocations' numbers, so that it rarely asks the driver twice for
// one.
class Exports {
 public:
  static Exports& process() {
    static auto* const exports = new Exports;
    return *exports;
  }

  std::optional<PeerHandle> find(uint64_t allocation_id) {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(allocation_id);
    return found == handles_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(uint64_t allocation_id, const PeerHandle& handle) {
    if (allocation_id == 0) return;
    constexpr size_t kept_max = 1024;
    const std::lock_guard lock(mutex_);
    if (handles_.size() >= kept_max) handles_.clear();
    handles_[allocation_id] = handle;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, PeerHandle> handles_;
};

Result<PeerHandle> export_memory(const void* pointer) {
  SPL_ASSIGN(const Pointer found, inspect(pointer));
  if (found.kind != PointerKind::device) {
    return fail(Code::invalid, "address ", pointer,
                " cannot be given to another process: it is not memory that a device allocated");
  }
  SPL_ASSIGN(const Device device, Device::at(found.ordinal));
  PeerHandle handle;
  if (const auto known = Exports::process().find(found.allocation_id)) {
    handle = *known;
  } else {
    const Device::State& state = device.state();
    const ContextGuard guard(*state.driver, state.context);
    SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
    IpcHandle raw{};
    SPL_CUDA(*state.driver, state.driver->ipc_get(&raw, reinterpret_cast<DeviceAddress>(found.start)),
             "to export the allocation of address ", pointer,
             " (memory of a pool or of the virtual memory calls cannot be exported)");
    handle.process = this_process_key();
    handle.allocation_id = found.allocation_id;
    std::memcpy(handle.handle.data(), raw.bytes, sizeof raw.bytes);
    Exports::process().keep(found.allocation_id, handle);
  }
  handle.offset = reinterpret_cast<uint64_t>(pointer) - reinterpret_cast<uint64_t>(found.start);
  return handle;
}

Result<PeerMemory> PeerMemory::open(const Device& device, const PeerHandle& handle) {
  SPL_TRY(check_not_own(handle));
  SPL_ASSIGN(const std::shared_ptr<const Mapping> mapping, PeerCache::process().open(device, handle));
  return PeerMemory(mapping, mapping->start + handle.offset);
}

Result<PeerMemory> PeerMemory::open_uncached(const Device& device, const PeerHandle& handle) {
  SPL_TRY(check_not_own(handle));
  SPL_ASSIGN(const std::shared_ptr<const Mapping> mapping, PeerCache::map(device, handle));
  return PeerMemory(mapping, mapping->start + handle.offset);
}

void PeerMemory::unmap_unused(uint64_t process) { PeerCache::process().unmap_unused_of(process); }

}  // namespace spinloom::gpu
