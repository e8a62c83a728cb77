// CopyPipeline - carries messages from rank to rank through shared memory, once the real MPI has matched their records.
//
// Contract: the sender prepare()s a PendingSend, has the MPI send its record, and load()s the bytes. Or it offer()s the
//   message where it lies, and waits until the receiver has taken it (is_done()). A sender that will not wait any more
//   calls withdraw(): if the receiver has not begun, the sender load()s the bytes after all. It does so, too, when the
//   receiver could not read an offer (is_returned()). While the receiver copies, a sender that has nothing else to do
//   may help(). A message in a device's memory is offered in the same way, if its receiver is known to map that memory.
//   The receiver calls read() on the bytes that the MPI gave it. If they are a record, it land()s the message's bytes,
//   or drop()s them.
//   A message to the rank itself is offered where it lies, whatever memory that is, and copied from layout to layout.
// Prices: a prepared message is packed once and unpacked once; unpacking begins when the first chunk is packed. An
//   offered one is copied once, by the receiver: from the sender's heap, or by system calls (cma.hpp). Where it is
//   long, and its place can be mapped as well, both ends copy it (joint.hpp).
// Invariants: (1) the sender need not wait for its receiver: without a free slot or room prepare() and offer() return
//   nothing, and the message goes as an ordinary one; offer() keeps the room that load() may need; (2) a receiver waits
//   for a sender that packs, and calls idle() meanwhile, or fails when the sender has died. It waits for a sender that
//   has offered only if it could not read the offer, or if the sender helps and has not finished its part. (3) The
//   receiver reads only memory that the sender has offered, and never writes more than its own buffer holds.
// Threads: the caller's lock for prepare(), offer(), abandon(), read(); load() and land() need none. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "mpi/device/device_end.hpp"
#include "mpi/device/device_peers.hpp"
#include "mpi/meeting/board.hpp"
#include "mpi/messages/message.hpp"
#include "mpi/messages/peer_layouts.hpp"
#include "mpi/messages/settings.hpp"
#include "mpi/moving/staging.hpp"

namespace spinloom::mpi {

struct PendingSend {
  Slot* slot = nullptr;
  uint32_t slot_number = 0;
  uint64_t serial = 0;
  uint8_t* packed = nullptr;
  bool is_offered = false;
  uint32_t receiver = 0;  // the receiver's rank in MPI_COMM_WORLD
  [[nodiscard]] const void* record() const { return slot->record; }
};

class CopyPipeline {
 public:
  struct Totals {
    uint64_t sent = 0, sent_bytes = 0;
    std::atomic<uint64_t> landed{0}, landed_bytes{0};
    uint64_t refused = 0;  // messages without a slot or room
    uint64_t offered = 0, withdrawn = 0;  // `withdrawn` includes returned ones
    uint64_t within = 0, within_bytes = 0;  // sent messages to this rank itself
    std::atomic<uint64_t> helped{0};  // parts that the sender has copied
  };

  [[nodiscard]] Status begin(const std::string& name, uint32_t rank, uint32_t size, uint32_t local_ranks,
                             const Settings& settings);
  void end() { board_.leave(); }

  [[nodiscard]] bool has_news() const { return board_.has_news(); }
  void notice() { board_.notice(); }
  void settle() { board_.settle(); }  // see Board
  [[nodiscard]] bool can_reach(uint32_t receiver) const { return board_.can_reach(receiver); }
  [[nodiscard]] const Board& board() const { return board_; }
  [[nodiscard]] bool can_read(uint32_t receiver) const { return board_.can_read(receiver); }

  [[nodiscard]] std::optional<PendingSend> prepare(int64_t bytes) { return prepare(bytes, true); }
  // True if peers can read all memory that the message may touch.
  [[nodiscard]] static bool is_mapped(const Message& message);
  // The side that copies, and its means. The message must be mapped, except for cma and for within (this rank itself
  // receives it).
  enum class CopyMode : uint8_t { receiver, both, cma, within };
  [[nodiscard]] std::optional<PendingSend> offer(const Message& message, CopyMode mode = CopyMode::receiver);
  // Returns the offer that a receiver gets; nothing if there is no room for the layout.
  [[nodiscard]] static std::optional<Offer> offer_of(const Message& message, CopyMode mode = CopyMode::receiver);
  // The place of a sender's message, by addresses of this process. fetch() looks it up again only for another offer.
  struct Source {
    Offer offer{};
    BlobPointer blob;  // keeps the layout
    CopyEnd end;
  };
  [[nodiscard]] Status fetch(uint32_t sender, const Offer& offer, int64_t bytes, const Message& into, Source& source);
  // Offers a message where it lies in a device's memory, if the receiver is known to map that memory (devices()) and
  // all writes to it have ended. Returns nothing if the message must go another way; `why` then gives the reason.
  [[nodiscard]] std::optional<PendingSend> offer(const DeviceEnd& end, bool waits, const char*& why);
  [[nodiscard]] DevicePeers& devices() { return devices_; }
  [[nodiscard]] const DevicePeers& devices() const { return devices_; }
  // Puts a layout where peers can read it. Returns false if there is no room.
  [[nodiscard]] static bool publish(const Form& form);
  // Reads the layout that `sender` has published, if this rank can.
  void learn(uint32_t sender, const Offer& offer) { (void)layout_of(sender, offer); }
  [[nodiscard]] static bool is_done(const PendingSend& pending);
  // True, once, if the receiver could not read the message and waits until it is packed.
  [[nodiscard]] static bool is_returned(const PendingSend& pending);
  // Copies parts of a message that the receiver is copying, if any are left.
  void help(const PendingSend& pending, const Message& message);
  // Takes an offer back. False: the receiver has begun, and is_done() or is_returned() will become true.
  [[nodiscard]] static bool withdraw(const PendingSend& pending);
  // Tells the receiver that the sender cannot pack the message either.
  static void give_up(const PendingSend& pending) {
    pending.slot->stage.store(Stage::broken, std::memory_order_release);
  }
  void load(const PendingSend& pending, const Message& message) const;
  void abandon(const PendingSend& pending);  // gives up a message whose record was not sent

  // Returns the record in `bytes`; nothing unless it is a live record of this job.
  [[nodiscard]] std::optional<Record> read(const void* bytes, int64_t length) const;
  // `end`: the buffer of a device for which `into` stands, if any. Bytes that come from a peer's device are put in
  // place there, where they fill whole elements.
  [[nodiscard]] Status land(const Record& record, const Message& into, void (*idle)() = nullptr,
                            DeviceEnd* end = nullptr);
  // Ends a message whose bytes nobody wants. Waits for a sender that packs, as land() does.
  void drop(const Record& record, void (*idle)() = nullptr);

  void count_withdrawn() { ++totals_.withdrawn; }
  void count_within(int64_t bytes) {
    ++totals_.within;
    totals_.within_bytes += static_cast<uint64_t>(bytes);
  }
  // Counts a message that needed no record.
  void count_copied(int64_t bytes) {
    const auto all = static_cast<uint64_t>(bytes);
    ++totals_.sent;
    totals_.sent_bytes += all;
    totals_.landed.fetch_add(1, std::memory_order_relaxed);
    totals_.landed_bytes.fetch_add(all, std::memory_order_relaxed);
    count_within(bytes);
  }
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  struct SlotInUse {
    uint32_t slot;
    Staging::Buffer buffer;
  };
  [[nodiscard]] std::optional<PendingSend> prepare(int64_t bytes, bool will_pack);
  void reclaim_slots();
  [[nodiscard]] Result<int64_t> wait_until_packed(const Record& record, const Slot& slot, int64_t first,
                                                  void (*idle)()) const;
  [[nodiscard]] Status unload(const Record& record, const Slot& slot, const Message& into, void (*idle)()) const;
  [[nodiscard]] Status pull(const Record& record, const Offer& offer, const Message& into);
  [[nodiscard]] Status pull_from_device(const Record& record, const Slot& slot, const Message& into, DeviceEnd* end,
                                        bool& is_mapped);
  [[nodiscard]] bool can_join(const Record& record, const Message& into) const;
  [[nodiscard]] Status pull_jointly(const Record& record, const CopyEnd& theirs, const Message& into);
  struct PeerEnd {
    BlobPointer blob;  // keeps the layout
    CopyEnd end;
  };
  [[nodiscard]] PeerEnd end_at(uint32_t peer, const Offer& offer, int64_t bytes);
  [[nodiscard]] BlobPointer layout_of(uint32_t sender, const Offer& offer);

  Board board_;
  DevicePeers devices_{board_};
  Staging staging_;
  Totals totals_;
  int64_t chunk_bytes_ = 0;
  uint64_t last_serial_ = 0;
  std::vector<uint32_t> idle_slots_;
  std::vector<SlotInUse> in_use_;  // oldest first
  std::mutex layouts_mutex_;
  PeerLayouts layouts_;
  bool keeps_layouts_ = true;
};

}  // namespace spinloom::mpi
