// Landings - receives whose bytes their senders put: memory that is open to one message, and the word that says so.
//
// Contract: open() exposes a receive's memory on all rails to the sender of a message, and clears the message to be
//   sent: by a word over each rail, on which the sender's NICs start (offloaded), or by one word over one rail, on
//   which the sender's processor starts. `done` runs when the whole message has come, or the landing was given up, and
//   nothing more can be written.
//   An event whose user pointer is is_own() belongs here.
// Invariants: (1) a fragment that comes twice, because a rail was lost, counts once; (2) `done` runs after the memory
//   is closed on every rail; (3) a word says over which rails it is said.
// Source: the rendezvous of MPC (deliverable D4.7, section 2.2.1.2), by put in place of get.
// Threads: the owner of the Interfaces. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "portals/rails/pieces.hpp"
#include "portals/rails/rail.hpp"

namespace spinloom::rails {

class Landings {
 public:
  // A receive's memory, and the message that its sender puts there.
  struct Receive {
    uint8_t* memory = nullptr;
    PiecesRef pieces;  // used instead of `memory` if the memory is not one range
    uint64_t memory_bytes = 0;
    uint64_t message_bytes = 0;  // the message has at least this many; bytes beyond the memory are dropped
    uint32_t sender = 0;  // its rank
    uint64_t sender_slot = 0;  // bits::number_of() of the sender's slot for the message
  };
  using Done = std::function<Status(uint64_t number, const Status& result)>;
  Landings(const std::vector<std::unique_ptr<Rail>>& rails, bool offloaded, Done done)
      : rails_(rails), offloaded_(offloaded), done_(std::move(done)) {}

  // `number` is that of the receive's request; `done` gets it.
  [[nodiscard]] Status open(uint64_t number, const Receive& receive);
  [[nodiscard]] static bool is_own(const nic::Event& event);
  [[nodiscard]] Status on_event(uint32_t rail_number, const nic::Event& event);
  // Ends all landings from this rank with the Error: its messages do not come any more.
  [[nodiscard]] Status give_up(uint32_t rank, const Error& error);
  // Closes the landings that could not be closed before, because a message was being written.
  [[nodiscard]] Status close_pending();

 private:
  struct Landing {
    Receive receive;
    std::vector<nic::EntryId> entries;  // one for each rail
    std::vector<bool> closed;  // one for each rail
    std::set<uint64_t> received_offsets;  // the offsets of the fragments that have come
    uint64_t received_bytes = 0;
    bool is_ending = false;  // all has come, or it was given up: only the memory is still to be closed
    Status result;
  };
  [[nodiscard]] Status clear_to_send(uint64_t number, const Receive& receive, uint32_t rail_number,
                                     uint64_t rails_mask);
  [[nodiscard]] Status clear_to_send_over_best(uint64_t number, const Receive& receive);
  [[nodiscard]] Status close(uint64_t number);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  bool offloaded_;
  Done done_;
  std::unordered_map<uint64_t, Landing> landings_;
  std::vector<uint64_t> pending_closes_;
};

}  // namespace spinloom::rails
