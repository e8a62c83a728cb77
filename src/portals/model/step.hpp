// Step - one step of a machine: a copy of a state, and the change that makes it the next one.
//
// Contract: a may_...() says whether the step is there, for the state as it is; the function of the same name does it.
//   agrees() is false once the step has contradicted the followed outcome.
// Threads: one owner. Time: none.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "portals/model/machine.hpp"
#include "portals/model/pieces.hpp"

namespace spinloom::model {

class Step {
 public:
  Step(const Machine& machine, const State& state) : machine_(machine), state_(state) {}

  [[nodiscard]] bool agrees() const { return agrees_; }
  [[nodiscard]] State take() { return std::move(state_); }

  // The next call of a rank's program. Where Portals 4 leaves the result open, there are several ways.
  [[nodiscard]] bool may_call(uint16_t rank) const;
  [[nodiscard]] uint16_t ways_to_call(uint16_t rank) const;
  void call(uint16_t rank, uint16_t way);
  // Every rank that has not ended goes on behind its settle().
  void pass_settle();
  // The first triggered operation that a bundle has kept back begins to wait.
  [[nodiscard]] bool may_end_deferral(uint16_t rank) const { return !process(rank).deferred.empty(); }
  [[nodiscard]] uint16_t ways_to_wait(uint16_t rank, uint16_t place) const;
  void end_deferral(uint16_t rank, uint16_t way);
  // The first triggered operation that has fired.
  [[nodiscard]] bool may_start_fired(uint16_t rank) const { return !process(rank).fired.empty(); }
  [[nodiscard]] uint16_t ways_to_start_fired(uint16_t rank) const;
  void start_fired(uint16_t rank, uint16_t way);

  // Events that a portal table entry owes.
  [[nodiscard]] bool may_report_disabled(uint16_t rank) const;
  void report_disabled(uint16_t rank);
  // Flow control disables an entry whose queue is full.
  [[nodiscard]] bool may_find_queue_full(uint16_t rank) const;
  void find_queue_full(uint16_t rank);
  [[nodiscard]] bool may_report_claim(uint16_t rank, size_t claim) const;
  void report_claim(uint16_t rank, size_t claim);
  [[nodiscard]] bool may_report_link(uint16_t rank, size_t entry) const;
  void report_link(uint16_t rank, size_t entry);
  [[nodiscard]] bool may_report_unlink(uint16_t rank, size_t entry) const;
  void report_unlink(uint16_t rank, size_t entry);
  [[nodiscard]] bool may_free(uint16_t rank, size_t entry) const;
  void free(uint16_t rank, size_t entry);

  // The rank that is to die does; messages from it that have not been matched yet are cut off; one to it is lost.
  [[nodiscard]] bool may_die() const;
  void die();
  [[nodiscard]] bool may_cut_off() const;
  void cut_off();
  [[nodiscard]] bool may_lose(size_t message) const;
  void lose(size_t message, uint16_t way);

  // Messages.
  [[nodiscard]] bool may_read(size_t message, uint16_t element) const;
  void read(size_t message, uint16_t element);
  [[nodiscard]] bool may_send(size_t message) const;
  void send(size_t message);
  [[nodiscard]] bool may_count_send(size_t message) const;
  void count_send(size_t message);
  [[nodiscard]] bool may_match(size_t message) const;
  [[nodiscard]] uint16_t ways_to_match(size_t message) const;
  void match(size_t message, uint16_t way);
  [[nodiscard]] bool may_move(size_t message, uint16_t element) const;
  void move(size_t message, uint16_t element);
  void move_all(size_t message);
  [[nodiscard]] bool may_report(size_t message) const;
  void report(size_t message);
  [[nodiscard]] bool may_count(size_t message) const;
  void count(size_t message);
  [[nodiscard]] bool may_answer(size_t message) const;
  void answer(size_t message);
  [[nodiscard]] bool may_count_answer(size_t message) const;
  void count_answer(size_t message);

 private:
  [[nodiscard]] const Process& process(uint16_t rank) const { return state_.processes[rank]; }
  [[nodiscard]] Process& process(uint16_t rank) { return state_.processes[rank]; }
  [[nodiscard]] const Operation& operation(OperationName name) const { return machine_.operation(name); }
  [[nodiscard]] const Movement& movement(const Message& message) const { return operation(message.name).movement; }

  // A queue gets an event; a call returns.
  void post(uint16_t rank, bool departures, const Event& event);
  void report_disabled_between(uint16_t rank);
  void return_from(uint16_t rank, const Returned& returned);
  // Adds to a counter, or sets it, and fires what waits for the value.
  void add_to(uint16_t rank, uint8_t counter, Count count);
  void set(uint16_t rank, uint8_t counter, Count count);
  void fire(uint16_t rank, uint8_t counter);

  [[nodiscard]] Code perform(uint16_t rank, uint16_t place, uint16_t way);
  void defer(uint16_t rank, uint16_t place);
  [[nodiscard]] Code end_bundle(uint16_t rank);
  void cancel(uint16_t rank, uint8_t counter);
  [[nodiscard]] Code wait_for_trigger(uint16_t rank, uint16_t place, uint16_t way);
  [[nodiscard]] Code issue(uint16_t rank, uint16_t place);
  [[nodiscard]] Code append(uint16_t rank, uint16_t place, uint16_t way);
  [[nodiscard]] Code unlink(uint16_t rank, uint16_t place, uint16_t way);
  [[nodiscard]] Code try_to_unlink(uint16_t rank, uint16_t appended_by);
  [[nodiscard]] bool is_linked(uint16_t rank, uint16_t appended_by) const;
  [[nodiscard]] bool is_to_be_appended(uint16_t rank, uint16_t place) const;
  [[nodiscard]] Code search(uint16_t rank, uint16_t place, uint16_t way);

  [[nodiscard]] bool matches(const Entry& entry, uint16_t local_offset, OperationName name) const;
  [[nodiscard]] std::optional<size_t> find_entry(uint16_t rank, OperationName name) const;
  [[nodiscard]] bool is_under_way(uint16_t rank) const;
  [[nodiscard]] uint16_t ways_to_keep_header(const Message& message) const;
  [[nodiscard]] bool may_lack_event_room(uint16_t rank) const;
  [[nodiscard]] uint16_t messages_in_queue(uint16_t rank) const;
  [[nodiscard]] bool has_claims(uint16_t rank, uint16_t appended_by) const;
  [[nodiscard]] bool is_in_use(uint16_t rank, uint16_t entry) const;
  [[nodiscard]] bool has_come(const Header& header) const;
  [[nodiscard]] uint16_t start_in(uint16_t rank, const Entry& entry, uint16_t offset, uint16_t moved) const;
  [[nodiscard]] Event event_of_message(OperationName name, uint16_t entry, uint16_t offset, uint16_t moved) const;
  void report_found(uint16_t rank, uint16_t place, const Header& header, bool removes);
  void take(uint16_t rank, uint16_t place, const Header& header, bool reports_end);
  void end_search(uint16_t rank, uint16_t place);
  void report_owed(uint16_t rank);
  void report_end_of(uint16_t rank, uint16_t appended_by);
  void refuse(Message& message, Fail fail);
  void disable(uint16_t rank, bool with_event);
  void end_if_over(size_t message);
  [[nodiscard]] bool has_races(OperationName name) const { return machine_.traits_.races[name.rank][name.place]; }
  [[nodiscard]] std::vector<Region> target_parts(const Message& message, uint16_t element) const;
  [[nodiscard]] bool counts_apart(uint16_t rank, uint8_t counter) const;

  const Machine& machine_;
  State state_;
  bool agrees_ = true;
};

// The number of bytes that an operation asks for.
[[nodiscard]] inline uint16_t requested_by(const Operation& operation) { return operation.movement.local.length; }
[[nodiscard]] inline bool has_source(const Operation& operation) { return operation.kind != OperationKind::get; }
[[nodiscard]] inline bool has_reply(const Operation& operation) {
  return operation.kind == OperationKind::get || operation.kind == OperationKind::fetch_atomic;
}
[[nodiscard]] inline bool wants_answer(const Operation& operation) {
  return has_reply(operation) || operation.movement.ack != Ack::none;
}
[[nodiscard]] inline std::vector<Region> local_parts(const Movement& movement) {
  return parts_of(movement.local, movement.pieces, movement.skip, movement.local.length);
}
[[nodiscard]] inline std::vector<Region> reply_parts(const Operation& operation) {
  if (operation.kind == OperationKind::get) return local_parts(operation.movement);
  return parts_of({operation.movement.fetch_offset, operation.movement.local.length}, {}, 0,
                  operation.movement.local.length);
}

}  // namespace spinloom::model
