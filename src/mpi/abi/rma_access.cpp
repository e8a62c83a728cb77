// Accesses to windows on one-sided memory of ours.
#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_wait.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/messages/ends.hpp"

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

}  // namespace

int RmaWindow::request_of(int target, Request* request) {
  const Lock lock;
  if (target == proc_null) return follow(std::make_shared<EndedRequest>(), request);
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

// From layout to layout, by this process.
int RmaWindow::copy(const Buffer& own, const RemoteBuffer& remote, uint8_t* memory, bool is_put) {
  FormPointer here, there;
  int64_t bytes = 0;
  const Part& part = parts_[static_cast<size_t>(remote.target)];
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
  }
  int64_t base = 0;
  if (bytes == INT64_MAX || __builtin_mul_overflow(remote.target_disp, part.unit, &base)) return error_rma_range;
  if (bytes == 0) return success;
  if (base < -part.bytes || base > part.bytes) return error_rma_range;
  const auto* const start = reinterpret_cast<const std::byte*>(memory);
  const Message theirs(*there, remote.count, memory + base);
  const std::byte* first = nullptr;
  int64_t length = 0;
  if (!theirs.reach(first, length) || first < start || length > part.bytes || first - start > part.bytes - length)
    return error_rma_range;
  const Message ours(*here, own.count, own.address);
  const CopyEnd from = end_of(is_put ? ours : theirs, is_put ? own.count : remote.count);
  const CopyEnd to = end_of(is_put ? theirs : ours, is_put ? remote.count : own.count);
  return copy_part(from, to, {0, bytes}).ok() ? success : error_other;
}

int RmaWindow::move(const Buffer& own, const RemoteBuffer& remote, bool is_put) {
  if (remote.target == proc_null) return success;
  if (uint8_t* const memory = way_->memory_of(remote.target)) return copy(own, remote, memory, is_put);
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
  Access access;
  std::optional<int> code;
  bool is_here = false;
  {
    const Lock lock;
    if (const int wrong = find_remote(remote, access); wrong != success) return wrong;
    if (result != nullptr) {
      if (const int wrong = find_own(*result, access); wrong != success) return wrong;
    }
    if (!reads_only) {
      if (const int wrong = find_own(from, access); wrong != success) return wrong;
    }
    // If there are no elements, their types may differ.
    if (access.bytes != 0) {
      if (!access.theirs.element) return error_other;
      if (!reads_only && access.own.element != access.theirs.element) return error_other;
    }
    ++(result == nullptr ? counts_.accumulates : counts_.fetches);
    counts_.bytes += static_cast<uint64_t>(access.bytes);
    if (access.bytes == 0) return success;
    is_here = way_->memory_of(remote.target) != nullptr;
    code = !is_here && access.theirs.code ? RmaTypes::op_of(op) : std::nullopt;
    if (code) return change_by_nic(reads_only ? nullptr : &from, result, remote, access, *code);
    if (!is_here) ++counts_.updates;
  }
  const Buffer* const sent = reads_only ? nullptr : &from;
  const Form& element = *access.theirs.element_form;
  const bool is_in_place = is_here && element.is_one_run && element.extent == element.size;
  return is_in_place ? change_in_place(sent, result, remote, access, op)
                     : change_here(sent, result, remote, access, op);
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

template <class Change>
void RmaWindow::change_under_lock(int target, Change change) {
  Spin spin;
  for (;;) {
    {
      const Lock lock;
      if (way_->begin_change(target)) {
        change();
        way_->end_change(target);
        return;
      }
    }
    (void)spin.pause();
  }
}

int RmaWindow::compare_and_swap(const void* value, const void* compare, void* result, const RemoteBuffer& remote) {
  if (remote.target == proc_null) return success;
  Access access;
  uint8_t* memory = nullptr;
  {
    const Lock lock;
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

int RmaWindow::change_in_place(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                               const Access& access, Op op) {
  // The lock is given back after so many bytes: others wait for it.
  constexpr int64_t change_bytes_max = 16 << 10;
  std::vector<uint8_t> packed;
  const uint8_t* sent = nullptr;
  if (from != nullptr && access.own_blocks.size() == 1) {
    sent = at(*from, access.own_blocks[0]);
  } else if (from != nullptr) {
    packed.resize(static_cast<size_t>(access.bytes));
    Message(*access.own.form, from->count, from->address).pack({0, access.bytes}, packed.data());
    sent = packed.data();
  }
  std::vector<uint8_t> fetched;
  uint8_t* back = nullptr;
  FormPointer into;
  if (result != nullptr) {
    const Lock lock;
    into = types_.of(result->type)->form;
  }
  if (into != nullptr && into->is_contiguous(result->count)) {
    back = static_cast<uint8_t*>(result->address) + into->true_lb;
  } else if (into != nullptr) {
    fetched.resize(static_cast<size_t>(access.bytes));
    back = fetched.data();
  }
  const int64_t size = access.theirs.element_form->size;
  const int64_t most = std::max(size, change_bytes_max / size * size);
  uint8_t* const memory = way_->memory_of(remote.target);
  int code = success;
  for (const MemoryBlock& block : access.their_blocks) {
    for (int64_t done = 0; done < block.bytes && code == success; done += most) {
      const int64_t bytes = std::min(most, block.bytes - done);
      uint8_t* const there = memory + block.offset + done;
      change_under_lock(remote.target, [&] {
        if (back != nullptr) std::memcpy(back, there, static_cast<size_t>(bytes));
        if (sent == nullptr) return;
        if (op == op_replace()) {
          std::memcpy(there, sent, static_cast<size_t>(bytes));
        } else {
          code = real.Reduce_local(sent, there, static_cast<int>(bytes / size), *access.theirs.element, op);
        }
      });
      if (sent != nullptr) sent += bytes;
      if (back != nullptr) back += bytes;
    }
  }
  if (!fetched.empty()) Message(*into, result->count, result->address).unpack({0, access.bytes}, fetched.data());
  return code;
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
  while (holder != 0) {
    if (const int code = swap_word(target, 0, own, holder); code != success) return code;
  }
  int code = move_packed(target, access, packed.data(), false);
  if (code == success) code = change(packed);
  if (code == success) code = move_packed(target, access, packed.data(), true);
  if (is_here) {
    const Lock lock;
    way_->end_change(target);
    return code;
  }
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
