#include "memory/peer/peer_memory.hpp"

#include <algorithm>
#include <utility>

#include "memory/peer/long_copy.hpp"

namespace spinloom::peer {
namespace {

Block block_of(const void* start, uint64_t length) { return {reinterpret_cast<uint64_t>(start), length}; }

Result<uint64_t> common_bytes(Blocks theirs, Blocks ours) {
  const auto their_bytes = bytes_of(theirs);
  const auto our_bytes = bytes_of(ours);
  if (!their_bytes || !our_bytes) return fail(Code::overflow, "a list of more bytes than 64 bits count");
  if (*their_bytes == *our_bytes) return *their_bytes;
  return fail(Code::invalid, "a list of ", *their_bytes, " B of the peer's and one of ", *our_bytes, " B here");
}

}  // namespace

PeerMemory PeerMemory::of_this_process(Reach reach, const std::string& why_not) {
  PeerMemory memory;
  memory.in_this_process_ = reach != Reach::nothing;
  memory.reach_ = reach;
  if (includes(reach, Reach::heap)) memory.heap_description_ = "from its heap one copy (in the same process), else ";
  memory.skip_reading(why_not);
  if (includes(reach, Reach::memory)) memory.kernel_description_ = "one copy (in the same process)";
  return memory;
}

// Reads the known word through the kernel and compares its value.
Status PeerMemory::check_known_word() const {
  uint64_t found = 0;
  const Block theirs{known_word_.address, sizeof found};
  const Block ours = block_of(&found, sizeof found);
  BlockCursor from({&theirs, 1});
  BlockCursor to({&ours, 1});
  SPL_TRY(kernel_read(process_, from, to, sizeof found).status);
  if (found == known_word_.value) return {};
  return fail(Code::environment, "process ", process_.id(),
              " has another value there: it is in another process namespace");
}

Status PeerMemory::try_reading() {
  if (Status found = check_known_word(); !found) {
    skip_reading(found.error().message);
    return found;
  }
  kernel_description_ = "one copy (process_vm_readv)";
  reach_ = reach_ | Reach::memory;
  return {};
}

Status PeerMemory::try_writing() const {
  if (in_this_process_) return {};
  SPL_TRY(check_known_word());
  return write(known_word_.address, reinterpret_cast<const uint8_t*>(&known_word_.value), sizeof known_word_.value);
}

uint8_t* PeerMemory::place_of(uint64_t address, uint64_t length) const {
  auto* const same = reinterpret_cast<uint8_t*>(address);
  if (in_this_process_) return process_heap().contains(same, length) ? same : nullptr;
  return heap_is_writable_ ? heap_.writable_at(address, length) : nullptr;
}

Status PeerMemory::map_heap(const SharedHeap::Location& place, bool writable) {
  auto view = HeapView::map(process_.id(), place, writable);
  heap_is_writable_ = writable && view.ok();
  if (writable && !view) view = HeapView::map(process_.id(), place);
  if (!view) {
    heap_description_ = text("its heap: ", view.error().message, "; else ");
    return view.error();
  }
  heap_description_ = "from its heap one copy (mapped), else ";
  heap_ = std::move(*view);
  reach_ = reach_ | Reach::heap;
  return {};
}

Status PeerMemory::read(uint64_t address, uint8_t* to, uint64_t length) const {
  if (const uint8_t* const local = local_address_of(address, length)) {
    copy_long(to, local, length);
    return {};
  }
  const Block theirs{address, length};
  const Block ours = block_of(to, length);
  return read({&theirs, 1}, {&ours, 1}).status;
}

Status PeerMemory::write(uint64_t address, const uint8_t* from, uint64_t length) const {
  if (in_this_process_) {
    copy_long(reinterpret_cast<uint8_t*>(address), from, length);
    return {};
  }
  const Block theirs{address, length};
  const Block ours = block_of(from, length);
  return write({&theirs, 1}, {&ours, 1}).status;
}

CopyResult PeerMemory::read(Blocks theirs, Blocks ours) const {
  const auto bytes = common_bytes(theirs, ours);
  if (!bytes) return {0, bytes.error()};
  BlockCursor from(theirs);
  BlockCursor to(ours);
  CopyResult total;
  while (total.ok() && total.bytes < *bytes) {
    const uint8_t* const local = local_address_of(from.address(), from.left());
    if (local == nullptr && !includes(reach_, Reach::memory)) {
      total.status = fail(Code::environment, "memory of process ", process_.id(), " that cannot be read");
      break;
    }
    CopyResult step = local != nullptr ? read_local(local, from, to)
                                       : kernel_read(process_, from, to, bytes_before_heap(from, *bytes - total.bytes));
    total.bytes += step.bytes;
    total.status = std::move(step.status);
  }
  return total;
}

// Copies the current block of `theirs`, whose place in this process is `local`.
CopyResult PeerMemory::read_local(const uint8_t* local, BlockCursor& theirs, BlockCursor& ours) const {
  const uint64_t length = theirs.left();
  for (uint64_t done = 0; done < length;) {
    const uint64_t chunk_bytes = std::min(length - done, ours.left());
    copy_long(reinterpret_cast<uint8_t*>(ours.address()), local + done, chunk_bytes);
    done += chunk_bytes;
    ours.skip(chunk_bytes);
  }
  theirs.skip(length);
  return {length, {}};
}

// Returns the bytes of the blocks before the next one that lies as a whole in the mapped heap.
uint64_t PeerMemory::bytes_before_heap(BlockCursor theirs, uint64_t bytes) const {
  if (!includes(reach_, Reach::heap)) return bytes;
  uint64_t outside = 0;
  while (outside < bytes && !is_mapped(theirs.address(), theirs.left())) {
    outside += theirs.left();
    theirs.skip(theirs.left());
  }
  return outside;
}

CopyResult PeerMemory::write(Blocks theirs, Blocks ours) const {
  const auto bytes = common_bytes(theirs, ours);
  if (!bytes) return {0, bytes.error()};
  BlockCursor to(theirs);
  BlockCursor from(ours);
  if (!in_this_process_) return kernel_write(process_, known_word_, to, from, *bytes);
  for (uint64_t done = 0; done < *bytes;) {
    const uint64_t chunk_bytes = std::min(to.left(), from.left());
    copy_long(reinterpret_cast<uint8_t*>(to.address()), reinterpret_cast<const uint8_t*>(from.address()), chunk_bytes);
    to.skip(chunk_bytes);
    from.skip(chunk_bytes);
    done += chunk_bytes;
  }
  return {*bytes, {}};
}

}  // namespace spinloom::peer
