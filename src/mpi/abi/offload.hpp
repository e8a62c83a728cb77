// Offload - non-blocking and persistent collective calls on the NIC, where the job asks for them: which communicators
//   have them, and what became of each call.
//
// Contract: begin() is called in MPI_Init by all ranks, once the NIC of each has its engine, or by none. add_comm() is
//   a collective call of the ranks of a new communicator: they agree on a number for it. of() gives null where a
//   communicator's calls are the MPI's, which all of its ranks see alike.
// Invariants: (1) two communicators that share a rank never have one number at the same time, though threads make them
//   at the same time: a rank offers its free numbers for one communicator at a time, that of the least key first, and
//   the ranks of a communicator to which one of them offers none ask again.
// Threads: the caller's lock, but for begin(), add_comm() and forget(). Time: none.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/entry/lineage.hpp"
#include "mpi/nic/nic_team.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Offload {
 public:
  explicit Offload(Nic& nic) : nic_(nic) {}
  void begin();
  void turn_off(std::string why);
  [[nodiscard]] const std::string& why_off() const { return why_off_; }
  void end();
  [[nodiscard]] bool is_on() const { return why_off_.empty() && !has_ended_; }

  // Gives a new communicator a number, and its ranks a team. `key`: that of its lineage.
  void add_comm(Comm made, Key key);
  void forget(Comm comm) { freed_.add(key_of(comm)); }  // needs no lock
  [[nodiscard]] std::shared_ptr<NicTeam> of(Comm comm);

  // Counts a call for the report. `why`: why the MPI carries it; null: the NIC does.
  void count(const char* call, const char* why, uint64_t bytes);
  [[nodiscard]] std::string as_json() const;

 private:
  void make_team(Comm comm, uint32_t id);
  // Returns the ids that this rank has in use; all others it offers to the communicator of `key`. Returns Nic::busy()
  // while it makes its offer to another communicator.
  [[nodiscard]] Nic::Ids offer_to(Key key);

  Nic& nic_;
  std::string why_off_ = "not asked for";
  bool has_ended_ = false;
  std::multiset<Key> keys_without_number_;  // communicators that have no number yet
  Key offered_key_;  // the one of them to which this rank offers its numbers
  HandleMap<std::shared_ptr<NicTeam>> teams_;
  FreedHandles freed_;
  struct Count {
    const char* call;
    const char* why;
    uint64_t calls = 0, bytes = 0;
  };
  std::vector<Count> counts_;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
