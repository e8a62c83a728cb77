#include "mpi/abi/packing.hpp"

#include <stdexcept>

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Limits within which packed bytes are quicker. The table has the times of calls as they are over those of packed
// bytes, between two ranks with Open MPI 4.1 (TCP), MPICH 4.0 (UCX) and 5.0 (OFI), in this order, and our kernels.
//     blocks of      8 KiB in all:        12 KiB:             32 KiB:
//          8 B:      1.3  1.3  1.7        1.5  6.2  3.2       1.9  9.6  4.7
//         24 B:      1.1  1.3  0.8        1.2  2.4  1.5       1.3  3.4  2.0
//         64 B:      1.0  1.3  0.8        1.0  1.2  1.1       1.1  1.7  1.3
//         96 B:      1.0  1.4  0.7        1.0  0.9  0.9       1.0  1.2  1.0
constexpr double mean_block_bytes_max = 64;
constexpr int64_t times_min_bytes = 2;

Message message_of(const PackedSide::Block& block) { return {*block.form, block.count, block.buffer}; }

// A longer side goes as the program has it: the MPI needs no second place for all bytes.
constexpr int64_t side_bytes_max = 64 << 20;

// Memory that earlier calls have left.
struct Shelf {
  static constexpr int64_t bytes_max = 2 * side_bytes_max;
  std::mutex mutex;
  std::vector<std::pair<int64_t, std::unique_ptr<uint8_t[]>>> spare;
  int64_t bytes = 0;
};
Shelf& shelf() {
  static auto& shelf = *new Shelf;
  return shelf;
}

}  // namespace

void Survey::send(int, const void* buffer, int64_t count, Datatype type) {
  if (count == 0) return;
  const Form& form = *layer.types.form(type);
  const int64_t bytes = Place::capacity_of(form, count);
  // The MPI reports wrong arguments.
  const bool is_valid = count > 0 && form.is_known && bytes >= 0 &&
                        reinterpret_cast<int64_t>(buffer) + form.true_lb >= Place::least_address;
  if (!is_valid || __builtin_add_overflow(bytes_, bytes, &bytes_)) is_valid_ = false;
  if (!is_valid_ || bytes == 0) return;
  const bool has_gaps = !form.is_contiguous(count);
  const double block_bytes = form.block_bytes > 0 ? form.block_bytes : static_cast<double>(form.size);
  blocks_ += has_gaps ? static_cast<double>(bytes) / block_bytes : 1;
  has_gaps_ = has_gaps_ || has_gaps;
}

bool Survey::is_quicker_packed(int64_t bytes_max) const {
  return is_valid_ && has_gaps_ && bytes_ / times_min_bytes >= layer.settings.min_bytes &&
         bytes_ <= std::min(bytes_max, side_bytes_max) && static_cast<double>(bytes_) <= blocks_ * mean_block_bytes_max;
}

Scratch::Scratch(int64_t bytes) {
  Shelf& kept = shelf();
  {
    const std::lock_guard lock(kept.mutex);
    const auto found = std::ranges::find_if(kept.spare, [bytes](const auto& memory) { return memory.first >= bytes; });
    if (found != kept.spare.end()) {
      bytes_ = found->first;
      memory_ = std::move(found->second);
      kept.spare.erase(found);
      kept.bytes -= bytes_;
      return;
    }
  }
  memory_ = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(bytes));
  bytes_ = bytes;
}

Scratch::~Scratch() {
  if (!memory_) return;
  Shelf& kept = shelf();
  const std::lock_guard lock(kept.mutex);
  while (!kept.spare.empty() && kept.bytes + bytes_ > Shelf::bytes_max) {
    kept.bytes -= kept.spare.front().first;
    kept.spare.erase(kept.spare.begin());
  }
  kept.bytes += bytes_;
  kept.spare.emplace_back(bytes_, std::move(memory_));
}

void PackedSide::send(int peer, const void* buffer, int64_t count, Datatype type) {
  if (count == 0) return send_nothing();
  const FormPointer& form = layer.types.form(type);
  const int64_t bytes = form->size * count;
  blocks_.push_back({const_cast<void*>(buffer), count, type, form, bytes, bytes_, peer});
  bytes_ += bytes;
}

void PackedSide::pack() const {
  for (const Block& block : blocks_) {
    if (block.bytes > 0) message_of(block).pack({0, block.bytes}, packed_.data() + block.offset);
  }
}

void PackedSide::unpack() const {
  for (const Block& block : blocks_) {
    if (block.bytes > 0) message_of(block).unpack({0, block.bytes}, packed_.data() + block.offset);
  }
}

bool copy_here(const Message& from, const Message& to) {
  if (!from.form().is_known || !to.form().is_known || from.bytes() != to.bytes()) return false;
  return copy_part(end_of(from, from.count()), end_of(to, to.count()), {0, from.bytes()}).ok();
}

std::optional<Packing::Own> Packing::own_of(const Place& from, const Place& to) {
  const bool is_known = from.count > 0 && to.count > 0 && from.form->is_known && to.form->is_known;
  if (!is_known || from.capacity() != to.capacity() || from.capacity() < layer.settings.min_bytes) return {};
  if (from.form->is_contiguous(from.count) && to.form->is_contiguous(to.count)) return {};
  for (const Place* const place : {&from, &to}) {
    if (reinterpret_cast<int64_t>(place->buffer) + place->form->true_lb < Place::least_address) return {};
  }
  return Own{from, to};
}

void Packing::copy_own() const {
  const auto message_of = [](const Place& place) { return Message(*place.form, place.count, place.buffer); };
  if (own_ && !copy_here(message_of(own_->from), message_of(own_->to)))
    throw std::logic_error("a copy to oneself that was found possible");
}

void PackedSide::count(const char* call, Comm comm) const {
  if (!layer.tally) return;
  for (const Block& block : blocks_) {
    if (block.bytes == 0) continue;
    const Place place{block.buffer, block.count, block.type, block.form, comm, call};
    layer.count(place, layer.world_rank(comm, block.peer), Way::packed, "to other machines, of small blocks");
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
