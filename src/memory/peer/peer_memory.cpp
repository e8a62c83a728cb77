#include "memory/peer/peer_memory.hpp"

#include <algorithm>
#include <utility>

#include "memory/peer/long_copy.hpp"

namespace spinloom::peer {
namespace {

Block block_of(const void* start, uint64_t length) { return {reinterpret_cast<uint64_t>(start), length}; }

Result<uint64_t> common_bytes(Blocks theirs, Blocks ours) {
  const auto there = bytes_of(theirs);
  const auto here = bytes_of(ours);
  if (!there || !here) return fail(Code::overflow, "a list of more bytes than 64 bits count");
  if (*there == *here) return *there;
  return fail(Code::invalid, "a list of ", *there, " B of the peer's and one of ", *here, " B here");
}

}  // namespace

PeerMemory PeerMemory::of_this_process(Reach reach, const std::string& why_not) {
  PeerMemory made;
  made.here_ = reach != Reach::nothing;
  made.reach_ = reach;
  if (includes(reach, Reach::heap)) made.mapped_ = "from its heap one copy (in the same process), else ";
  made.leave_unread(why_not);
  if (includes(reach, Reach::memory)) made.kernel_ = "one copy (in the same process)";
  return made;
}

// Reads the known word through the kernel and compares its value.
Status PeerMemory::find_known() const {
  uint64_t found = 0;
  const Block theirs{known_.address, sizeof found};
  const Block ours = block_of(&found, sizeof found);
  BlockCursor from({&theirs, 1});
  BlockCursor to({&ours, 1});
  SPL_TRY(kernel_read(process_, from, to, sizeof found).status);
  if (found == known_.value) return {};
  return fail(Code::environment, "process ", process_.id(),
              " has another value there: it is in another process namespace");
}

Status PeerMemory::try_reading() {
  if (Status found = find_known(); !found) {
    leave_unread(found.error().message);
    return found;
  }
  kernel_ = "one copy (process_vm_readv)";
  reach_ = reach_ | Reach::memory;
  return {};
}

Status PeerMemory::try_writing() const {
  if (here_) return {};
  SPL_TRY(find_known());
  return write(known_.address, reinterpret_cast<const uint8_t*>(&known_.value), sizeof known_.value);
}

Status PeerMemory::map_heap(const SharedHeap::Place& place) {
  auto view = HeapView::map(process_.id(), place);
  if (!view) {
    mapped_ = text("its heap: ", view.error().message, "; else ");
    return view.error();
  }
  mapped_ = "from its heap one copy (mapped), else ";
  heap_ = std::move(*view);
  reach_ = reach_ | Reach::heap;
  return {};
}

Status PeerMemory::read(uint64_t address, uint8_t* to, uint64_t length) const {
  if (const uint8_t* const here = place_of(address, length)) {
    copy_long(to, here, length);
    return {};
  }
  const Block theirs{address, length};
  const Block ours = block_of(to, length);
  return read({&theirs, 1}, {&ours, 1}).status;
}

Status PeerMemory::write(uint64_t address, const uint8_t* from, uint64_t length) const {
  if (here_) {
    copy_long(reinterpret_cast<uint8_t*>(address), from, length);
    return {};
  }
  const Block theirs{address, length};
  const Block ours = block_of(from, length);
  return write({&theirs, 1}, {&ours, 1}).status;
}

Copied PeerMemory::read(Blocks theirs, Blocks ours) const {
  const auto bytes = common_bytes(theirs, ours);
  if (!bytes) return {0, bytes.error()};
  BlockCursor from(theirs);
  BlockCursor to(ours);
  Copied all;
  while (all.ok() && all.bytes < *bytes) {
    const uint8_t* const here = place_of(from.address(), from.left());
    if (here == nullptr && !includes(reach_, Reach::memory)) {
      all.status = fail(Code::environment, "memory of process ", process_.id(), " that cannot be read");
      break;
    }
    Copied some = here != nullptr ? read_place(here, from, to)
                                  : kernel_read(process_, from, to, outside_heap(from, *bytes - all.bytes));
    all.bytes += some.bytes;
    all.status = std::move(some.status);
  }
  return all;
}

// Copies the current block of `theirs`, whose place in this process is `here`.
Copied PeerMemory::read_place(const uint8_t* here, BlockCursor& theirs, BlockCursor& ours) const {
  const uint64_t length = theirs.left();
  for (uint64_t done = 0; done < length;) {
    const uint64_t now = std::min(length - done, ours.left());
    copy_long(reinterpret_cast<uint8_t*>(ours.address()), here + done, now);
    done += now;
    ours.skip(now);
  }
  theirs.skip(length);
  return {length, {}};
}

// Returns the bytes of the blocks before the next one that lies as a whole in the mapped heap.
uint64_t PeerMemory::outside_heap(BlockCursor theirs, uint64_t bytes) const {
  if (!includes(reach_, Reach::heap)) return bytes;
  uint64_t outside = 0;
  while (outside < bytes && !maps(theirs.address(), theirs.left())) {
    outside += theirs.left();
    theirs.skip(theirs.left());
  }
  return outside;
}

Copied PeerMemory::write(Blocks theirs, Blocks ours) const {
  const auto bytes = common_bytes(theirs, ours);
  if (!bytes) return {0, bytes.error()};
  BlockCursor to(theirs);
  BlockCursor from(ours);
  if (!here_) return kernel_write(process_, known_, to, from, *bytes);
  for (uint64_t done = 0; done < *bytes;) {
    const uint64_t now = std::min(to.left(), from.left());
    copy_long(reinterpret_cast<uint8_t*>(to.address()), reinterpret_cast<const uint8_t*>(from.address()), now);
    to.skip(now);
    from.skip(now);
    done += now;
  }
  return {*bytes, {}};
}

}  // namespace spinloom::peer
