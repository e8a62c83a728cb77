#include "app/measure/gpu_move.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "memory/gpu/shim.hpp"

namespace spinloom::app {

namespace {

std::string setting(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  return value == nullptr ? "" : value;
}

}  // namespace

// The moves that find() has made. Their keys are the device, the use of staging, and the blobs, counts and offsets of
// both sides, and a kernel that SPINLOOM_GPU_KERNEL forces. A blob's address identifies it as long as an entry holds
// its side.
class MoveCache {
 public:
  template <class Make>
  Result<GpuMove::Method> get(int device, bool staged, const gpu::Side& from, const gpu::Side& to, const Make& make) {
    const Key key{{device, staged ? 1 : 0, name_of(from), from.count, from.offset, name_of(to), to.count, to.offset},
                  setting("SPINLOOM_GPU_KERNEL")};
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find(entries_, key, &Entry::key);
      if (found != entries_.end()) {
        entries_.splice(entries_.begin(), entries_, found);
        return found->method;
      }
    }
    SPL_ASSIGN(GpuMove::Method method, make());
    std::list<Entry> dropped;  // freed after the lock is released
    const std::lock_guard lock(mutex_);
    entries_.push_front({key, from, to, method});
    if (entries_.size() > moves_kept_max) dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
    return method;
  }

  // Returns the object for all calls. It is never destroyed, because at the end of a process the driver may be gone.
  static MoveCache& all() {
    static auto* const cache = new MoveCache;
    return *cache;
  }

 private:
  using Key = std::pair<std::array<int64_t, 8>, std::string>;
  struct Entry {
    Key key;
    gpu::Side from;
    gpu::Side to;
    GpuMove::Method method;
  };

  static int64_t name_of(const gpu::Side& side) {
    return side.blob ? static_cast<int64_t>(reinterpret_cast<intptr_t>(side.blob->data())) : 0;
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
};

bool emulated() { return setting("SPINLOOM_GPU") == "shim"; }

Result<gpu::Device> device_of(const GpuEnd& end, const char* role) {
  if (!gpu::available())
    return fail(Code::environment, role,
                " lies in the memory of a GPU, which cannot be used here: ", gpu::unavailable_reason());
  SPL_ASSIGN(const gpu::Pointer pointer, gpu::inspect(end.first));
  if (pointer.ordinal < 0) {
    return fail(Code::invalid, role, " is said to be memory of a GPU, but no GPU knows its address ",
                static_cast<const void*>(end.first), ": it is memory of the host, or it was freed");
  }
  const auto* const start = static_cast<const std::byte*>(pointer.start);
  const std::less<> before;
  if (start != nullptr && (before(end.first, start) || before(start + pointer.bytes, end.last))) {
    return fail(Code::invalid, role, " ends behind the memory that was allocated for it: ", end.last - end.first,
                " bytes are needed, ", start + pointer.bytes - end.first, " are left");
  }
  return gpu::Device::at(pointer.ordinal);
}

namespace {

// The device of a message's ends; none where GPUs are emulated. `in_place`: kernels reach both ends.
struct Location {
  std::optional<gpu::Device> device;
  bool in_place = true;
};

Result<Location> locate(const GpuEnd& from, const GpuEnd& to) {
  Location location;
  if (emulated()) return location;
  const GpuEnd& device_end = from.on_device ? from : to;
  const GpuEnd& other_end = from.on_device ? to : from;
  SPL_ASSIGN(location.device, device_of(device_end, from.on_device ? "the source" : "the destination"));
  if (other_end.on_device) {
    SPL_ASSIGN(const gpu::Device other_device, device_of(other_end, from.on_device ? "the destination" : "the source"));
    if (!(other_device == *location.device)) {
      return fail(Code::invalid, "the source and the destination lie in two GPUs, ", location.device->ordinal(),
                  " and ", other_device.ordinal(), "; copy one of them first");
    }
  } else {
    SPL_ASSIGN(const gpu::Pointer pointer, gpu::inspect(other_end.first));
    location.in_place = pointer.kind == gpu::PointerKind::pinned || pointer.kind == gpu::PointerKind::managed;
  }
  return location;
}

}  // namespace

Result<GpuMove> GpuMove::find(const GpuEnd& from, const GpuEnd& to, gpu::Stream stream) {
  SPL_ASSIGN(const Location location, locate(from, to));
  GpuMove move;
  move.ends_ = {{from.base, to.base}};
  move.stream_ = stream;
  move.to_host_ = from.on_device;
  move.waits_for_bytes_ = from.on_device != to.on_device;
  const int ordinal = location.device ? location.device->ordinal() : -1;
  const gpu::Message message{from.side, to.side};
  SPL_ASSIGN(move.method_,
             MoveCache::all().get(ordinal, !location.in_place, from.side, to.side, [&]() -> Result<Method> {
               if (location.in_place) return make_method(location.device, {&message, 1});
               Method method;
               method.staged = from.on_device ? std::make_shared<Areas>(*location.device, from.side, to.side)
                                              : std::make_shared<Areas>(*location.device, to.side, from.side);
               SPL_TRY(Areas::take(method.staged));  // makes the first area, whose Errors are then those of find()
               return method;
             }));
  return move;
}

Result<GpuMove> GpuMove::find_set(const std::optional<gpu::Device>& device, std::span<const gpu::Message> messages,
                                  std::vector<gpu::Ends> ends, gpu::Stream stream) {
  GpuMove move;
  move.ends_ = std::move(ends);
  move.stream_ = stream;
  SPL_ASSIGN(move.method_, make_method(device, messages));
  return move;
}

Result<GpuMove::Method> GpuMove::make_method(const std::optional<gpu::Device>& device,
                                             std::span<const gpu::Message> messages) {
  Method method;
  if (device) {
    SPL_ASSIGN(method.plan, gpu::Plan::make(*device, messages));
  } else {
    SPL_ASSIGN(method.on_host, gpu::Program::make(messages));
  }
  return method;
}

const gpu::Program* GpuMove::program() const {
  if (method_.plan) return &method_.plan->program();
  return method_.on_host ? &*method_.on_host : nullptr;
}

Status GpuMove::run() const {
  if (method_.on_host) return gpu::run_on_host(*method_.on_host, ends_);
  if (method_.staged != nullptr) {
    SPL_ASSIGN(GpuDone done, begin());
    return done.wait();
  }
  SPL_TRY(method_.plan->launch(ends_, stream_));
  return waits_for_bytes_ ? method_.plan->device().synchronise(stream_) : Status{};
}

Result<GpuDone> GpuMove::begin() const {
  GpuDone done;
  if (method_.on_host) {
    SPL_TRY(gpu::run_on_host(*method_.on_host, ends_));
  } else if (method_.staged != nullptr) {
    SPL_ASSIGN(const std::shared_ptr<gpu::Staging> area, Areas::take(method_.staged));
    done.area_ = area;
    const gpu::Ends& ends = ends_.front();
    SPL_ASSIGN(done.staged_, to_host_ ? area->begin_to_host(ends.from, ends.to, stream_)
                                      : area->begin_to_device(ends.from, ends.to, stream_));
  } else {
    SPL_ASSIGN(done.mark_, method_.plan->begin(ends_, stream_));
  }
  return done;
}

Result<std::shared_ptr<gpu::Staging>> GpuMove::Areas::take(const std::shared_ptr<Areas>& areas) {
  std::optional<gpu::Staging> area;
  {
    const std::lock_guard lock(areas->mutex_);
    if (!areas->idle_.empty()) {
      area = std::move(areas->idle_.back());
      areas->idle_.pop_back();
    }
  }
  if (!area) {
    SPL_ASSIGN(area, gpu::Staging::make(areas->device_, areas->on_device_, areas->on_host_));
  }
  return std::shared_ptr<gpu::Staging>(new gpu::Staging(std::move(*area)), [areas](gpu::Staging* used) {
    const std::unique_ptr<gpu::Staging> back(used);
    const std::lock_guard lock(areas->mutex_);
    areas->idle_.push_back(std::move(*back));
  });
}

Result<bool> GpuDone::test() {
  if (mark_) return mark_.is_reached();
  if (!staged_) return true;
  SPL_ASSIGN(const bool is_done, staged_->test());
  if (is_done) {
    staged_.reset();
    area_.reset();
  }
  return is_done;
}

Status GpuDone::wait() {
  if (mark_) return mark_.synchronise();
  if (staged_) SPL_TRY(staged_->wait());
  staged_.reset();
  area_.reset();
  return {};
}

Status GpuDone::hold(gpu::Stream stream) const {
  if (mark_) return mark_.make_wait(stream);
  if (!staged_) return {};
  return fail(Code::unsupported,
              "bytes between host and device are moved by the host, too, so a stream cannot wait for them: "
              "wait() first");
}

}  // namespace spinloom::app
