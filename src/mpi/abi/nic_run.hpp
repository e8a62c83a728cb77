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

class NicRun : public CarriedCall {
 public:
  NicRun(std::shared_ptr<NicTeam> team, std::shared_ptr<NicSchedule> schedule)
      : team_(std::move(team)), schedule_(std::move(schedule)) {}

  // The program's data at `place` lie packed at `packed`: pack() is for those that are sent, unpack() for those
  // received.
  void pack(const Place& place, uint8_t* packed) { packs_.push_back(move_of(place, packed)); }
  void unpack(const Place& place, uint8_t* packed) { unpacks_.push_back(move_of(place, packed)); }
  // Bytes that the call sets to zero when it starts: they belong to no data, but are reduced with them.
  void clear(uint8_t* packed, uint64_t bytes) { cleared_ = {packed, bytes}; }

  [[nodiscard]] int begin() override;
  [[nodiscard]] bool test(int& code) override;
  [[nodiscard]] int wait() override;

 private:
  struct Move {
    Place place;
    uint8_t* packed;
    std::unique_ptr<KeptType> kept_type;  // a copy of the datatype, where the MPI must move the bytes
  };
  [[nodiscard]] static Move move_of(const Place& place, uint8_t* packed);
  // Starts the call. False: its turn has not come, or the NIC has no room for it now.
  [[nodiscard]] bool try_start(int& code);

  std::shared_ptr<NicTeam> team_;
  std::shared_ptr<NicSchedule> schedule_;
  std::vector<Move> packs_, unpacks_;
  std::span<uint8_t> cleared_;
  uint64_t turn_ = 0;
  NicSchedule::StartResult start_result_ = NicSchedule::StartResult::no_room;
  int code_ = success;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
