// LossyLinks - links between the ranks of a run that lose, repeat, delay and damage datagrams as the seed decides.
//
// Contract: these are the Links of the loopback driver. They carry real encoded datagrams, through the reliability
//   stage of src/nic/wire. A datagram takes a random time; a reordered datagram takes several times as long.
//   If any fault has a rate, two of the early datagrams are sure to have a fault.
// Invariants: (1) the same seed and the same calls give the same datagrams; (2) `bytes_hash` covers every datagram in
//   the order sent, but not the bytes of those from a rank to itself.
// Threads: one owner. Time: its own, for datagrams and time-outs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "nic/wire/reliable.hpp"
#include "portals/testbed/links.hpp"
#include "torture/config.hpp"

namespace spinloom::torture {

class LossyLinks final : public testbed::Links {
 public:
  LossyLinks(const Config& config, uint64_t seed, FaultCounts& faults, bool trace);
  ~LossyLinks() override;

  void send(uint32_t rank, const nic::Send& send, Ends& ends) override;
  bool step(Ends& ends) override;
  // From now on this rank sends nothing, and nothing reaches it; its datagrams under way still arrive. Ranks that have
  // talked to it find out by time-outs, or soon by a watcher, while much of what it has sent is still being worked on.
  // A watcher tells all ranks that have not talked to it.
  void kill(uint32_t rank);

  // From now on step() returns false when nothing is under way, even if keepalives between peers are due.
  void set_ending() { ending_ = true; }

  // True if every living rank that has talked to a dead rank knows that the dead one is lost.
  [[nodiscard]] bool losses_told() const;
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::string describe_waiting() const;
  [[nodiscard]] uint64_t bytes_hash() const { return hash_; }
  // Returns an Error if a stage refused a datagram that was not damaged, took a damaged one, or lost a living rank.
  [[nodiscard]] Status check_stages() const;
  void check_invariants(uint32_t rank) const { stages_[rank]->check_invariants(); }

 private:
  struct InFlight {
    uint32_t from = 0;
    uint32_t to = 0;
    bool damaged = false;
    std::vector<uint8_t> bytes;
  };
  void carry_out(uint32_t rank, Ends& ends);
  // Tells a rank that another is dead, as a watcher does.
  void notify_loss(uint32_t rank, uint32_t dead, Ends& ends);
  void launch(uint32_t from, uint32_t to, std::span<const uint8_t> bytes);

  const Config& config_;
  Random random_;
  FaultCounts& faults_;
  bool trace_;
  bool ending_ = false;
  std::vector<std::unique_ptr<wire::Reliable>> stages_;
  std::vector<bool> dead_;
  // One for each rank and peer: the rank has sent to the peer or heard from it.
  std::vector<std::vector<bool>> has_contact_;
  std::vector<std::vector<bool>> knows_lost_;  // one for each rank and peer: the rank was told that the peer is lost
  std::multimap<Time, InFlight> in_flight_;  // the key is the time of arrival
  struct LossNotice {  // a watcher's news for a rank
    uint32_t rank = 0;
    uint32_t dead = 0;
  };
  std::multimap<Time, LossNotice> loss_notices_;
  Time now_{1};
  uint64_t datagrams_ = 0;
  uint64_t certain_faults_[2] = {0, 0};  // numbers of the datagrams that are sure to have a fault
  uint64_t hash_ = 0;
  std::string refusal_;  // the sentence for check_stages(); empty: no stage did wrong
  std::vector<wire::Output> spare_outputs_;  // answers of stages, kept for their storage
};

}  // namespace spinloom::torture
