#include "app/python/bound_plan.hpp"

namespace spinloom::app {
namespace {

using Access = PythonBuffer::Access;

}  // namespace

PackPlan::PackPlan(const layout::Committed& layout, nb::handle array, nb::object packed, int64_t count, int64_t offset,
                   bool as_memory)
    : layout_(layout),
      count_(count),
      bytes_(unwrap(layout.packed_bytes(count))),
      array_(array, Access::read, "the array"),
      packed_(packed, Access::read, "the packed buffer"),
      base_(array_.address_of(layout_, count, offset, as_memory)),
      bytes_packed_(packed_.packed(bytes_)) {
  check_apart(bytes_packed_, base_, layout_, count_);
}

void PackPlan::pack() const {
  packed_.require_writable();
  if (bytes_ < held_bytes_max && layout_.pack_at_once(count_, base_, bytes_packed_.data())) return;
  unwrap(without_lock([this] { return layout_.pack(count_, base_, {0, bytes_}, bytes_packed_); }));
}

void PackPlan::unpack() const {
  array_.require_writable();
  if (bytes_ < held_bytes_max && layout_.unpack_at_once(count_, base_, bytes_packed_.data())) return;
  unwrap(without_lock([this] { return layout_.unpack(count_, base_, {0, bytes_}, bytes_packed_); }));
}

CopyPlan::CopyPlan(const layout::Committed& from, nb::handle source, int64_t count, int64_t offset,
                   const layout::Committed& to, nb::handle destination, int64_t to_count, int64_t to_offset,
                   bool as_memory)
    : from_(from),
      to_(to),
      source_(source, Access::read, "the source"),
      destination_(destination, Access::write, "the destination"),
      read_{&from_, count, source_.address_of(from_, count, offset, as_memory)},
      written_{&to_, to_count, destination_.address_of(to_, to_count, to_offset, as_memory)},
      bytes_(unwrap(from_.packed_bytes(count))) {
  unwrap(to_.check_receive(to_count));
  if (const int64_t destination_bytes = unwrap(to_.packed_bytes(to_count)); destination_bytes != bytes_) {
    throw Raised{fail(Code::invalid, "the source has ", bytes_, " bytes of data, the destination ", destination_bytes,
                      ": they must be equal")};
  }
}

void CopyPlan::copy() const {
  unwrap(bytes_ < held_bytes_max ? layout::copy(read_, written_)
                                 : without_lock([this] { return layout::copy(read_, written_); }));
}

}  // namespace spinloom::app
