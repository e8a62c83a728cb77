// Exchange - an interaction of ranks, and the oracle that knows its results.
//
// Contract: an exchange has several roles, for example its sender and its target. begin() makes the host calls.
//   expect() notes the next event that must come for a role. on_event() takes each event; it returns an Error if the
//   event is not the next one of its role, or if a field differs. finish() is called when nothing is under way any
//   more: it gives everything back and compares memory.
// Invariants: (1) the user_ptr of every call and entry is user_ptr_of(role), so that each event leads to its exchange
//   and role; (2) an exchange is done when all its events have come, and everything that poll() waits for has happened.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "torture/world.hpp"

namespace spinloom::torture {

class Exchange {
 public:
  static constexpr uint32_t roles = 64;

  Exchange(World& world, uint32_t id, Work work) : world_(world), id_(id), work_(work) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] virtual Status begin() = 0;
  [[nodiscard]] virtual Status on_event(uint32_t rank, uint32_t role, const nic::Event& event);
  // Called between steps while the exchange is not done; it may look at counters.
  [[nodiscard]] virtual Status poll() { return {}; }
  [[nodiscard]] virtual bool done() const { return expected_count_ == 0; }
  [[nodiscard]] virtual Status finish() = 0;
  // Closes engines that are still open. That lets bytes land, so it comes before the memory of any exchange is freed.
  virtual void close_engines() {}

  [[nodiscard]] uint32_t id() const { return id_; }
  [[nodiscard]] std::string name() const { return text("exchange ", id_, " (", name_of(work_), ")"); }
  // The events that have not come, for the report of a stall.
  [[nodiscard]] std::string missing_events() const;

 protected:
  // A check that runs when an expected event has come.
  using OnEvent = std::function<Status()>;
  [[nodiscard]] uint64_t user_ptr_of(uint32_t role) const { return uint64_t{id_} * roles + role; }
  // Returns match bits that no other exchange has; `which` tells the entries of one exchange apart.
  [[nodiscard]] uint64_t match_bits(uint32_t which = 0) const { return uint64_t{id_} << 16 | which; }
  void expect(uint32_t role, nic::Event event, OnEvent check = {});
  // Expects an event whose other fields have their defaults.
  void expect(uint32_t role, nic::EventKind kind, OnEvent check = {});
  // Makes the Error that this exchange reports.
  [[nodiscard]] Error trouble(const std::string& what) const { return fail(Code::mismatch, name(), ": ", what); }

  [[nodiscard]] Random& random() { return world_.random; }
  [[nodiscard]] Host& host(uint32_t rank) { return world_.hosts[rank]; }
  [[nodiscard]] uint32_t any_rank();
  [[nodiscard]] uint32_t other_rank(uint32_t rank);
  [[nodiscard]] uint64_t any_size();
  // Unlinks an entry that is in its list.
  [[nodiscard]] Status unlink(uint32_t rank, nic::EntryId entry);
  // Returns a put of all of `source` that asks for an acknowledgement, and counts it in World::messages. The caller
  // expects its events.
  [[nodiscard]] nic::Put put_of(uint32_t rank, uint32_t target, uint32_t role, const Region& source);

  World& world_;

 private:
  struct Expected {
    nic::Event event;
    OnEvent check;
  };
  uint32_t id_;
  Work work_;
  uint32_t expected_count_ = 0;  // expected events of all roles that have not come
  std::array<std::deque<Expected>, roles> expected_events_;
};

[[nodiscard]] std::unique_ptr<Exchange> make_exchange(World& world, uint32_t id, Work work);

// The makers of exchanges, one for each file.
[[nodiscard]] std::unique_ptr<Exchange> make_transfer(World& world, uint32_t id, Work work);
[[nodiscard]] std::unique_ptr<Exchange> make_row(World& world, uint32_t id, Work work);
[[nodiscard]] std::unique_ptr<Exchange> make_unexpected(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_triggered(World& world, uint32_t id, Work work);
[[nodiscard]] std::unique_ptr<Exchange> make_shared(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_outbound(World& world, uint32_t id, Work work);
[[nodiscard]] std::unique_ptr<Exchange> make_handled(World& world, uint32_t id, Work work);
[[nodiscard]] std::unique_ptr<Exchange> make_forward(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_flow(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_overrun(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_crowd(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_cancelled(World& world, uint32_t id);
[[nodiscard]] std::unique_ptr<Exchange> make_collective(World& world, uint32_t id);

}  // namespace spinloom::torture
