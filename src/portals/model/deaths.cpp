// The death of a rank, and what the others see of it.
#include <algorithm>

#include "portals/model/step.hpp"

namespace spinloom::model {

bool Step::may_die() const {
  const uint16_t rank = machine_.program_.killed;
  return rank != any && process(rank).is_alive;
}

// Nobody at the dead rank sees anything any more. Messages from it that have been matched go on.
void Step::die() {
  const uint16_t rank = machine_.program_.killed;
  Process dead;
  dead.is_alive = false;
  dead.next = static_cast<uint16_t>(machine_.program_.ranks[rank].operations.size());
  dead.counters.resize(process(rank).counters.size());
  dead.memory.resize(process(rank).memory.size());
  process(rank) = std::move(dead);
  for (Message& message : state_.messages) {
    if (message.target == rank && message.stage != Stage::ended) message.stage = Stage::lost;
    if (message.name.rank != rank) continue;
    message.is_sent = message.is_send_counted = true;
    message.answer = Answer::ended;
  }
  std::erase_if(state_.messages, [&](const Message& message) {
    const bool is_over = message.stage == Stage::ended || message.stage == Stage::lost;
    return message.name.rank == rank && is_over;
  });
}

bool Step::may_cut_off() const {
  return std::any_of(state_.messages.begin(), state_.messages.end(), [&](const Message& message) {
    return message.stage == Stage::unmatched && !process(message.name.rank).is_alive;
  });
}

void Step::cut_off() {
  std::erase_if(state_.messages, [&](const Message& message) {
    return message.stage == Stage::unmatched && !process(message.name.rank).is_alive;
  });
}

bool Step::may_lose(size_t index) const {
  const Message& message = state_.messages[index];
  return !process(message.target).is_alive && message.answer != Answer::seen;
}

// `way` 0: the answer says undeliverable, a reply perhaps before the send event; 1: the send event does, and there is
// no acknowledgement; where send events are disabled, the event of the acknowledgement stands for it; 2: nobody is
// told, because the operation has no events and no counts that are still to come; 3: as 1, and the counter counts the
// failure of the acknowledgement. It must if it counts acknowledgements only, so that nobody waits for ever.
void Step::lose(size_t index, uint16_t way) {
  const Message message = state_.messages[index];
  const Operation& lost = operation(message.name);
  const Descriptor& descriptor = lost.movement.descriptor;
  const uint16_t rank = message.name.rank;
  const bool is_answered = wants_answer(lost) && message.answer == Answer::to_come;
  // Such a descriptor is told of a failure after all.
  const bool is_quiet = descriptor.success_disable && !descriptor.send_disable;
  const bool may_tell_by_send =
      has_source(lost) && !message.is_loss_sent && (!message.is_sent || (is_quiet && descriptor.has_queue));
  Event event;
  event.fail = Fail::undeliverable;
  event.user_ptr = name_of(rank, message.name.place);
  if (way == 0) {
    agrees_ = agrees_ && is_answered && (message.is_sent || has_reply(lost));
    event.kind = has_reply(lost) ? EventKind::reply : EventKind::ack;
    if (descriptor.has_queue && (has_reply(lost) || lost.movement.ack == Ack::full)) post(rank, true, event);
    if (has_reply(lost) ? descriptor.ct_reply : descriptor.ct_ack) add_to(rank, descriptor.counter, {0, 1});
    if (has_reply(lost) && (may_tell_by_send || !message.is_send_counted)) {
      state_.messages[index].answer = Answer::ended;
      state_.messages[index].stage = Stage::lost;
      return;
    }
  } else if (way != 2) {
    const bool counts_answer = is_answered && !has_reply(lost) && descriptor.ct_ack;
    agrees_ = agrees_ && may_tell_by_send && (way == 3 ? counts_answer : !counts_answer || descriptor.ct_send);
    event.kind = descriptor.send_disable ? EventKind::ack : EventKind::send;
    const bool has_event = !descriptor.send_disable || (is_answered && lost.movement.ack == Ack::full);
    if (descriptor.has_queue && has_event) post(rank, true, event);
    if (descriptor.ct_send && !message.is_send_counted) add_to(rank, descriptor.counter, {0, 1});
    if (way == 3) add_to(rank, descriptor.counter, {0, 1});
    if (has_reply(lost)) {
      state_.messages[index].is_sent = state_.messages[index].is_send_counted = true;
      state_.messages[index].is_loss_sent = true;
      state_.messages[index].stage = Stage::lost;
      return;
    }
  } else {
    agrees_ = agrees_ && !is_answered && message.is_sent && message.is_send_counted;
  }
  state_.messages.erase(state_.messages.begin() + static_cast<ptrdiff_t>(index));
}

}  // namespace spinloom::model
