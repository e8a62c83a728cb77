// Stripes - long transfers between this process's memory and another's, in fragments over all rails.
//
// Contract: start() plans a transfer (plan.hpp) and issues all of its fragments at once; `done` runs when the last one
//   has ended. A transfer consists of parts: the fragments of one rail. If `tells` of the transfer is set, each part
//   ends with an empty put to the peer, which the NIC sends when it has counted the part's replies. arm() gives the
//   fragments of a put to the NICs, which send them when their counters say that the peer has cleared the message. An
//   event whose user pointer is is_own() belongs here.
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
  uint8_t* into = nullptr;  // of a get
  const uint8_t* from = nullptr;  // of a put
  PiecesRef pieces;  // in place of `into` or `from`
  bool puts = false;
  uint64_t bytes = 0;
  uint32_t rank = 0;
  uint64_t bits = 0;  // match bits of the peer's memory, on every rail
  uint64_t offset = 0;  // in the peer's memory
  std::optional<uint64_t> tells;  // bits::number_of() of the peer's slot, to which the ends of parts are reported
  bool lands = false;  // a put into a receive's memory, which may be shorter, and is closed when all has come
};

class Stripes {
 public:
  struct Options {
    uint64_t stripe_bytes = 512 << 10;  // shorter transfers are one fragment
    uint64_t fragment_bytes = fragment_bytes_usual;
    bool offloaded = true;  // the words of parts are triggered puts
  };
  using Done = std::function<Status(uint64_t number, const Status& ended)>;
  Stripes(const std::vector<std::unique_ptr<Rail>>& rails, const Options& options, Done done)
      : rails_(rails), options_(options), done_(std::move(done)) {}

  [[nodiscard]] Status start(uint64_t number, const Transfer& transfer);
  // `clears`: by rail, the counter and the count at which its fragments leave. A transfer that no rail can carry, or
  // that has more than 64 fragments, is not armed: runs() stays false, and start() begins it later.
  [[nodiscard]] Status arm(uint64_t number, const Transfer& transfer, std::span<const nic::Trigger> clears);
  [[nodiscard]] bool runs(uint64_t number) const { return running_.contains(number); }
  // Notes that the peer has cleared the message over this rail. `over` has a bit for each rail over which the peer
  // does.
  [[nodiscard]] Status cleared(uint64_t number, uint32_t rail, uint64_t over);
  [[nodiscard]] Status lost(uint32_t rank, uint32_t rail);
  [[nodiscard]] Status give_up(uint64_t number, const Error& error);
  [[nodiscard]] static bool is_own(const nic::Event& event);
  [[nodiscard]] Status on_event(uint32_t rail, const nic::Event& event, bool seen_at_once);
  [[nodiscard]] uint64_t repeated() const { return repeated_; }

 private:
  struct Part {
    uint32_t rail = 0;
    uint32_t fragments = 0;
    uint32_t left = 0;  // fragments that have not ended
    RailCounter counter;
    bool ends_by_nic = false;
    std::optional<nic::Trigger> clear;  // the count for which its fragments wait
    std::vector<uint64_t> waiting;  // their names in `pieces_`
  };
  struct Piece {
    uint64_t number = 0;  // of the transfer
    uint32_t part = 0;
    Fragment fragment;
    bool begun = true;  // on its rail's account
    bool repeated = false;
  };
  struct Running {
    Transfer transfer;
    std::vector<Part> parts;
    uint32_t left = 0;  // fragments
    bool cleared = false;
    std::vector<Piece> orphans;  // fragments whose rail brings no word
    Status ended;
  };

  [[nodiscard]] std::vector<Fragment> fragments_of(const Transfer& transfer) const;
  [[nodiscard]] Status issue(const Piece& piece, const Transfer& transfer);
  [[nodiscard]] Status disarm(Running& running, Part& part);
  [[nodiscard]] Status move_orphans(uint64_t number);
  [[nodiscard]] Status begin_parts(Running& running, const std::vector<Fragment>& fragments);
  [[nodiscard]] Status on_fragment(uint32_t rail, const nic::Event& event, bool seen_at_once);
  [[nodiscard]] Status release(const Part& part, bool complete);
  [[nodiscard]] Status repeat(Running& running, Piece piece);
  [[nodiscard]] Status end_fragment(uint64_t number, Running& running, uint32_t part);
  [[nodiscard]] nic::Put word(Rail& rail, uint32_t rank, uint64_t slot, bits::Part part) const;
  [[nodiscard]] Status say(uint32_t rank, uint64_t slot, bits::Part part);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  Options options_;
  Done done_;
  std::unordered_map<uint64_t, Running> running_;
  std::unordered_map<uint64_t, Piece> pieces_;
  uint64_t next_piece_ = 0;
  uint64_t repeated_ = 0;
};

}  // namespace spinloom::rails
