// BounceBuffers - the buffers of one call that lie in a GPU's memory, and the memory that the call gets in their
// place.
//
// Contract: replace() and its like look at a buffer. In place of one in a device's memory the MPI gets packed bytes in
//   pinned memory, or in memory of the same device where the MPI takes that (gpu_aware.hpp); there a buffer without
//   gaps stays what it is. The datatype is replaced, too: the MPI gets as many elements of the same basic types without
//   gaps, so that it cuts the message into elements as the other ranks do. The bytes come as they lie in the buffer,
//   gaps included and under the program's datatype, in three cases: of a datatype that is not known here, of one that
//   the MPI may cut anywhere (gapless_type.hpp), and of operands of reductions. fill() puts what the call reads into
//   the new memory; land() puts what the call has written in place. Both throw Refused where they fail, as replace()
//   does.
// Invariants: (1) a buffer of the host is left alone; (2) each buffer's bytes are moved by one kernel, or one copy
//   where they are contiguous; only partitioned messages are moved part by part. Threads: one for each, but for
//   fill_part() and land_part(). Time: none.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/abi/gpu_aware.hpp"
#include "mpi/device/device_end.hpp"
#include "mpi/entry/device_watch.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

struct Refused {
  Error error;
};

// The message that a call sends; if its buffer is bounced, `type` is the datatype that the MPI gets in its place.
struct Sending {
  int64_t count;
  Datatype type;
  int peer;
  Comm comm;
};

// True if the receiver maps memory of this rank's device `ordinal` and may be offered a message of `bytes` bytes there
// (bounced_offers.cpp).
[[nodiscard]] bool may_offer(const Sending& sending, int64_t bytes, int ordinal);

class BounceBuffers {
 public:
  // Errors go to the handler of the window if there is one, else of the file if there is one, else of `comm`.
  Comm comm = handles().comm_world;
  std::optional<File> file;
  std::optional<Win> window;
  int target = proc_null;  // the target of an access to a window
  void* stand_in = nullptr;  // the address that the MPI gets in place of the one buffer of a call on a file
  std::optional<Sending>
      sending;  // the call's message, if it may be offered where it lies in a device's memory (bounced_offers.cpp)
  BouncedCall call;

  // Replaces the buffer of `count` elements, and its datatype, if it lies in a device's memory.
  template <class Pointer, class N>  // void* or const void*
  void replace(Pointer& buffer, N count, Datatype& type, Use use) {
    void* address = const_cast<void*>(static_cast<const void*>(buffer));
    if (!replace_block(address, static_cast<int64_t>(count), type, use)) return;
    buffer = address;
  }
  // replace() for a buffer that has a block of `count` elements for each of `n` peers.
  template <class Pointer, class N>
  void replace_each(Pointer& buffer, int n, N count, Datatype& type, Use use) {
    replace(buffer, static_cast<int64_t>(n) * static_cast<int64_t>(count), type, use);
  }
  // replace() for a buffer with a list of blocks. They have one type, and displacements in elements; or each has a type
  // of its own, and a displacement in bytes.
  template <class Pointer, class N, class Disp>
  void replace_list(Pointer& buffer, int n, const N* counts, const Disp*& displs, Datatype& type, Use use) {
    const std::vector<Datatype> types(static_cast<size_t>(n < 0 ? 0 : n), type);
    std::vector<Datatype> gapless_types;
    void* address = const_cast<void*>(static_cast<const void*>(buffer));
    if (!replace_blocks(address, n, counts, displs, types.data(), false, gapless_types, use)) return;
    buffer = address;
    if (!gapless_types.empty()) type = gapless_types.front();
  }
  template <class Pointer, class N, class Disp>
  void replace_list(Pointer& buffer, int n, const N* counts, const Disp*& displs, const Datatype*& types, Use use) {
    auto gapless_types = std::make_shared<std::vector<Datatype>>();
    void* address = const_cast<void*>(static_cast<const void*>(buffer));
    if (!replace_blocks(address, n, counts, displs, types, true, *gapless_types, use)) return;
    buffer = address;
    types = gapless_types->data();
    kept_alive_.push_back(std::move(gapless_types));
  }
  // replace() for the operands of a reduction: the MPI must know what they are, so their datatype stays, and so do
  // gaps.
  template <class Pointer>
  void replace_operand(Pointer& buffer, int64_t count, Datatype type, Use use) {
    void* address = const_cast<void*>(static_cast<const void*>(buffer));
    if (replace_as_it_is(address, count, type, use)) buffer = address;
  }
  // Replaces `bytes` bytes at `offset`; the bounce buffer has them at the same offset.
  template <class Pointer>
  void replace_bytes(Pointer& buffer, int64_t offset, int64_t bytes, Use use) {
    void* address = const_cast<void*>(static_cast<const void*>(buffer));
    if (replace_bytes_at(address, offset, bytes, use)) buffer = address;
  }

  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] int ordinal() const { return ends_.front()->ordinal(); }
  // True if all that was bounced went to the MPI as it is: then nothing is left to do when the call has ended.
  [[nodiscard]] bool is_untouched() const {
    return std::ranges::all_of(ends_, [](const auto& end) { return end->is_as_it_is(); });
  }
  // Calls the error handler. Returns the code that the program's call returns.
  [[nodiscard]] int raise(int code) const;
  // Fills all bounce buffers except that of `except`, whose bytes a peer takes.
  void fill(const DeviceEnd* except = nullptr);
  // Puts in place what the call has written: `bytes` bytes, as many as a receive has got; below zero: all.
  void land(int64_t bytes);
  // fill() and land() for one block of a buffer that was bounced as a list; any thread may call them.
  void fill_part(size_t i) const;
  void land_part(size_t i) const;
  // Returns the one bounced buffer that the call reads, if its packed bytes in memory of the host stand for it; null if
  // there are several, or none, or if the bytes are on the device or as they lie.
  [[nodiscard]] DeviceEnd* sent_buffer() const;

 private:
  struct OnDevice;

  [[nodiscard]] static std::optional<OnDevice> on_device(const void* buffer, int64_t count, Datatype type);
  [[nodiscard]] bool replace_block(void*& buffer, int64_t count, Datatype& type, Use use);
  [[nodiscard]] bool replace_as_it_is(void*& buffer, int64_t count, Datatype type, Use use);
  bool replace_as_it_lies(const OnDevice& device_buffer, void*& buffer, int64_t count, Datatype type, Use use);
  [[nodiscard]] bool replace_bytes_at(void*& buffer, int64_t offset, int64_t bytes, Use use);
  void replace_image(int ordinal, void*& buffer, std::vector<DeviceBlock> blocks, Range range, Use use);
  template <class N, class Disp>
  [[nodiscard]] bool replace_blocks(void*& buffer, int n, const N* counts, const Disp*& displs, const Datatype* types,
                                    bool in_bytes, std::vector<Datatype>& gapless_types, Use use);
  using Where = DeviceMoves::Where;
  // Makes the bounce buffer of `buffer` and returns its address.
  [[nodiscard]] std::byte* add(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, int64_t room_bytes, Use use,
                               Where where = Where::host);
  void add_as_it_is(int ordinal, void* buffer, Use use);
  // True if the MPI takes memory of a device in this call. This is found out once, when a buffer lies in such memory.
  [[nodiscard]] bool takes_device_memory();

  // Returns the datatype without gaps that the MPI gets instead; nothing if it must get the bytes as they lie.
  [[nodiscard]] std::optional<Datatype> without_gaps(Datatype type, const FormPointer& form, Use use);

  std::vector<std::shared_ptr<DeviceEnd>> ends_;
  std::optional<bool> takes_device_memory_;
  std::vector<std::shared_ptr<const void>> kept_alive_;  // objects that the MPI reads until the call has ended
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
