#include "mpi/message.hpp"

#include <cstring>
#include <exception>

#include "layout/copy.hpp"
#include "layout/oracle.hpp"
#include "mpi/record.hpp"

namespace spinloom::mpi {
namespace {

struct Found {
  int64_t bytes;
};

// The first number of packed bytes, from Record::least, at which a basic element ends; 0 if that is beyond
// Record::most, or if there are fewer bytes.
int64_t first_end(const layout::Type& type) {
  int64_t bytes = 0;
  if (type.size() <= 0) return 0;
  const int64_t elements = Record::least / type.size() + 1;
  try {
    layout::oracle::for_each_primitive_of(type, elements, [&](int64_t, int64_t length) {
      bytes += length;
      if (bytes >= Record::least) throw Found{bytes};
    });
  } catch (const Found& found) {
    return found.bytes <= Record::most ? found.bytes : 0;
  }
  return 0;
}

bool is_single(const layout::Blob& blob) {
  if (blob.size() == 0) return false;
  return blob.root_kind() == SPL_LEAF_VECTOR && blob.true_extent() == blob.size();
}

}  // namespace

FormPointer basic_form(int64_t size, int64_t extent) {
  auto form = std::make_shared<Form>();
  form->known = size == extent;
  form->size = size;
  form->extent = extent;
  return form;
}

FormPointer unknown_form(int64_t size) {
  auto form = std::make_shared<Form>();
  form->known = false;
  form->single = false;
  form->size = size;
  return form;
}

FormPointer make_form(const layout::Type& type) {
  auto committed = layout::Committed::commit(type);
  if (!committed) return unknown_form(type.size());
  auto form = std::make_shared<Form>();
  form->size = type.size();
  form->extent = type.extent();
  form->true_lb = type.true_lb();
  form->single = is_single(committed->blob());
  form->record_bytes = first_end(type);
  form->layout = std::move(*committed);
  return form;
}

void Message::pack(Range range, uint8_t* to) const {
  const auto bytes = static_cast<size_t>(range.last - range.first);
  if (form_.contiguous(count_)) {
    std::memcpy(to, base_ + form_.true_lb + range.first, bytes);
    return;
  }
  auto* const packed = reinterpret_cast<std::byte*>(to);
  const layout::Blob& blob = form_.layout->blob();
  if (range.first == 0 && range.last == this->bytes() && layout::pack_at_once(blob, count_, base_, packed)) return;
  const Status done = layout::pack(blob, count_, base_, range.first, range.last, {packed, bytes});
  SPL_ASSERT(done.ok(), done.error().message);
}

void Message::unpack(Range range, const uint8_t* from) const {
  const auto bytes = static_cast<size_t>(range.last - range.first);
  if (form_.contiguous(count_)) {
    std::memcpy(base_ + form_.true_lb + range.first, from, bytes);
    return;
  }
  const auto* const packed = reinterpret_cast<const std::byte*>(from);
  const layout::Blob& blob = form_.layout->blob();
  if (range.first == 0 && range.last == this->bytes() && layout::unpack_at_once(blob, count_, base_, packed)) return;
  const Status done = layout::unpack(blob, count_, base_, range.first, range.last, {packed, bytes});
  SPL_ASSERT(done.ok(), done.error().message);
}

}  // namespace spinloom::mpi
