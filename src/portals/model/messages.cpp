// Messages: from their issue to their answer, at both ends.
#include <algorithm>

#include "portals/model/elements.hpp"
#include "portals/model/step.hpp"

namespace spinloom::model {
namespace {

EventKind landed_kind(OperationKind kind) {
  switch (kind) {
    case OperationKind::get: return EventKind::get;
    case OperationKind::atomic: return EventKind::atomic;
    case OperationKind::fetch_atomic: return EventKind::fetch_atomic;
    default: return EventKind::put;
  }
}

uint16_t elements_of(uint16_t length) { return static_cast<uint16_t>((length + element_bytes - 1) / element_bytes); }
uint8_t bit(uint16_t element) { return static_cast<uint8_t>(1 << element); }
uint8_t all_elements(uint16_t length) { return static_cast<uint8_t>((1 << elements_of(length)) - 1); }
Region element_of(uint16_t element, uint16_t length) {
  const auto offset = static_cast<uint16_t>(element * element_bytes);
  return {offset, std::min(element_bytes, static_cast<uint16_t>(length - offset))};
}

bool overlap(const std::vector<Region>& some, const std::vector<Region>& others) {
  return std::any_of(some.begin(), some.end(), [&](Region one) {
    return std::any_of(others.begin(), others.end(), [&](Region other) { return model::overlap(one, other); });
  });
}

uint16_t one_or(bool bytes, uint16_t count) { return bytes ? count : uint16_t{1}; }

}  // namespace

Code Step::issue(uint16_t rank, uint16_t place) {
  const Operation& issued = operation({rank, place});
  const Movement& moved = issued.movement;
  if (moved.ack == Ack::full && !moved.descriptor.has_queue) return Code::invalid;
  if ((moved.ack == Ack::counted || moved.ack == Ack::operation_completed) && moved.descriptor.counter == none) {
    return Code::invalid;
  }
  Message message;
  message.name = {rank, place};
  message.target = moved.target;
  message.is_read = message.is_sent = message.is_send_counted = !has_source(issued);
  if (has_source(issued)) {
    message.bytes.resize(moved.local.length);
    message.is_read = moved.local.length == 0;
    if (!has_races({rank, place})) {
      message.bytes = gather(process(rank).memory, local_parts(moved));
      message.elements_read = all_elements(moved.local.length);
      message.is_read = true;
    }
    const Descriptor& descriptor = moved.descriptor;
    message.is_send_counted = !descriptor.ct_send || descriptor.counter == none;
    message.is_sent =
        message.is_send_counted && (!descriptor.has_queue || descriptor.send_disable || descriptor.success_disable);
  }
  // Behind the messages of the same pair: only their order means something.
  const auto behind = std::find_if(state_.messages.begin(), state_.messages.end(), [&](const Message& other) {
    return std::pair(other.name.rank, other.target) > std::pair(rank, moved.target);
  });
  state_.messages.insert(behind, std::move(message));
  return Code::ok;
}

bool Step::may_read(size_t index, uint16_t element) const {
  const Message& message = state_.messages[index];
  return !message.is_read && element < elements_of(movement(message).local.length) &&
         (message.elements_read & bit(element)) == 0;
}

void Step::read(size_t index, uint16_t element) {
  Message& message = state_.messages[index];
  const Movement& moved = movement(message);
  const Region part = element_of(element, moved.local.length);
  const auto parts = parts_of(moved.local, moved.pieces, static_cast<uint16_t>(moved.skip + part.offset), part.length);
  if (message.stage == Stage::unmatched || message.stage == Stage::matched) {
    const std::vector<uint8_t> bytes = gather(process(message.name.rank).memory, parts);
    std::copy(bytes.begin(), bytes.end(), message.bytes.begin() + part.offset);
  }
  message.elements_read |= bit(element);
  message.is_read = message.elements_read == all_elements(moved.local.length);
}

// The source may be used again: its bytes have been read.
bool Step::may_send(size_t index) const {
  const Message& message = state_.messages[index];
  return message.is_read && !message.is_sent;
}

void Step::send(size_t index) {
  Message& message = state_.messages[index];
  const Descriptor& descriptor = movement(message).descriptor;
  message.is_sent = true;
  if (descriptor.has_queue && !descriptor.send_disable && !descriptor.success_disable) {
    Event event;
    event.kind = EventKind::send;
    event.user_ptr = name_of(message.name.rank, message.name.place);
    post(message.name.rank, true, event);
  }
  if (!message.is_send_counted && !counts_apart(message.name.rank, descriptor.counter)) {
    count_send(index);
  } else {
    end_if_over(index);
  }
}

bool Step::may_count_send(size_t index) const {
  return state_.messages[index].is_sent && !state_.messages[index].is_send_counted;
}

void Step::count_send(size_t index) {
  Message& message = state_.messages[index];
  const Movement& moved = movement(message);
  message.is_send_counted = true;
  add_to(message.name.rank, moved.descriptor.counter, {one_or(moved.descriptor.ct_bytes, moved.local.length), 0});
  end_if_over(index);
}

// Messages of a pair are matched in the order of their issue.
bool Step::may_match(size_t index) const {
  const Message& message = state_.messages[index];
  if (message.stage != Stage::unmatched || !process(message.target).is_alive) return false;
  for (size_t before = index; before > 0; --before) {
    const Message& other = state_.messages[before - 1];
    if (other.name.rank != message.name.rank || other.target != message.target) break;
    if (other.stage == Stage::unmatched) return false;
  }
  return true;
}

// Where an element of a message lies at its target.
std::vector<Region> Step::target_parts(const Message& message, uint16_t element) const {
  const Entry& entry = operation({message.target, message.entry}).entry;
  const Region part = element_of(element, message.moved);
  return parts_of(entry.memory, entry.pieces, static_cast<uint16_t>(message.offset + part.offset), part.length);
}

// Bytes of one initiator at one address keep their order.
bool Step::may_move(size_t index, uint16_t element) const {
  const Message& message = state_.messages[index];
  const bool is_open = message.stage == Stage::matched && element < std::max<uint16_t>(1, elements_of(message.moved)) &&
                       (message.elements_moved & bit(element)) == 0;
  if (!is_open) return false;
  const bool needs_source = has_source(operation(message.name)) && message.moved > 0;
  if (needs_source && (message.elements_read & bit(element)) == 0) return false;
  const std::vector<Region> parts = target_parts(message, element);
  for (size_t before = index; before > 0; --before) {
    const Message& other = state_.messages[before - 1];
    if (other.name.rank != message.name.rank || other.target != message.target) break;
    if (other.stage != Stage::matched) continue;
    for (uint16_t earlier = 0; earlier < elements_of(other.moved); ++earlier) {
      const bool is_there = (other.elements_moved & bit(earlier)) != 0;
      if (!is_there && overlap(parts, target_parts(other, earlier))) return false;
    }
  }
  return true;
}

void Step::move(size_t index, uint16_t element) {
  Message& message = state_.messages[index];
  const Operation& moved = operation(message.name);
  const std::span<uint8_t> memory(process(message.target).memory);
  const std::vector<Region> parts = target_parts(message, element);
  const Region part = element_of(element, message.moved);
  if (message.bytes.size() < message.moved) message.bytes.resize(message.moved);  // a get has no source
  const std::span<uint8_t> bytes = std::span(message.bytes).subspan(part.offset, part.length);
  const std::vector<uint8_t> before = gather(memory, parts);
  switch (moved.kind) {
    case OperationKind::put: scatter(bytes, parts, memory); break;
    case OperationKind::atomic:
    case OperationKind::fetch_atomic: {
      std::vector<uint8_t> after = before;
      apply(moved.movement, bytes, after);
      scatter(after, parts, memory);
      break;
    }
    default: break;
  }
  if (has_reply(moved)) std::copy(before.begin(), before.end(), bytes.begin());
  message.elements_moved |= bit(element);
  if (message.moved > 0 && message.elements_moved != all_elements(message.moved)) return;
  message.stage = Stage::moved;
  message.bytes.resize(has_reply(moved) ? message.moved : 0);
}

void Step::move_all(size_t index) {
  const uint16_t elements = std::max<uint16_t>(1, elements_of(state_.messages[index].moved));
  for (uint16_t element = 0; element < elements; ++element) move(index, element);
}

bool Step::may_report(size_t index) const { return state_.messages[index].stage == Stage::moved; }

void Step::report(size_t index) {
  Message& message = state_.messages[index];
  const Entry& entry = operation({message.target, message.entry}).entry;
  message.stage = Stage::reported;
  if (!entry.comm_disable && !entry.success_disable) {
    Event event = event_of_message(message.name, message.entry, message.offset, message.moved);
    event.kind = landed_kind(operation(message.name).kind);
    event.list = message.list;
    event.user_ptr = name_of(message.target, message.entry);
    if (machine_.setup(message.target).has_queue) post(message.target, false, event);
  }
  const uint16_t target = message.target;
  if (!entry.ct_comm || !counts_apart(target, entry.counter)) count(index);
  if (machine_.rules_.owes_nothing) report_owed(target);
}

bool Step::may_count(size_t index) const { return state_.messages[index].stage == Stage::reported; }

void Step::count(size_t index) {
  Message& message = state_.messages[index];
  const Entry& entry = operation({message.target, message.entry}).entry;
  message.stage = Stage::ended;
  if (entry.ct_comm) add_to(message.target, entry.counter, {one_or(entry.ct_bytes, message.moved), 0});
  end_if_over(index);
}

// The acknowledgement leaves when all is done at the target, and comes after the send event.
bool Step::may_answer(size_t index) const {
  const Message& message = state_.messages[index];
  const bool is_due = message.is_sent || has_reply(operation(message.name));
  return message.stage == Stage::ended && is_due && message.answer == Answer::to_come &&
         wants_answer(operation(message.name));
}

void Step::answer(size_t index) {
  Message& message = state_.messages[index];
  const Operation& answered = operation(message.name);
  const Descriptor& descriptor = answered.movement.descriptor;
  const uint16_t rank = message.name.rank;
  message.answer = Answer::seen;
  Event event;
  event.kind = has_reply(answered) ? EventKind::reply : EventKind::ack;
  event.user_ptr = name_of(rank, message.name.place);
  event.fail = message.fail;
  if (message.fail == Fail::ok) {
    event.moved = message.moved;
    event.remote_offset = message.offset;
    event.list = message.list;
  }
  if (has_reply(answered) && message.fail == Fail::ok) {
    scatter(message.bytes, reply_parts(answered), process(rank).memory);
  }
  message.bytes.clear();
  const bool has_event = descriptor.has_queue && (has_reply(answered) || answered.movement.ack == Ack::full);
  if (has_event && !(descriptor.success_disable && message.fail == Fail::ok)) post(rank, true, event);
  const bool counts = has_reply(answered) ? descriptor.ct_reply : descriptor.ct_ack;
  if (!counts || !counts_apart(rank, descriptor.counter)) count_answer(index);
}

bool Step::may_count_answer(size_t index) const { return state_.messages[index].answer == Answer::seen; }

void Step::count_answer(size_t index) {
  Message& message = state_.messages[index];
  const Operation& answered = operation(message.name);
  const Descriptor& descriptor = answered.movement.descriptor;
  message.answer = Answer::ended;
  if (has_reply(answered) ? descriptor.ct_reply : descriptor.ct_ack) {
    const Count count = message.fail == Fail::ok ? Count{one_or(descriptor.ct_bytes, message.moved), 0} : Count{0, 1};
    add_to(message.name.rank, descriptor.counter, count);
  }
  end_if_over(index);
}

// True if a count may come later than its event, and somebody may notice.
bool Step::counts_apart(uint16_t rank, uint8_t counter) const {
  return counter != none && machine_.traits_.watched[rank][counter] && !machine_.rules_.counts_with_event;
}

// Forgets a message when nothing is left of it.
void Step::end_if_over(size_t index) {
  const Message& message = state_.messages[index];
  const bool is_answered = message.answer == Answer::ended || !wants_answer(operation(message.name));
  if (message.stage != Stage::ended || !message.is_sent || !message.is_send_counted || !is_answered) return;
  state_.messages.erase(state_.messages.begin() + static_cast<ptrdiff_t>(index));
}

// Where data begins in memory.
uint16_t Step::start_in(uint16_t rank, const Entry& entry, uint16_t offset, uint16_t moved) const {
  if (moved == 0 && machine_.traits_.has_scatter_lists[rank]) return 0;
  if (entry.pieces.empty()) return static_cast<uint16_t>(entry.memory.offset + offset);
  return parts_of(entry.memory, entry.pieces, offset, moved).front().offset;
}

Event Step::event_of_message(OperationName name, uint16_t entry, uint16_t offset, uint16_t moved) const {
  const Operation& sent = operation(name);
  const uint16_t target = sent.movement.target;
  Event event;
  event.initiator = name.rank;
  event.user = machine_.setup(name.rank).user;
  if (machine_.setup(sent.movement.target).matching) event.match_bits = sent.movement.match_bits;
  event.requested = requested_by(sent);
  event.moved = moved;
  event.remote_offset = sent.movement.remote_offset;
  event.start = start_in(target, operation({target, entry}).entry, offset, moved);
  if (sent.kind != OperationKind::get) event.hdr_data = name_of(name.rank, name.place);
  if (sent.kind == OperationKind::atomic || sent.kind == OperationKind::fetch_atomic)
    event.atomic = sent.movement.atomic;
  return event;
}

}  // namespace spinloom::model
