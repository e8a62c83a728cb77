// Window - memory at each rank of a context, the keys of all of them at each, and synchronisation over it.
//
// Contract: make() and free() are collective. Each rank has control words, which others change by atomics of its NIC only:
//   tickets of locks, and how often each rank has posted to it and completed.
// Invariants: (1) a lock is a queue of tickets: a rank takes the next one, and enters when it is the one that is served;
//   whoever enters for a shared lock lets the next one in that asks for a shared lock, whoever leaves lets an exclusive one
//   in once all before it have left; so locks come in the order of tickets; (2) who waits for a ticket looks at the words
//   again after a pause that grows with the number of tickets before it; (3) counts of epochs only grow.
// Threads: the owner of the context. Time: that of its port.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rma/context.hpp"

namespace spinloom::rma {

class Window {
 public:
  enum class Lock : uint8_t { none, shared, exclusive };

  [[nodiscard]] static Result<std::unique_ptr<Window>> make(Context& context, std::vector<spin::IovecElement> pieces,
                                                            uint32_t rights, Notices notices);
  [[nodiscard]] Status free();
  [[nodiscard]] const Key& key(uint32_t rank) const { return keys_.at(rank); }
  [[nodiscard]] Memory& memory() { return *memory_; }
  // An epoch or a lock has not ended.
  [[nodiscard]] bool is_open() const;

  [[nodiscard]] Status post(std::span<const uint32_t> group);
  [[nodiscard]] Status start(std::span<const uint32_t> group);
  [[nodiscard]] Status complete();
  [[nodiscard]] Status wait_completed();
  [[nodiscard]] Result<bool> test_completed();

  [[nodiscard]] Status lock(uint32_t rank, Lock kind);
  [[nodiscard]] Status unlock(uint32_t rank);
  [[nodiscard]] Status lock_all();
  [[nodiscard]] Status unlock_all();

 private:
  explicit Window(Context& context);
  [[nodiscard]] Status set_up(std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices);
  [[nodiscard]] uint64_t word(uint64_t index) const;
  [[nodiscard]] uint64_t posted_at(uint32_t rank) const;
  [[nodiscard]] uint64_t completed_at(uint32_t rank) const;
  [[nodiscard]] Status check(std::span<const uint32_t> group) const;
  [[nodiscard]] bool all_completed() const;
  void end_exposure();
  // Reads, or adds to, words at a rank: fetched_ has what they were.
  [[nodiscard]] Status fetch(uint32_t rank, uint64_t word, uint64_t count, bool adds_one);
  [[nodiscard]] Status wait_for_turn(uint32_t rank, uint64_t ticket, Lock kind);

  Context& context_;
  std::unique_ptr<uint64_t[]> words_;
  Memory* control_ = nullptr;
  Memory* memory_ = nullptr;
  std::vector<Key> keys_;
  std::vector<Key> control_keys_;
  std::vector<Lock> locks_;
  bool locks_all_ = false;
  std::array<uint64_t, 2> fetched_{};  // the NIC may write here after a call has given up
  std::vector<uint32_t> access_;  // the group of start()
  std::vector<uint32_t> exposure_;  // the group of post()
  bool is_started_ = false;
  bool is_posted_ = false;
  std::vector<uint64_t> started_;  // how often this rank has started an epoch at each
  std::vector<uint64_t> exposed_;  // and ended one for each
};

}  // namespace spinloom::rma
