// Window - memory at ranks of a context, the keys of all of them at each, and synchronisation over it.
//
// Contract: make() and free() are collective of all ranks. make_part() makes this rank's part of a window of some
//   ranks, which all name in the same order; once each has the texts of all, by whatever way, join() makes the window.
//   Each rank has control words, which others change by atomics of its NIC only: tickets of locks, how often each rank
//   has posted to it and completed, and rounds of fences. A fence, a lock, start() and wait_completed() also have forms
//   that do not wait: begin_...() begins (start() and wait_completed() need none), test_...() returns true when it has
//   ended.
// Invariants: (1) a lock is a queue of tickets: a rank takes the next one, and enters when that number is served;
//   a rank that enters for a shared lock lets the next ticket in if that is for a shared lock, and an exclusive lock
//   gets in once all before it have left; so locks come in the order of tickets; (2) a rank that waits for a ticket
//   looks at the words again after a pause that grows with the number of tickets before it and with each look; (3)
//   counts of epochs and fences only grow; (4) a fence is a dissemination: the messages of a round always come from the
//   same rank.
// Threads: the owner of the context. Time: that of its port.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "portals/rma/context.hpp"

namespace spinloom::rma {

class Window {
 public:
  enum class Lock : uint8_t { none, shared, exclusive };

  [[nodiscard]] static Result<std::unique_ptr<Window>> make(Context& context, std::vector<spin::IovecElement> pieces,
                                                            uint32_t rights, Notices notices);
  // The text that a rank sends the others about its part: the keys of its memory and of its control words.
  using Text = std::array<uint8_t, 2 * sizeof(KeyText)>;
  struct Part {
    std::unique_ptr<Window> window;
    Text text{};
  };
  // `members`: ranks of the context, this one among them, none twice. Returns an Error for any other list.
  [[nodiscard]] static Result<Part> make_part(Context& context, std::span<const uint32_t> members,
                                              std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices);
  // Takes the texts of all members, in the order of the members. Returns an Error if one of them is not the text of
  // that member.
  [[nodiscard]] Status join(std::span<const Text> texts);
  [[nodiscard]] bool is_joined() const { return keys_.size() == members_.size(); }
  // Calls fence(), then drop(). Returns the status of the fence.
  [[nodiscard]] Status free();
  // Ends this rank's part; what others still do there fails.
  [[nodiscard]] Status drop();

  [[nodiscard]] std::span<const uint32_t> members() const { return members_; }
  [[nodiscard]] bool has_member(uint32_t rank) const { return rank < places_.size() && places_[rank] != nowhere; }
  [[nodiscard]] const Key& key(uint32_t rank) const { return keys_.at(places_.at(rank)); }
  [[nodiscard]] Memory& memory() { return *memory_; }
  // True if an epoch, a lock or a fence has not ended.
  [[nodiscard]] bool is_open() const;

  // After a fence, operations that its members began before it have ended. Returns an Error if operations of this rank
  // failed, a rank of the context is gone, or a fence is under way already.
  [[nodiscard]] Status fence();
  [[nodiscard]] Status begin_fence();
  [[nodiscard]] Result<bool> test_fence();

  [[nodiscard]] Status post(std::span<const uint32_t> group);
  [[nodiscard]] Status start(std::span<const uint32_t> group);
  [[nodiscard]] Result<bool> test_start(std::span<const uint32_t> group);
  [[nodiscard]] Status complete();
  [[nodiscard]] Status wait_completed();
  [[nodiscard]] Result<bool> test_completed();

  [[nodiscard]] Status lock(uint32_t rank, Lock kind);
  [[nodiscard]] Status begin_lock(uint32_t rank, Lock kind);
  [[nodiscard]] Result<bool> test_lock(uint32_t rank);
  [[nodiscard]] Status unlock(uint32_t rank);
  [[nodiscard]] Status lock_all();
  [[nodiscard]] Status unlock_all();

 private:
  static constexpr uint32_t nowhere = UINT32_MAX;
  Window(Context& context, std::span<const uint32_t> members);
  [[nodiscard]] Status set_up(std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices);
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  [[nodiscard]] uint64_t word_count() const;
  [[nodiscard]] uint64_t word(uint64_t index) const;
  [[nodiscard]] uint64_t posted_index(uint32_t place) const;
  [[nodiscard]] uint64_t completed_index(uint32_t place) const;
  [[nodiscard]] uint64_t fence_index(uint32_t round) const;
  [[nodiscard]] Status add_one(uint32_t place, uint64_t word, uint32_t count = 1);
  [[nodiscard]] Result<uint32_t> place_of(uint32_t rank) const;
  [[nodiscard]] Status check(std::span<const uint32_t> group) const;
  [[nodiscard]] bool all_posted(std::span<const uint32_t> group) const;
  void begin_access(std::span<const uint32_t> group);
  [[nodiscard]] bool all_completed() const;
  void end_exposure();

  // This rank's lock of one rank's part: held, or asked for.
  struct LockState {
    enum class Step : uint8_t { none, taking_ticket, looking, resting };
    Lock kind = Lock::none;
    Step step = Step::none;  // none: it has the lock, if there is a kind
    uint64_t ticket = 0;
    Request* request = nullptr;
    Time next_look{};
    int64_t pause_ps = 0;
    std::array<uint64_t, 2> fetched{};  // the NIC may write here after a call has given up
  };
  // Begins to read `count` control words of the rank at `place`, or to add 1 to one such word (`count` is 1 then). The
  // old values come to `fetched` of its Locking.
  [[nodiscard]] Status fetch(uint32_t place, uint64_t word, uint64_t count, bool adds_one);
  [[nodiscard]] Result<bool> step_lock(uint32_t place);

  // The state of the fence that is under way.
  struct Fence {
    bool is_open = false;
    bool has_flushed = false;
    bool has_sent = false;  // the fence has sent this round's message
    uint32_t round = 0;
    Status flush_result;
  };

  Context& context_;
  std::vector<uint32_t> members_;
  std::vector<uint32_t> places_;  // one for each rank of the context: its place in members_, or nowhere
  uint32_t own_place_ = 0;  // the place of this rank
  std::unique_ptr<uint64_t[]> words_;
  Memory* control_ = nullptr;
  Memory* memory_ = nullptr;
  std::vector<Key> keys_;  // one for each place
  std::vector<Key> control_keys_;
  std::unique_ptr<LockState[]> lock_states_;
  bool holds_all_locks_ = false;
  std::vector<uint32_t> access_group_;  // the places of the group of start()
  std::vector<uint32_t> exposure_group_;  // the places of the group of post()
  bool is_started_ = false;
  bool is_posted_ = false;
  // One for each place: the number of access epochs that this rank has started there.
  std::vector<uint64_t> started_epochs_;
  // One for each place: the number of exposure epochs that this rank has ended for it.
  std::vector<uint64_t> exposed_epochs_;
  Fence fence_;
  uint64_t fence_count_ = 0;
};

}  // namespace spinloom::rma
