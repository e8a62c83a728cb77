// Ship - carries messages from rank to rank through shared memory, once the real MPI has matched their records.
//
// Contract: the sender prepare()s a Parcel, has the MPI send its record, and load()s the bytes. The receiver read()s what
//   the MPI gave it, and where that is a record, land()s the bytes, or drop()s them.
// Prices: a message is packed once and unpacked once; unpacking begins when the first chunk is packed.
// Invariants: (1) the sender never waits for its receiver: without a free slot or room prepare() says no, and the message
//   goes as an ordinary one; (2) a receiver waits for a sender that is packing, or fails when that has died; (3) nothing
//   is read but the sender's heap, and never more than the receiver's buffer holds is written.
// Threads: the caller's lock for prepare(), abandon(), read(); load() and land() need none. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "mpi/board.hpp"
#include "mpi/message.hpp"
#include "mpi/settings.hpp"
#include "mpi/staging.hpp"

namespace spinloom::mpi {

struct Parcel {
  Slot* slot = nullptr;
  uint32_t number = 0;
  uint8_t* packed = nullptr;
  [[nodiscard]] const void* record() const { return slot->record; }
};

class Ship {
 public:
  struct Totals {
    uint64_t sent = 0, sent_bytes = 0;
    std::atomic<uint64_t> landed{0}, landed_bytes{0};
    uint64_t refused = 0;  // no slot or no room
  };

  [[nodiscard]] Status begin(const std::string& name, uint32_t rank, uint32_t size, uint32_t local,
                             const Settings& settings);
  void end() { board_.leave(); }

  [[nodiscard]] bool has_news() const { return board_.has_news(); }
  void notice() { board_.notice(); }
  [[nodiscard]] bool can_reach(uint32_t receiver) const { return board_.can_reach(receiver); }

  [[nodiscard]] std::optional<Parcel> prepare(int64_t bytes);
  void load(const Parcel& parcel, const Message& message) const;
  void abandon(const Parcel& parcel);  // no record of it was sent

  // Nothing unless `bytes` is a live record of this job.
  [[nodiscard]] std::optional<Record> read(const void* bytes, int64_t length) const;
  [[nodiscard]] Status land(const Record& record, const Message& into);
  void drop(const Record& record);

  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  struct InUse {
    uint32_t slot;
    Staging::Buffer buffer;
  };
  void take_back();

  Board board_;
  Staging staging_;
  Totals totals_;
  int64_t chunk_bytes_ = 0;
  uint64_t serial_ = 0;
  std::vector<uint32_t> idle_;
  std::vector<InUse> in_use_;  // oldest first
};

}  // namespace spinloom::mpi
