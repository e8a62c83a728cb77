// Accesses to windows on the NIC.
#include <algorithm>
#include <cstring>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_wait.hpp"
#include "mpi/abi/rma_window.hpp"

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

int RmaWindow::move(const Buffer& own, const RemoteBuffer& remote, bool is_put) {
  if (remote.target == proc_null) return success;
  const Lock lock;
  Access access;
  if (const int code = find_remote(remote, access); code != success) return code;
  if (const int code = find_own(own, access); code != success) return code;
  ++(is_put ? counts_.puts : counts_.gets);
  counts_.bytes += static_cast<uint64_t>(access.bytes);
  if (access.bytes == 0) return success;
  spl_rma_key* const key = access.part->key;
  if (access.own_blocks.size() == 1 && access.their_blocks.size() == 1) {
    const auto offset = static_cast<uint64_t>(access.their_blocks[0].offset);
    const auto bytes = static_cast<uint64_t>(access.bytes);
    uint8_t* const here = at(own, access.own_blocks[0]);
    const int code = is_put ? nic_.spl_rma_put(key, offset, here, bytes) : nic_.spl_rma_get(key, offset, here, bytes);
    return code == PTL_OK ? success : failed();
  }
  const std::vector<ptl_iovec_t> here = memory_of(own, access.own_blocks);
  const std::vector<spl_rma_piece> pieces = pieces_of(access.their_blocks);
  const int code = is_put ? nic_.spl_rma_put_pieces(key, pieces.data(), pieces.size(), here.data(), here.size())
                          : nic_.spl_rma_get_pieces(key, pieces.data(), pieces.size(), here.data(), here.size());
  return code == PTL_OK ? success : failed();
}

int RmaWindow::accumulate(const Buffer& from, const Buffer* result, const RemoteBuffer& remote, Op op) {
  if (remote.target == proc_null) return success;
  const bool reads_only = op == op_no_op();
  if (reads_only && result == nullptr) return success;
  Access access;
  std::optional<int> code;
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
    code = access.theirs.code ? RmaTypes::op_of(op) : std::nullopt;
    if (code) return change_by_nic(reads_only ? nullptr : &from, result, remote, access, *code);
    ++counts_.updates;
  }
  return change_here(reads_only ? nullptr : &from, result, remote, access, op);
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
    const int code = back == nullptr
                         ? nic_.spl_rma_accumulate(access.part->key, offset, sent, count, op, type)
                         : nic_.spl_rma_get_accumulate(access.part->key, offset, sent, back, count, op, type);
    if (code != PTL_OK) return failed();
    if (sent != nullptr) sent += block.bytes;
    if (back != nullptr) back += block.bytes;
  }
  return success;
}

int RmaWindow::compare_and_swap(const void* value, const void* compare, void* result, const RemoteBuffer& remote) {
  if (remote.target == proc_null) return success;
  Access access;
  {
    const Lock lock;
    if (const int wrong = find_remote(remote, access); wrong != success) return wrong;
    if (!access.theirs.element || access.their_blocks.size() != 1) return error_other;
    ++counts_.fetches;
    counts_.bytes += static_cast<uint64_t>(access.bytes);
    if (access.theirs.code) {
      const auto offset = static_cast<uint64_t>(access.their_blocks[0].offset);
      const int code =
          nic_.spl_rma_compare_and_swap(access.part->key, offset, value, compare, result, *access.theirs.code);
      return code == PTL_OK ? success : failed();
    }
    ++counts_.updates;
  }
  const auto bytes = static_cast<size_t>(access.bytes);
  return update(remote.target, access, [&](std::vector<uint8_t>& packed) {
    std::memcpy(result, packed.data(), bytes);
    if (std::memcmp(packed.data(), compare, bytes) == 0) std::memcpy(packed.data(), value, bytes);
    return success;
  });
}

// The target's word says which rank is changing elements by its own processor: 0 for none, else the rank plus 1.
int RmaWindow::swap_word(int target, uint64_t from, uint64_t to, uint64_t& was) {
  Part& part = parts_[static_cast<size_t>(target)];
  {
    const Lock lock;
    if (nic_.spl_rma_compare_and_swap(part.word, 0, &to, &from, &was, PTL_UINT64_T) != PTL_OK) return failed();
  }
  return wait_for([&](int* done) { return nic_.spl_rma_flush_test(nic_.memory(), part.rank, done); });
}

int RmaWindow::move_packed(int target, const Access& access, uint8_t* packed, bool is_put) {
  {
    const Lock lock;
    const ptl_iovec_t here{packed, static_cast<ptl_size_t>(access.bytes)};
    const std::vector<spl_rma_piece> pieces = pieces_of(access.their_blocks);
    const int code = is_put ? nic_.spl_rma_put_pieces(access.part->key, pieces.data(), pieces.size(), &here, 1)
                            : nic_.spl_rma_get_pieces(access.part->key, pieces.data(), pieces.size(), &here, 1);
    if (code != PTL_OK) return failed();
  }
  return flush_part(target);
}

template <class Change>
int RmaWindow::update(int target, const Access& access, Change change) {
  const auto own = static_cast<uint64_t>(layer.rank) + 1;
  std::vector<uint8_t> packed(static_cast<size_t>(access.bytes));
  uint64_t holder = 1;
  while (holder != 0) {
    if (const int code = swap_word(target, 0, own, holder); code != success) return code;
  }
  int code = move_packed(target, access, packed.data(), false);
  if (code == success) code = change(packed);
  if (code == success) code = move_packed(target, access, packed.data(), true);
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
