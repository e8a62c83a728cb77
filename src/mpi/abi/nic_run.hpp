// NicRun - one collective call as the NIC carries it: what is packed for it before, what is unpacked after it, and its
//   turn among the calls of its schedule.
//
// Contract: pack(), unpack() and clear() are called before begin(). The data are packed when the call's turn has come,
//   in begin() or a later test(), and unpacked when the call has ended.
// Threads: the caller's lock; begin(), test() and wait() take it themselves. Time: none.
#pragma once

#include <span>
#include <vector>

#include "mpi/abi/carried.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/nic/nic_team.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class NicRun : public Carried {
 public:
  NicRun(std::shared_ptr<NicTeam> team, std::shared_ptr<NicSchedule> schedule)
      : team_(std::move(team)), schedule_(std::move(schedule)) {}

  // The program's data at `place` lie packed at `at`: pack() is for those that are sent, unpack() for those received.
  void pack(const Place& place, uint8_t* at) { before_.push_back(move_of(place, at)); }
  void unpack(const Place& place, uint8_t* at) { after_.push_back(move_of(place, at)); }
  // Bytes that the call sets to zero when it starts: they belong to no data, but are reduced with them.
  void clear(uint8_t* at, uint64_t bytes) { cleared_ = {at, bytes}; }

  [[nodiscard]] int begin() override;
  [[nodiscard]] bool test(int& code) override;
  [[nodiscard]] int wait() override;

 private:
  struct Move {
    Place place;
    uint8_t* at;
    std::unique_ptr<KeptType> kept;  // where the MPI must move the bytes
  };
  [[nodiscard]] static Move move_of(const Place& place, uint8_t* at);
  // Starts the call. False: its turn has not come, or the NIC has no room for it now.
  [[nodiscard]] bool try_start(int& code);

  std::shared_ptr<NicTeam> team_;
  std::shared_ptr<NicSchedule> schedule_;
  std::vector<Move> before_, after_;
  std::span<uint8_t> cleared_;
  uint64_t turn_ = 0;
  NicSchedule::Begun begun_ = NicSchedule::Begun::no_room;
  int failed_ = success;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
