// Stripes - long transfers between this process's memory and another's, in fragments over all rails.
//
// Contract: start() plans a transfer (plan.hpp) and issues all of its fragments at once; `done` runs when the last one
//   has ended. A transfer consists of parts: the fragments of one rail. If the transfer has a `notified_slot`, each
//   part ends with an empty put to the peer, which the NIC sends when it has counted the part's replies. arm() gives
//   the fragments of a put to the NICs, which send them when their counters say that the peer has cleared the message.
//   An event whose user pointer is is_own() belongs here.
// Invariants: (1) a fragment that its rail loses is issued again on the best of the others, and so is one that waits
//   for a word over a rail that is lost; the word of a part that has lost a fragment is sent by the processor; (2) the
//   word of a part may come twice, and carries the number of the part;
//   (3) `done` runs after everything of the transfer has ended, also after trouble.
// Source: data striping with notified completion (deliverable D4.7, section 2.3.2.2), by Portals' counters and
//   triggered puts.
// Threads: the owner of the Interfaces. Time: that of their ports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "portals/rails/pieces.hpp"
#include "portals/rails/rail.hpp"

namespace spinloom::rails {

struct Transfer {
  uint8_t* into = nullptr;  // the place where a get puts the bytes
  const uint8_t* from = nullptr;  // the place where a put takes the bytes
  PiecesRef pieces;  // pieces in place of `into` or `from`
  bool is_put = false;
  uint64_t bytes = 0;
  uint32_t rank = 0;
  uint64_t match_bits = 0;  // the peer's memory has them, on every rail
  uint64_t offset = 0;  // an offset in the peer's memory
  std::optional<uint64_t>
      notified_slot;  // bits::number_of() of the peer's slot, to which the ends of parts are reported
  bool is_landing = false;  // a put into a receive's memory, which may be shorter, and is closed when all has come
};

class Stripes {
 public:
  struct Options {
    uint64_t stripe_bytes = 512 << 10;  // shorter transfers are one fragment
    uint64_t fragment_bytes = fragment_bytes_usual;
    bool offloaded = true;  // the words of parts are triggered puts
  };
  using Done = std::function<Status(uint64_t number, const Status& result)>;
  Stripes(const std::vector<std::unique_ptr<Rail>>& rails, const Options& options, Done done)
      : rails_(rails), options_(options), done_(std::move(done)) {}

  [[nodiscard]] Status start(uint64_t number, const Transfer& transfer);
  // `clears`: by rail, the counter and the count at which its fragments leave. A transfer that no rail can carry, or
  // that has more than 64 fragments, is not armed: is_running() stays false, and start() begins it later.
  [[nodiscard]] Status arm(uint64_t number, const Transfer& transfer, std::span<const nic::Trigger> clears);
  [[nodiscard]] bool is_running(uint64_t number) const { return running_.contains(number); }
  // Notes that the peer has cleared the message over this rail. The mask has a bit for each rail over which the
  // peer does.
  [[nodiscard]] Status on_cleared(uint64_t number, uint32_t rail, uint64_t rails_mask);
  [[nodiscard]] Status on_lost(uint32_t rank, uint32_t rail);
  [[nodiscard]] Status give_up(uint64_t number, const Error& error);
  [[nodiscard]] static bool is_own(const nic::Event& event);
  [[nodiscard]] Status on_event(uint32_t rail_number, const nic::Event& event, bool seen_at_once);
  [[nodiscard]] uint64_t repeated() const { return repeated_; }

 private:
  struct Part {
    uint32_t rail = 0;
    uint32_t fragments = 0;  // the number of fragments
    uint32_t fragments_left = 0;  // the number of fragments that have not ended
    RailCounter counter;
    bool ends_by_nic = false;
    std::optional<nic::Trigger> clear_trigger;  // fires when the peer clears the part; none: its fragments do not wait
    std::vector<uint64_t> waiting_fragments;  // numbers in issued_
  };
  struct IssuedFragment {
    uint64_t transfer = 0;  // its number in running_
    uint32_t part = 0;
    Fragment fragment;
    bool is_begun = true;  // its rail counts it as under way
    bool is_repeated = false;  // another rail has lost it
  };
  struct RunningTransfer {
    Transfer transfer;
    std::vector<Part> parts;
    uint32_t fragments_left = 0;  // the number of fragments that have not ended
    bool is_cleared = false;  // the peer has cleared it, over any rail
    std::vector<IssuedFragment> orphans;  // fragments whose rail brings no word
    Status result;
  };

  [[nodiscard]] std::vector<Fragment> fragments_of(const Transfer& transfer) const;
  [[nodiscard]] Status issue(const IssuedFragment& issued, const Transfer& transfer);
  [[nodiscard]] Status disarm(RunningTransfer& running, Part& part);
  [[nodiscard]] Status move_orphans(uint64_t number);
  [[nodiscard]] Status begin_parts(RunningTransfer& running, const std::vector<Fragment>& fragments);
  [[nodiscard]] Status on_fragment(uint32_t rail_number, const nic::Event& event, bool seen_at_once);
  [[nodiscard]] Status release(const Part& part, bool complete);
  [[nodiscard]] Status repeat(RunningTransfer& running, IssuedFragment issued);
  [[nodiscard]] Status end_fragment(uint64_t number, RunningTransfer& running, uint32_t part_number);
  [[nodiscard]] nic::Put part_word_put(Rail& rail, uint32_t rank, uint64_t slot, bits::Part part) const;
  [[nodiscard]] Status send_part_word(uint32_t rank, uint64_t slot, bits::Part part);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  Options options_;
  Done done_;
  std::unordered_map<uint64_t, RunningTransfer> running_;
  std::unordered_map<uint64_t, IssuedFragment> issued_;
  uint64_t next_issued_ = 0;
  uint64_t repeated_ = 0;
};

}  // namespace spinloom::rails
