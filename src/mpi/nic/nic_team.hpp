// NicTeam - a communicator on the NIC: its schedules, in the order in which all of its ranks make them.
//
// Contract: make() gives a new schedule for a call. short_schedule() gives a schedule for a short call, with memory of
//   its own: calls with the same Facts share `alike_max` of them in turn. Calls of one schedule wait for each other:
//   the program's call runs take_turn(); when may_start() is true for its turn, start(); then test() until it has
//   ended.
// Invariants: (1) which schedule a call gets follows from the calls of this communicator before it, not from anything
//   that may differ between its ranks: neither from addresses nor from the ends of calls; (2) schedules that the NIC
//   has no room for are made later, in their order, when advance() is called.
// Threads: one at a time. Time: none.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "mpi/nic/nic.hpp"

namespace spinloom::mpi {

class NicTeam;

// An spl_call with the lists that it points to.
struct NicCall {
  spl_call call{};
  std::vector<uint64_t> send_bytes, send_at, receive_bytes, receive_at;
  std::vector<uint32_t> source, destination;
};

class NicSchedule {
 public:
  // Bytes of memory that the schedule has of its own, in place of the caller's; 0: it uses the caller's.
  struct Room {
    uint64_t send = 0, receive = 0;
  };
  NicSchedule(NicTeam& team, NicCall call, unsigned int flags, Room room);
  NicSchedule(const NicSchedule&) = delete;
  NicSchedule& operator=(const NicSchedule&) = delete;
  ~NicSchedule();

  // The memory that the schedule sends from and receives into. Callers use them for memory of its own.
  [[nodiscard]] uint8_t* send() { return static_cast<uint8_t*>(const_cast<void*>(call_.call.send)); }
  [[nodiscard]] uint8_t* receive() { return static_cast<uint8_t*>(call_.call.receive); }

  [[nodiscard]] uint64_t take_turn() { return next_turn_++; }
  [[nodiscard]] bool may_start(uint64_t turn) const { return turn == running_turn_ && (is_made_ || has_failed_); }
  // no_room: the schedule has left the NIC for others, which are under way; it keeps its turn.
  enum class StartResult : uint8_t { started, no_room, failed };
  [[nodiscard]] StartResult start();
  enum class Outcome : uint8_t { under_way, over, failed };
  [[nodiscard]] Outcome test();

 private:
  friend class NicTeam;
  // Makes the schedule on the NIC. Returns false if the NIC has no room now; a failure sets `has_failed_`.
  [[nodiscard]] bool make();

  NicTeam& team_;
  NicCall call_;
  unsigned int flags_;
  std::vector<uint8_t> memory_;
  spl_schedule* schedule_ = nullptr;
  bool is_made_ = false;
  bool has_failed_ = false;
  uint64_t next_turn_ = 0;  // the next take_turn() returns it
  uint64_t running_turn_ = 0;  // the call that may run now
};

class NicTeam {
 public:
  // `ranks`: the members' ranks in the job, in the order of the communicator.
  NicTeam(Nic& nic, uint32_t id, std::span<const uint32_t> ranks, uint32_t own_rank);
  NicTeam(const NicTeam&) = delete;
  NicTeam& operator=(const NicTeam&) = delete;
  ~NicTeam();

  [[nodiscard]] uint32_t rank() const { return rank_; }
  [[nodiscard]] uint32_t size() const { return size_; }

  [[nodiscard]] std::shared_ptr<NicSchedule> make(NicCall call, unsigned int flags, NicSchedule::Room room);
  // The facts of a call that all ranks know.
  struct Facts {
    int operation;
    uint32_t root;
    uint64_t bytes;
    ptl_op_t op;
    ptl_datatype_t type;
    bool operator==(const Facts&) const = default;
  };
  static constexpr uint64_t short_bytes = 16 << 10;  // a short call has no more, in all ranks' blocks together
  [[nodiscard]] std::shared_ptr<NicSchedule> short_schedule(const Facts& facts, NicSchedule::Room room);
  void advance();
  // Called when the communicator is gone: there will be no more calls of short_schedule().
  void retire() { short_schedules_.clear(); }

 private:
  friend class NicSchedule;
  // The number of equal calls that may be under way before one waits for another.
  static constexpr size_t alike_max = 8;
  static constexpr size_t short_schedules_max = 16;
  struct ShortSchedules {
    Facts facts;
    uint64_t used = 0;  // the number of the short call that used it last
    size_t next = 0;  // the schedule that the next call gets
    std::array<std::shared_ptr<NicSchedule>, alike_max> schedules{};
  };
  [[nodiscard]] ShortSchedules& schedules_like(const Facts& facts);

  Nic& nic_;
  uint32_t id_;
  uint32_t rank_;
  uint32_t size_;
  spl_team* team_ = nullptr;
  uint64_t calls_ = 0;
  std::vector<ShortSchedules> short_schedules_;
  std::deque<std::shared_ptr<NicSchedule>> unmade_;
};

}  // namespace spinloom::mpi
