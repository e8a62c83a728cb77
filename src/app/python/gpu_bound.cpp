#include "app/python/gpu_bound.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "app/python/bindings_support.hpp"
#include "app/python/python_buffer.hpp"
#include "memory/layout/blocks.hpp"

namespace spinloom::app {
namespace {

using Access = PythonBuffer::Access;
using Place = PythonBuffer::Place;

gpu::Stream stream_of(uint64_t handle) {
  return reinterpret_cast<gpu::Stream>(handle);  // NOLINT(performance-no-int-to-ptr): the driver's handle
}

// Bytes [first, last) that a copy reads or writes.
struct ByteRange {
  const std::byte* first;
  const std::byte* last;
  bool written;
};

void add_blocks(std::vector<ByteRange>& ranges, const layout::Committed& layout, int64_t count, const std::byte* base,
                bool written) {
  unwrap(layout::for_each_block(layout.blob(), count, [&](const layout::Piece& block) {
    ranges.push_back({base + block.offset, base + block.offset + block.bytes, written});
    return true;
  }));
}

bool any_overlap(std::vector<ByteRange> ranges) {
  const std::less<> before;
  std::ranges::sort(ranges, before, &ByteRange::first);
  const std::byte* read = nullptr;  // the address behind the last byte read so far
  const std::byte* written = nullptr;
  for (const ByteRange& range : ranges) {
    if (before(range.first, written) || (range.written && before(range.first, read))) return true;
    const std::byte*& end = range.written ? written : read;
    end = std::max(end, range.last, before);
  }
  return false;
}

// The one device of all ends; none where GPUs are emulated.
class CommonDevice {
 public:
  void add(const GpuEnd& end, const char* role, size_t number) {
    if (!end.on_device) {
      throw Raised{fail(Code::invalid, "message ", number,
                        " of the set has an array of the host; all must lie in one GPU's memory")};
    }
    if (emulated()) return;
    const gpu::Device found = unwrap(device_of(end, role));
    if (device_ && !(*device_ == found)) {
      throw Raised{fail(Code::invalid, "the set lies in two GPUs, ", device_->ordinal(), " and ", found.ordinal())};
    }
    device_ = found;
  }
  [[nodiscard]] const std::optional<gpu::Device>& device() const { return device_; }

 private:
  std::optional<gpu::Device> device_;
};

GpuDone begin_or_done(const std::optional<GpuMove>& move) {
  return move ? unwrap(without_lock([&] { return move->begin(); })) : GpuDone();
}

// Throws, with the sentence for a read-only array, unless the array is writable.
void require_writable(nb::handle array, const char* role) {
  PythonBuffer(array, Access::read, role, Place::anywhere).require_writable();
}

}  // namespace

GpuEnd layout_end(nb::handle array, bool written, const char* role, const layout::Committed& layout, int64_t count,
                  int64_t offset, bool as_memory) {
  const PythonBuffer buffer(array, written ? Access::write : Access::read, role, Place::anywhere);
  const layout::oracle::Reach reach = unwrap(layout.reach(count));
  std::byte* const base = buffer.address_of(layout, count, offset, as_memory);
  return {gpu::Side::of(layout.blob(), count),
          base,
          base + reach.first,
          base + reach.last,
          buffer.on_device(),
          buffer.writable()};
}

GpuEnd packed_end(nb::handle packed, bool written, int64_t bytes) {
  const PythonBuffer buffer(packed, written ? Access::write : Access::read, "the packed buffer", Place::anywhere);
  const std::span<std::byte> span = buffer.packed(bytes);
  return {gpu::Side::packed(),       span.data(),        span.data(),
          span.data() + span.size(), buffer.on_device(), buffer.writable()};
}

void check_apart(const GpuEnd& packed, const GpuEnd& array) {
  const std::less<> before;
  if (packed.on_device == array.on_device && before(packed.first, array.last) && before(array.first, packed.last)) {
    throw Raised{fail(Code::invalid, "the packed bytes and the array share memory; use another buffer")};
  }
}

GpuPackPlan::GpuPackPlan(const layout::Committed& layout, nb::object array, nb::object packed, int64_t count,
                         int64_t offset, bool as_memory, uint64_t stream)
    : layout_(layout), count_(count), array_(std::move(array)), packed_(std::move(packed)) {
  const int64_t bytes = unwrap(layout.packed_bytes(count));
  const GpuEnd array_side = layout_end(array_, false, "the array", layout, count, offset, as_memory);
  const GpuEnd packed_side = packed_end(packed_, false, bytes);
  check_apart(packed_side, array_side);
  array_writable_ = array_side.writable;
  packed_writable_ = packed_side.writable;
  if (bytes == 0) return;
  pack_ = unwrap(GpuMove::find(array_side, packed_side, stream_of(stream)));
  unpack_ = unwrap(GpuMove::find(packed_side, array_side, stream_of(stream)));
}

void GpuPackPlan::check_pack() const {
  if (!packed_writable_) require_writable(packed_, "the packed buffer");
}

void GpuPackPlan::check_unpack() const {
  if (!array_writable_) require_writable(array_, "the array");
  if (!layout_.is_receive_checked(count_)) unwrap(layout_.check_receive(count_));
}

void GpuPackPlan::pack() const {
  check_pack();
  if (pack_) unwrap(without_lock([&] { return pack_->run(); }));
}

void GpuPackPlan::unpack() const {
  check_unpack();
  if (unpack_) unwrap(without_lock([&] { return unpack_->run(); }));
}

GpuDone GpuPackPlan::begin_pack() const {
  check_pack();
  return begin_or_done(pack_);
}

GpuDone GpuPackPlan::begin_unpack() const {
  check_unpack();
  return begin_or_done(unpack_);
}

int64_t GpuPackPlan::launch_ns(int64_t calls) const {
  return unwrap(without_lock([&]() -> Result<int64_t> {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls && pack_; ++i) SPL_TRY(pack_->run());
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  }));
}

GpuCopyPlan::GpuCopyPlan(const layout::Committed& from, nb::object source, int64_t count, int64_t offset,
                         const layout::Committed& to, nb::object destination, int64_t to_count, int64_t to_offset,
                         bool as_memory, uint64_t stream)
    : source_(std::move(source)), destination_(std::move(destination)) {
  const GpuEnd read = layout_end(source_, false, "the source", from, count, offset, as_memory);
  const GpuEnd written = layout_end(destination_, true, "the destination", to, to_count, to_offset, as_memory);
  const int64_t bytes = unwrap(from.packed_bytes(count));
  if (const int64_t other = unwrap(to.packed_bytes(to_count)); other != bytes) {
    throw Raised{fail(Code::invalid, "the source holds ", bytes, " bytes of data, the destination ", other)};
  }
  unwrap(to.check_receive(to_count));
  if (bytes > 0) move_ = unwrap(GpuMove::find(read, written, stream_of(stream)));
}

void GpuCopyPlan::copy() const {
  if (move_) unwrap(without_lock([&] { return move_->run(); }));
}

GpuDone GpuCopyPlan::begin_copy() const { return begin_or_done(move_); }

bool bytes_overlap(const layout::Committed& from, int64_t count, const GpuEnd& read, const layout::Committed& to,
                   int64_t to_count, const GpuEnd& written) {
  std::vector<ByteRange> ranges;
  add_blocks(ranges, from, count, read.base, false);
  add_blocks(ranges, to, to_count, written.base, true);
  return any_overlap(std::move(ranges));
}

GpuCopies::GpuCopies(nb::list messages, uint64_t stream) : messages_(std::move(messages)) {
  std::vector<gpu::Message> copies;
  std::vector<gpu::Ends> ends;
  std::vector<ByteRange> touched;
  CommonDevice device;
  for (const nb::handle entry : messages_) {
    const auto message = nb::cast<nb::tuple>(entry);
    const auto& from = nb::cast<const layout::Committed&>(message[0]);
    const auto& to = nb::cast<const layout::Committed&>(message[2]);
    const GpuEnd read = layout_end(message[1], false, "the source", from, 1, 0, false);
    const GpuEnd written = layout_end(message[3], true, "the destination", to, 1, 0, false);
    if (from.type().size() != to.type().size()) {
      throw Raised{fail(Code::invalid, "message ", copies.size(), " of the set: the source holds ", from.type().size(),
                        " bytes of data, the destination ", to.type().size())};
    }
    unwrap(to.check_receive(1));
    if (from.type().size() == 0) continue;
    device.add(read, "the source", copies.size());
    device.add(written, "the destination", copies.size());
    add_blocks(touched, from, 1, read.base, false);
    add_blocks(touched, to, 1, written.base, true);
    gpu::Message copy{read.side, written.side};
    copy.ends_index = static_cast<uint32_t>(copies.size());
    copies.push_back(std::move(copy));
    ends.push_back({read.base, written.base});
  }
  if (any_overlap(std::move(touched))) {
    throw Raised{
        fail(Code::invalid, "the set writes bytes that it reads or writes elsewhere; copy one after the other")};
  }
  if (!copies.empty()) {
    move_ = unwrap(GpuMove::find_set(device.device(), copies, std::move(ends), stream_of(stream)));
  }
}

void GpuCopies::copy() const {
  if (move_) unwrap(without_lock([&] { return move_->run(); }));
}

GpuDone GpuCopies::begin_copy() const { return begin_or_done(move_); }

GpuSet::GpuSet(nb::list messages, uint64_t stream) : messages_(std::move(messages)) {
  std::vector<gpu::Message> packing;
  std::vector<gpu::Message> unpacking;
  std::vector<gpu::Ends> to_packed;
  std::vector<gpu::Ends> from_packed;
  CommonDevice device;
  for (const nb::handle entry : messages_) {
    const auto message = nb::cast<nb::tuple>(entry);
    const auto& layout = nb::cast<const layout::Committed&>(message[0]);
    const auto count = nb::cast<int64_t>(message[3]);
    const int64_t bytes = unwrap(layout.packed_bytes(count));
    const GpuEnd array_side =
        layout_end(message[1], false, "the array", layout, count, nb::cast<int64_t>(message[4]), false);
    const GpuEnd packed_side = packed_end(message[2], true, bytes);
    check_apart(packed_side, array_side);
    if (!array_side.writable) read_only_ = nb::borrow(message[1]);
    if (!unpack_error_) {
      if (const Status received = layout.check_receive(count); !received) unpack_error_ = received.error();
    }
    if (bytes == 0) continue;
    device.add(array_side, "the array", packing.size());
    device.add(packed_side, "the packed buffer", packing.size());
    const auto ends = static_cast<uint32_t>(packing.size());
    packing.push_back({array_side.side, packed_side.side, ends});
    unpacking.push_back({packed_side.side, array_side.side, ends});
    to_packed.push_back({array_side.base, packed_side.base});
    from_packed.push_back({packed_side.base, array_side.base});
  }
  if (packing.empty()) return;
  pack_ = unwrap(GpuMove::find_set(device.device(), packing, std::move(to_packed), stream_of(stream)));
  unpack_ = unwrap(GpuMove::find_set(device.device(), unpacking, std::move(from_packed), stream_of(stream)));
}

void GpuSet::pack() const {
  if (pack_) unwrap(without_lock([&] { return pack_->run(); }));
}

GpuDone GpuSet::begin_pack() const { return begin_or_done(pack_); }

GpuDone GpuSet::begin_unpack() const {
  check_unpack();
  return begin_or_done(unpack_);
}

void GpuSet::check_unpack() const {
  if (unpack_error_) throw Raised{*unpack_error_};
  if (read_only_.is_valid()) require_writable(read_only_, "the array");
}

void GpuSet::unpack() const {
  check_unpack();
  if (unpack_) unwrap(without_lock([&] { return unpack_->run(); }));
}

}  // namespace spinloom::app
