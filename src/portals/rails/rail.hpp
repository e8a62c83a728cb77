// Rail - one NIC of a process as a way for messages: its operations, its speed, and the ranks that it has lost.
//
// Contract: open() takes the rail's three portal table entries (message_bits.hpp) and its event queue. tell() sends a
//   word; for other messages, and for memory under keys, callers use interface(). Events report the end of operations;
//   their user pointers are the caller's. begin_transfer(), end_transfer() and fail_transfer() keep account of
//   transfers, from which the rail learns its speed.
// Invariants: (1) loads_of() leaves out a rail that has lost the peer until the peer is back, and one that stalls until
//   it goes on, unless all of them stall; (2) a counter that take_counter() gives has counted `base` so far, and
//   nothing waits for it; (3) speed is learnt while the rail is busy, from `learn_from_bytes` at a time.
// Source: the rail interface of MPC (deliverable D4.7, section 2.2.3.2, listings 1 and 2).
// Threads: the owner of the Interface. Time: that of its port.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portals/interface/interface.hpp"
#include "portals/rails/message_bits.hpp"
#include "portals/rails/plan.hpp"

namespace spinloom::rails {

// The properties of a rail, as its driver reports them.
struct RailFacts {
  std::string name;  // shown to people, never compared
  Rate byte_time{100, 1};  // used until the rail has learnt its speed; by default 10 GB/s
  std::vector<bool> reaches;  // one for each rank: the rail reaches it; empty: all
};

struct RailPortals {
  nic::PortalIndex tags;
  nic::PortalIndex words;
  nic::PortalIndex keys;
};

// A counter and what it has counted so far.
struct RailCounter {
  nic::CounterId id;
  uint64_t base = 0;
};

class Rail {
 public:
  struct Options {
    RailFacts facts;
    RailPortals portals;
    uint32_t ranks = 1;
    std::function<void()> spend_call_time;  // spends the time of a call to the NIC
  };
  [[nodiscard]] static Result<std::unique_ptr<Rail>> open(portals::Interface& interface, Options options);
  Status close();

  [[nodiscard]] const RailFacts& facts() const { return options_.facts; }
  [[nodiscard]] const RailPortals& portals() const { return options_.portals; }
  [[nodiscard]] portals::Interface& interface() { return interface_; }
  [[nodiscard]] nic::QueueId queue() const { return queue_; }
  [[nodiscard]] std::optional<nic::Event> take_event() { return interface_.eq_get(queue_); }
  void spend_call_time() const {
    if (options_.spend_call_time) options_.spend_call_time();
  }

  // Sends a rank a word. Only a failure makes an event, with `user_ptr`.
  [[nodiscard]] Status tell(uint32_t rank, uint64_t match_bits, uint64_t word, uint64_t user_ptr);

  [[nodiscard]] bool reaches(uint32_t rank) const { return reaches_[rank]; }
  void lose(uint32_t rank) { reaches_[rank] = false; }
  void regain(uint32_t rank) { reaches_[rank] = true; }

  // Transfers on this rail, for its account of speed and load.
  void begin_transfer(uint32_t rank, uint64_t bytes);
  // `seen_at_once`: a caller was waiting for the transfer, so the time of its end is known.
  void end_transfer(uint32_t rank, uint64_t bytes, bool seen_at_once);
  void fail_transfer(uint32_t rank, uint64_t bytes);
  // Reserves the rail for bytes that it will carry when the peer clears them.
  void reserve(uint64_t bytes) { reserved_bytes_ += bytes; }
  void unreserve(uint64_t bytes) { reserved_bytes_ -= bytes; }
  [[nodiscard]] uint64_t reserved_bytes() const { return reserved_bytes_; }
  // True if transfers with this rank have been under way for long, and none has ended meanwhile.
  [[nodiscard]] bool is_stalled(uint32_t rank) const;
  [[nodiscard]] uint64_t under_way_bytes() const { return under_way_bytes_; }
  [[nodiscard]] Rate byte_time() const { return byte_time_; }
  [[nodiscard]] uint64_t carried_bytes() const { return carried_bytes_; }

  [[nodiscard]] Result<RailCounter> take_counter();
  void give_back(RailCounter counter) { idle_counters_.push_back(counter); }
  // Frees a counter whose waiting operation has been cancelled: its count is not known.
  [[nodiscard]] Status discard(RailCounter counter) { return interface_.ct_free(counter.id); }

 private:
  Rail(portals::Interface& interface, Options options)
      : interface_(interface), options_(std::move(options)), byte_time_(options_.facts.byte_time) {}

  static constexpr uint64_t learn_from_bytes = 4 << 20;

  portals::Interface& interface_;
  Options options_;
  nic::QueueId queue_;
  std::vector<bool> reaches_;
  std::vector<RailCounter> idle_counters_;
  Rate byte_time_;
  bool has_learnt_speed_ = false;
  std::optional<Time> measuring_since_;  // the end of a transfer; the rail has been busy since then
  uint64_t ended_bytes_ = 0;  // bytes of the transfers that have ended since measuring_since_
  Time busy_time_{};  // the measured busy times since the rail last learnt its speed
  uint64_t busy_bytes_ = 0;  // bytes that were moved in busy_time_
  // The transfers with one rank that are under way.
  struct PeerLoad {
    uint64_t transfers = 0;
    uint64_t bytes = 0;
    Time since{};  // the end of the latest one, or the begin of the first
  };
  std::vector<PeerLoad> peer_loads_;  // one for each rank
  uint64_t under_way_bytes_ = 0;  // the sum over all ranks
  uint64_t reserved_bytes_ = 0;
  uint64_t carried_bytes_ = 0;
};

// Returns the loads of the rails for a transfer to this rank now. A rail that stalls is left alone while others do not
// stall: so a cable that was unplugged for a moment holds up only the transfers that were on it. The rail is used again
// when these have ended.
[[nodiscard]] std::vector<RailLoad> loads_of(const std::vector<std::unique_ptr<Rail>>& rails, uint32_t rank);

}  // namespace spinloom::rails
