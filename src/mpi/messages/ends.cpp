#include "mpi/messages/ends.hpp"

#include <cstring>

#include "memory/layout/copy.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::mpi {

CopyEnd end_of(const Message& message, int64_t count) {
  const Form& form = message.form();
  if (form.is_contiguous(count)) return {nullptr, count, message.buffer() + form.true_lb};
  return {&form.layout->blob(), count, message.buffer()};
}

Status copy_part(const CopyEnd& from, const CopyEnd& to, Range range) {
  const auto [first, last] = range;
  const auto bytes = static_cast<size_t>(last - first);
  if (from.blob != nullptr && to.blob != nullptr) {
    return layout::copy({*from.blob, from.count, from.base}, {*to.blob, to.count, to.base}, first, last);
  }
  if (from.blob != nullptr) {
    return layout::pack(*from.blob, from.count, from.base, first, last, {to.base + first, bytes});
  }
  if (to.blob != nullptr) {
    return layout::unpack(*to.blob, to.count, to.base, first, last, {from.base + first, bytes});
  }
  std::memcpy(to.base + first, from.base + first, bytes);
  return {};
}

}  // namespace spinloom::mpi
