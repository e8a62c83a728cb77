// Accesses to windows on one-sided memory of ours.
#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_change.hpp"
#include "mpi/abi/rma_wait.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/messages/ends.hpp"
#include "mpi/moving/combine.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

uint8_t* at(const RmaWindow::Buffer& buffer, const MemoryBlock& block) {
  return static_cast<uint8_t*>(buffer.address) + block.offset;
}

std::vector<ptl_iovec_t> memory_of(const RmaWindow::Buffer& buffer, std::span<const MemoryBlock> blocks) {
  std::vector<ptl_iovec_t> list;
  list.reserve(blocks.size());
  for (const MemoryBlock& block : blocks) list.push_back({at(buffer, block), static_cast<ptl_size_t>(block.bytes)});
  return list;
}

std::vector<spl_rma_piece> pieces_of(std::span<const MemoryBlock> blocks) {
  std::vector<spl_rma_piece> pieces;
  pieces.reserve(blocks.size());
  for (const MemoryBlock& block : blocks) {
    pieces.push_back({static_cast<uint64_t>(block.offset), static_cast<uint64_t>(block.bytes)});
  }
  return pieces;
}

// A request that ends when all accesses of a window to a target have.
class RmaRequest : public CarriedCall {
 public:
  RmaRequest(RmaWindow& window, int target) : window_(window), target_(target) {}
  [[nodiscard]] int begin() override { return success; }
  [[nodiscard]] bool test(int& code) override { return window_.has_ended(target_, code); }
  [[nodiscard]] int wait() override {
    int code = success;
    Spin spin;
    while (!test(code)) (void)spin.pause();
    return code;
  }

 private:
  RmaWindow& window_;
  int target_;
};

// A request that has ended.
class EndedRequest : public CarriedCall {
 public:
  [[nodiscard]] int begin() override { return success; }
  [[nodiscard]] bool test(int& code) override {
    code = success;
    return true;
  }
  [[nodiscard]] int wait() override { return success; }
};

// Returns the type of elements that lie together and are no more than one part; null: they do not, or are too many.
const RmaType* type_of_few(RmaTypes& types, const RmaWindow::RemoteBuffer& remote) {
  if (remote.count <= 0 || remote.count > change_bytes_max) return nullptr;
  const RmaType* const type = types.of(remote.type);
  const bool is_basic = type != nullptr && type->element && *type->element == remote.type;
  if (!is_basic || !type->form->is_one_run || type->form->extent != type->form->size || type->form->true_lb != 0)
    return nullptr;
  return type->form->size * remote.count <= change_bytes_max ? type : nullptr;
}

// Returns where `bytes` of a part of the window lie; null if they do not all lie in it.
uint8_t* place_of_few(const RmaWindow::Part& part, uint8_t* memory, Aint target_disp, int64_t bytes) {
  int64_t offset = 0;
  if (memory == nullptr || __builtin_mul_overflow(target_disp, part.unit, &offset)) return nullptr;
  return offset >= 0 && bytes <= part.bytes && offset <= part.bytes - bytes ? memory + offset : nullptr;
}

bool are_alike(const RmaWindow::Buffer* own, const RmaWindow::RemoteBuffer& remote) {
  return own == nullptr || (own->type == remote.type && own->count == remote.count);
}

}  // namespace

int RmaWindow::request_of(int target, Request* request) {
  const Lock lock;
  if (target == proc_null || is_immediate_) return follow(std::make_shared<EndedRequest>(), request);
  return follow(std::make_shared<RmaRequest>(*this, target), request);
}

// Finds the target's bytes of an access, or returns an error code.
int RmaWindow::find_remote(const RemoteBuffer& remote, Access& access) {
  if (!is_open_to(remote.target)) return error_rma_sync;
  access.part = &parts_[static_cast<size_t>(remote.target)];
  const RmaType* const theirs = types_.of(remote.type);
  if (theirs == nullptr) return error_other;
  access.theirs = *theirs;
  access.bytes = Place::capacity_of(*theirs->form, remote.count);
  int64_t base = 0;
  if (access.bytes == INT64_MAX || __builtin_mul_overflow(remote.target_disp, access.part->unit, &base))
    return error_rma_range;
  access.their_blocks = RmaTypes::blocks_of(*theirs->form, remote.count);
  for (MemoryBlock& block : access.their_blocks) {
    if (__builtin_add_overflow(block.offset, base, &block.offset) || block.offset < 0 ||
        block.offset > access.part->bytes - block.bytes) {
      return error_rma_range;
    }
  }
  return success;
}

int RmaWindow::find_own(const Buffer& own, Access& access) {
  if (own.count == 0 && access.bytes == 0) return success;  // an access without bytes may name any type
  const RmaType* const type = own.count < 0 ? nullptr : types_.of(own.type);
  if (type == nullptr || Place::capacity_of(*type->form, own.count) != access.bytes) return error_other;
  access.own = *type;
  access.own_blocks = RmaTypes::blocks_of(*type->form, own.count);
  return success;
}

int RmaWindow::put(const Buffer& from, const RemoteBuffer& remote) { return move(from, remote, true); }
int RmaWindow::get(const Buffer& to, const RemoteBuffer& remote) { return move(to, remote, false); }

// Returns where the elements of an access begin in this process; null if not all of them lie in the target's part.
uint8_t* RmaWindow::start_of(const RemoteBuffer& remote, const Form& form, uint8_t* memory) const {
  const Part& part = parts_[static_cast<size_t>(remote.target)];
  int64_t base = 0;
  if (__builtin_mul_overflow(remote.target_disp, part.unit, &base) || base < -part.bytes || base > part.bytes)
    return nullptr;
  const auto* const start = reinterpret_cast<const std::byte*>(memory);
  const std::byte* first = nullptr;
  int64_t length = 0;
  const bool is_inside = Message(form, remote.count, memory + base).reach(first, length) && first >= start &&
                         length <= part.bytes && first - start <= part.bytes - length;
  return is_inside ? memory + base : nullptr;
}

// Counts a copy for the report, by the target's type unless only the origin's has gaps.
void RmaWindow::count_copy(const Buffer& own, const RemoteBuffer& remote, const FormPointer& here,
                           const FormPointer& there, bool is_put) const {
  const bool has_gaps_here = !here->is_contiguous(own.count);
  const bool has_gaps_there = !there->is_contiguous(remote.count);
  if (has_gaps_here || has_gaps_there) layer.windows.count_copy();
  if (!layer.tally) return;
  Place place;
  place.count = has_gaps_there || !has_gaps_here ? remote.count : own.count;
  place.form = has_gaps_there || !has_gaps_here ? there : here;
  place.call = is_put ? "MPI_Put" : "MPI_Get";
  layer.count(place, static_cast<int>(parts_[static_cast<size_t>(remote.target)].rank), Way::mapped,
              "one copy by its origin");
}

// From layout to layout, by this process.
int RmaWindow::copy(const Buffer& own, const RemoteBuffer& remote, uint8_t* memory, bool is_put) {
  FormPointer here, there;
  int64_t bytes = 0;
  {
    const Lock lock;
    if (!is_open_to(remote.target)) return error_rma_sync;
    const RmaType* const theirs = types_.of(remote.type);
    if (theirs == nullptr) return error_other;
    there = theirs->form;
    bytes = Place::capacity_of(*there, remote.count);
    if (own.count != 0 || bytes != 0) {  // an access without bytes may name any type
      const RmaType* const type = own.count < 0 ? nullptr : types_.of(own.type);
      if (type == nullptr || Place::capacity_of(*type->form, own.count) != bytes) return error_other;
      here = type->form;
    }
    ++(is_put ? counts_.puts : counts_.gets);
    if (bytes != INT64_MAX) counts_.bytes += static_cast<uint64_t>(bytes);
    if (bytes > 0) count_copy(own, remote, here, there, is_put);
  }
  if (bytes == INT64_MAX) return error_rma_range;
  if (bytes == 0) return success;
  uint8_t* const start = start_of(remote, *there, memory);
  if (start == nullptr) return error_rma_range;
  const Message theirs(*there, remote.count, start);
  const Message ours(*here, own.count, own.address);
  const CopyEnd from = end_of(is_put ? ours : theirs, is_put ? own.count : remote.count);
  const CopyEnd to = end_of(is_put ? theirs : ours, is_put ? remote.count : own.count);
  return copy_part(from, to, {0, bytes}).ok() ? success : error_other;
}

// Copies between two ends of one type and count. False: they are not alike, or something is wrong, and copy() must look
// closer.
bool RmaWindow::move_alike(const Buffer& own, const RemoteBuffer& remote, uint8_t* memory, bool is_put) {
  constexpr int64_t locked_bytes_max = 16 << 10;  // other threads wait meanwhile
  constexpr int64_t listed_bytes_max = 256 << 10;  // longer messages may be written past the caches
  if (own.type != remote.type || own.count != remote.count || own.count <= 0) return false;
  const Lock lock;
  const RmaType* const type = layer.tally || !is_open_to(remote.target) ? nullptr : types_.of(remote.type);
  if (type == nullptr) return false;
  const Form& form = *type->form;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(form.size, own.count, &bytes) || (layer.is_threaded && bytes > locked_bytes_max))
    return false;
  if (form.is_contiguous(own.count)) {
    const Part& part = parts_[static_cast<size_t>(remote.target)];
    int64_t offset = 0;
    if (__builtin_mul_overflow(remote.target_disp, part.unit, &offset) ||
        __builtin_add_overflow(offset, form.true_lb, &offset) || offset < 0 || bytes > part.bytes ||
        offset > part.bytes - bytes) {
      return false;
    }
    uint8_t* const here = static_cast<uint8_t*>(own.address) + form.true_lb;
    std::memcpy(is_put ? memory + offset : here, is_put ? here : memory + offset, static_cast<size_t>(bytes));
  } else {
    uint8_t* const there = bytes == 0 ? nullptr : start_of(remote, form, memory);
    if (there == nullptr) return false;
    if (type->long_blocks != nullptr && bytes <= listed_bytes_max) {
      auto* const here = static_cast<uint8_t*>(own.address);
      for (int64_t i = 0; i < own.count; ++i) {
        for (const MemoryBlock& block : *type->long_blocks) {
          const int64_t offset = i * form.extent + block.offset;
          std::memcpy((is_put ? there : here) + offset, (is_put ? here : there) + offset,
                      static_cast<size_t>(block.bytes));
        }
      }
    } else {
      const CopyEnd theirs = end_of(Message(form, remote.count, there), remote.count);
      const CopyEnd ours = end_of(Message(form, own.count, own.address), own.count);
      if (!copy_part(is_put ? ours : theirs, is_put ? theirs : ours, {0, bytes}).ok()) return false;
    }
    layer.windows.count_copy();
  }
  ++(is_put ? counts_.puts : counts_.gets);
  counts_.bytes += static_cast<uint64_t>(bytes);
  return true;
}

int RmaWindow::move(const Buffer& own, const RemoteBuffer& remote, bool is_put) {
  if (remote.target == proc_null) return success;
  if (uint8_t* const memory = way_->memory_of(remote.target)) {
    if (move_alike(own, remote, memory, is_put)) return success;
    return copy(own, remote, memory, is_put);
  }
  const Lock lock;
  Access access;
  if (const int code = find_remote(remote, access); code != success) return code;
  if (const int code = find_own(own, access); code != success) return code;
  ++(is_put ? counts_.puts : counts_.gets);
  counts_.bytes += static_cast<uint64_t>(access.bytes);
  if (access.bytes == 0) return success;
  const std::vector<ptl_iovec_t> here = memory_of(own, access.own_blocks);
  const std::vector<spl_rma_piece> there = pieces_of(access.their_blocks);
  return way_->move(remote.target, here, there, is_put) == PTL_OK ? success : failed();
}

int RmaWindow::accumulate(const Buffer& from, const Buffer* result, const RemoteBuffer& remote, Op op) {
  if (remote.target == proc_null) return success;
  const bool reads_only = op == op_no_op();
  if (reads_only && result == nullptr) return success;
  const Buffer* const sent = reads_only ? nullptr : &from;
  bool is_here = false;
  Accumulation change;
  {
    const Lock lock;
    const RmaType* const few = are_alike(sent, remote) && are_alike(result, remote) && is_open_to(remote.target)
                                   ? type_of_few(types_, remote)
                                   : nullptr;
    const int64_t few_bytes = few == nullptr ? 0 : few->form->size * remote.count;
    uint8_t* const there = few == nullptr ? nullptr
                                          : place_of_few(parts_[static_cast<size_t>(remote.target)],
                                                         way_->memory_of(remote.target), remote.target_disp, few_bytes);
    // Few elements that lie together are changed at once, unless another rank changes elements there.
    if (there != nullptr && way_->begin_change(remote.target)) {
      const HeldChange held(*way_, remote.target);
      const auto bytes = static_cast<size_t>(few_bytes);
      int code = success;
      if (result != nullptr) std::memcpy(result->address, there, bytes);
      if (sent != nullptr && op == op_replace()) {
        std::memcpy(there, sent->address, bytes);
      } else if (sent != nullptr) {
        const bool are_few = few->code && few_bytes <= combine_bytes_max;
        const std::optional<int> known = are_few ? RmaTypes::op_of(op) : std::nullopt;
        if (!known || !combine(*known, *few->code, sent->address, there, remote.count))
          code = real.Reduce_local(sent->address, there, static_cast<int>(remote.count), remote.type, op);
      }
      ++(result == nullptr ? counts_.accumulates : counts_.fetches);
      counts_.bytes += static_cast<uint64_t>(few_bytes);
      return code;
    }
    if (const int wrong = describe(sent, result, remote, change); wrong != success) return wrong;
    ++(result == nullptr ? counts_.accumulates : counts_.fetches);
    if (change.bytes != INT64_MAX) counts_.bytes += static_cast<uint64_t>(change.bytes);
    if (change.bytes == 0) return success;
    is_here = way_->memory_of(remote.target) != nullptr;
  }
  if (is_here && change.element_form->is_one_run && change.element_form->extent == change.element_form->size)
    return change_in_place(sent, result, remote, change, op);
  Access access;
  {
    const Lock lock;
    if (const int wrong = find_remote(remote, access); wrong != success) return wrong;
    if (result != nullptr) {
      if (const int wrong = find_own(*result, access); wrong != success) return wrong;
    }
    if (sent != nullptr) {
      if (const int wrong = find_own(*sent, access); wrong != success) return wrong;
    }
    const std::optional<int> code = !is_here && access.theirs.code ? RmaTypes::op_of(op) : std::nullopt;
    if (code) return change_by_nic(sent, result, remote, access, *code);
    if (!is_here) ++counts_.updates;
  }
  return change_here(sent, result, remote, access, op);
}

// Finds the types of an accumulating access, or returns an error code. If there are no elements, the types may differ.
int RmaWindow::describe(const Buffer* from, const Buffer* result, const RemoteBuffer& remote, Accumulation& change) {
  if (!is_open_to(remote.target)) return error_rma_sync;
  const RmaType* type = types_.of(remote.type);
  if (type == nullptr) return error_other;
  change.theirs = type->form;
  change.their_blocks = type->long_blocks;
  change.bytes = Place::capacity_of(*type->form, remote.count);
  const std::optional<Datatype> element = type->element;
  const std::optional<ptl_datatype_t> type_code = type->code;
  change.element_form = type->element_form;
  const auto own_form = [&](const Buffer& own, FormPointer& form) {
    if (own.count == 0 && change.bytes == 0) return true;  // an access without bytes may name any type
    const RmaType* const own_type = own.count < 0 ? nullptr : types_.of(own.type);
    if (own_type == nullptr || Place::capacity_of(*own_type->form, own.count) != change.bytes) return false;
    form = own_type->form;
    if (&form == &change.own) change.own_blocks = own_type->long_blocks;
    return &form == &change.into || change.bytes == 0 || own_type->element == element;
  };
  if (result != nullptr && !own_form(*result, change.into)) return error_other;
  if (from != nullptr && !own_form(*from, change.own)) return error_other;
  if (change.bytes != 0 && !element) return error_other;
  if (element) {
    change.element = *element;
    change.code = type_code;
  }
  return success;
}

int RmaWindow::change_by_nic(const Buffer* from, const Buffer* result, const RemoteBuffer& remote, const Access& access,
                             int op) {
  const uint8_t* sent = nullptr;
  if (from != nullptr && access.own_blocks.size() == 1) {
    sent = at(*from, access.own_blocks[0]);
  } else if (from != nullptr) {
    uint8_t* const packed = keep_packed(remote.target, access.bytes);
    Message(*access.own.form, from->count, from->address).pack({0, access.bytes}, packed);
    sent = packed;
  }
  uint8_t* back = nullptr;
  if (result != nullptr) {
    const std::vector<MemoryBlock> blocks = RmaTypes::blocks_of(*types_.of(result->type)->form, result->count);
    back = blocks.size() == 1 ? at(*result, blocks[0]) : keep_packed(remote.target, access.bytes, result);
  }
  const int64_t size = access.theirs.element_form->size;
  for (const MemoryBlock& block : access.their_blocks) {
    const auto offset = static_cast<uint64_t>(block.offset);
    const auto count = static_cast<uint64_t>(block.bytes / size);
    const ptl_datatype_t type = *access.theirs.code;
    if (way_->accumulate(remote.target, offset, sent, back, count, op, type) != PTL_OK) return failed();
    if (sent != nullptr) sent += block.bytes;
    if (back != nullptr) back += block.bytes;
  }
  return success;
}

int RmaWindow::compare_and_swap(const void* value, const void* compare, void* result, const RemoteBuffer& remote) {
  if (remote.target == proc_null) return success;
  Access access;
  uint8_t* memory = nullptr;
  {
    const Lock lock;
    const RmaType* const few = is_open_to(remote.target) ? type_of_few(types_, remote) : nullptr;
    const int64_t size = few == nullptr ? 0 : few->form->size;
    uint8_t* const there = few == nullptr ? nullptr
                                          : place_of_few(parts_[static_cast<size_t>(remote.target)],
                                                         way_->memory_of(remote.target), remote.target_disp, size);
    if (there != nullptr && way_->begin_change(remote.target)) {
      const HeldChange held(*way_, remote.target);
      std::memcpy(result, there, static_cast<size_t>(size));
      if (std::memcmp(result, compare, static_cast<size_t>(size)) == 0)
        std::memcpy(there, value, static_cast<size_t>(size));
      ++counts_.fetches;
      counts_.bytes += static_cast<uint64_t>(size);
      return success;
    }
    if (const int wrong = find_remote(remote, access); wrong != success) return wrong;
    if (!access.theirs.element || access.their_blocks.size() != 1) return error_other;
    ++counts_.fetches;
    counts_.bytes += static_cast<uint64_t>(access.bytes);
    const auto offset = static_cast<uint64_t>(access.their_blocks[0].offset);
    memory = way_->memory_of(remote.target);
    if (memory != nullptr) {
      memory += offset;
    } else if (access.theirs.code) {
      const int code = way_->compare_and_swap(remote.target, offset, value, compare, result, *access.theirs.code);
      return code == PTL_OK ? success : failed();
    } else {
      ++counts_.updates;
    }
  }
  const auto bytes = static_cast<size_t>(access.bytes);
  if (memory != nullptr) {
    change_under_lock(remote.target, [&] {
      std::memcpy(result, memory, bytes);
      if (std::memcmp(result, compare, bytes) == 0) std::memcpy(memory, value, bytes);
    });
    return success;
  }
  return update(remote.target, access, [&](std::vector<uint8_t>& packed) {
    std::memcpy(result, packed.data(), bytes);
    if (std::memcmp(packed.data(), compare, bytes) == 0) std::memcpy(packed.data(), value, bytes);
    return success;
  });
}

// The target's word says which rank is changing elements by its own processor: 0 for none, else the rank plus 1.
int RmaWindow::swap_word(int target, uint64_t from, uint64_t to, uint64_t& was) {
  {
    const Lock lock;
    if (way_->swap_word(target, from, to, was) != PTL_OK) return failed();
  }
  return wait_for([&](int* done) { return way_->flush_test(target, done); });
}

int RmaWindow::move_packed(int target, const Access& access, uint8_t* packed, bool is_put) {
  {
    const Lock lock;
    const std::array here{ptl_iovec_t{packed, static_cast<ptl_size_t>(access.bytes)}};
    if (way_->move(target, here, pieces_of(access.their_blocks), is_put) != PTL_OK) return failed();
  }
  return flush_part(target);
}

template <class Change>
int RmaWindow::update(int target, const Access& access, Change change) {
  const auto own = static_cast<uint64_t>(layer.rank) + 1;
  std::vector<uint8_t> packed(static_cast<size_t>(access.bytes));
  uint64_t holder = 1;
  const bool is_here = way_->memory_of(target) != nullptr;
  Spin spin;
  while (is_here && holder != 0) {
    (void)spin.pause();
    const Lock lock;
    if (way_->begin_change(target)) holder = 0;
  }
  const std::optional<HeldChange> held =
      is_here ? std::optional<HeldChange>(std::in_place, *way_, target) : std::nullopt;
  while (holder != 0) {
    if (const int code = swap_word(target, 0, own, holder); code != success) return code;
  }
  int code = move_packed(target, access, packed.data(), false);
  if (code == success) code = change(packed);
  if (code == success) code = move_packed(target, access, packed.data(), true);
  if (is_here) return code;
  const int freed = swap_word(target, own, 0, holder);
  return code == success ? freed : code;
}

int RmaWindow::change_here(const Buffer* from, const Buffer* result, const RemoteBuffer& remote, const Access& access,
                           Op op) {
  const Form& element = *access.theirs.element_form;
  const int64_t count = access.bytes / element.size;
  const auto spread = [&](const uint8_t* packed) {
    std::vector<uint8_t> elements(static_cast<size_t>(count * element.extent));
    Message(element, count, elements.data()).unpack({0, access.bytes}, packed);
    return elements;
  };
  std::vector<uint8_t> sent(static_cast<size_t>(access.bytes));
  if (from != nullptr) Message(*access.own.form, from->count, from->address).pack({0, access.bytes}, sent.data());
  return update(remote.target, access, [&](std::vector<uint8_t>& packed) {
    if (result != nullptr) {
      const Lock lock;
      Message(*types_.of(result->type)->form, result->count, result->address).unpack({0, access.bytes}, packed.data());
    }
    if (from == nullptr) return success;
    if (op == op_replace()) {
      packed = sent;
      return success;
    }
    std::vector<uint8_t> into = spread(packed.data());
    const std::vector<uint8_t> operands = spread(sent.data());
    constexpr int64_t at_once = 1 << 20;
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t offset = first * element.extent;
      const int code =
          real.Reduce_local(operands.data() + offset, into.data() + offset,
                            static_cast<int>(std::min(at_once, count - first)), *access.theirs.element, op);
      if (code != success) return code;
    }
    Message(element, count, into.data()).pack({0, access.bytes}, packed.data());
    return success;
  });
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
