// NicTeam - a communicator on the NIC: its schedules, in the order in which all of its ranks make them.
//
// Contract: make() gives a schedule for a call whose memory is the caller's; short_one() gives one for a short call,
//   with memory of its own, that calls with the same Facts share. Calls of a schedule take turns: take_turn() when the
//   program makes the call, may_start() when its turn has come and the NIC has had room, start(), test() until it has
//   ended.
// Invariants: (1) which schedule a call gets follows from the calls of this communicator before it, not from anything
//   that may differ between its ranks: not from addresses, nor from what has ended; (2) schedules that the NIC has no
//   room for are made later, in their order, when advance() is called.
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
  struct Room {  // for memory of the schedule's own, in place of the caller's; 0: the caller's
    uint64_t send = 0, receive = 0;
  };
  NicSchedule(NicTeam& team, NicCall call, unsigned int flags, Room room);
  NicSchedule(const NicSchedule&) = delete;
  NicSchedule& operator=(const NicSchedule&) = delete;
  ~NicSchedule();

  // The memory that it sends from and receives into; meant for memory of its own.
  [[nodiscard]] uint8_t* send() { return static_cast<uint8_t*>(const_cast<void*>(call_.call.send)); }
  [[nodiscard]] uint8_t* receive() { return static_cast<uint8_t*>(call_.call.receive); }

  [[nodiscard]] uint64_t take_turn() { return last_turn_++; }
  [[nodiscard]] bool may_start(uint64_t turn) const { return turn == turn_ && (is_made_ || has_failed_); }
  // no_room: the schedule has left the NIC for others, which are under way; it keeps its turn.
  enum class Begun : uint8_t { yes, no_room, failed };
  [[nodiscard]] Begun start();
  enum class Outcome : uint8_t { under_way, over, failed };
  [[nodiscard]] Outcome test();

 private:
  friend class NicTeam;
  // False: there is no room now.
  [[nodiscard]] bool make();

  NicTeam& team_;
  NicCall call_;
  unsigned int flags_;
  std::vector<uint8_t> memory_;
  spl_schedule* schedule_ = nullptr;
  bool is_made_ = false;
  bool has_failed_ = false;
  uint64_t last_turn_ = 0;
  uint64_t turn_ = 0;
};

class NicTeam {
 public:
  // `ranks`: of the job, in the order of the communicator.
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
  static constexpr uint64_t short_bytes = 16 << 10;  // of all ranks' blocks together
  [[nodiscard]] std::shared_ptr<NicSchedule> short_one(const Facts& facts, NicSchedule::Room room);
  void advance();
  // The communicator is gone: no call will ask for a short one.
  void retire() { kept_.clear(); }

 private:
  friend class NicSchedule;
  // The number of equal calls that may be under way before one waits for another.
  static constexpr size_t alike_most = 8;
  static constexpr size_t kept_most = 16;
  struct Kept {
    Facts facts;
    uint64_t used = 0;  // when it was, in calls
    size_t next = 0;
    std::array<std::shared_ptr<NicSchedule>, alike_most> schedules{};
  };
  [[nodiscard]] Kept& kept(const Facts& facts);

  Nic& nic_;
  uint32_t id_;
  uint32_t rank_;
  uint32_t size_;
  spl_team* team_ = nullptr;
  uint64_t calls_ = 0;
  std::vector<Kept> kept_;
  std::deque<std::shared_ptr<NicSchedule>> to_make_;
};

}  // namespace spinloom::mpi
