#include <iterator>
#include <numeric>
#include <utility>

#include "portals/model/grammar.hpp"

namespace spinloom::model {
namespace {

constexpr uint16_t counters = 3;

// Cuts `length` bytes into at most three pieces, which lie within `span` bytes in any order.
std::vector<Region> random_pieces(Random& random, uint16_t length, uint16_t span) {
  std::vector<Region> pieces;
  while (length > 0) {
    const auto taken = pieces.size() == 2 ? length : static_cast<uint16_t>(1 + random.below(length));
    pieces.push_back({0, taken});
    length = static_cast<uint16_t>(length - taken);
    span = static_cast<uint16_t>(span - taken);
  }
  std::vector<size_t> places(pieces.size());
  std::iota(places.begin(), places.end(), size_t{0});
  random.shuffle(places);
  uint16_t at = 0;
  for (const size_t place : places) {
    const auto gap = static_cast<uint16_t>(random.below(span + 1u));
    span = static_cast<uint16_t>(span - gap);
    pieces[place].offset = static_cast<uint16_t>(at + gap);
    at = static_cast<uint16_t>(at + gap + pieces[place].length);
  }
  return pieces;
}

Entry random_entry(Random& random) {
  Entry entry;
  entry.memory.length = random.chance(1, 8) ? uint16_t{0} : static_cast<uint16_t>(8 * (1 + random.below(4)));
  if (random.chance(1, 6)) entry.pieces = random_pieces(random, entry.memory.length, 32);
  entry.match_rank = random.chance(1, 4) ? static_cast<uint16_t>(random.below(2)) : any;
  entry.match_bits = static_cast<uint16_t>(random.below(2));
  entry.ignore_bits = random.chance(3, 4) ? uint16_t{1} : uint16_t{0};
  entry.user = random.chance(1, 12) ? uint16_t{7} : any;
  entry.op_put = !random.chance(1, 8);
  entry.op_get = random.chance(1, 2);
  entry.use_once = random.chance(1, 2);
  entry.manage_local = random.chance(1, 4);
  if (entry.manage_local && random.chance(1, 2)) entry.min_free = static_cast<uint16_t>(8 * (1 + random.below(2)));
  entry.count_unexpected = entry.manage_local && random.chance(1, 2);
  entry.no_truncate = random.chance(1, 4);
  entry.unexpected_hdr_disable = random.chance(1, 8);
  entry.link_disable = random.chance(1, 2);
  entry.comm_disable = random.chance(1, 8);
  entry.flowctrl_disable = random.chance(1, 4);
  entry.over_disable = random.chance(1, 8);
  entry.unlink_disable = random.chance(1, 4);
  if (random.chance(1, 2)) {
    entry.counter = static_cast<uint8_t>(random.below(counters));
    entry.ct_comm = random.chance(3, 4);
    entry.ct_overflow = random.chance(1, 2);
    entry.ct_bytes = random.chance(1, 4);
  }
  return entry;
}

// An entry of a portal table entry without matching has no options of matching.
void make_list_entry(Entry& entry) {
  entry.match_rank = any;
  entry.match_bits = entry.ignore_bits = entry.min_free = 0;
  entry.manage_local = entry.no_truncate = entry.count_unexpected = false;
}

Movement random_movement(Random& random, OperationKind kind, uint16_t ranks) {
  Movement movement;
  movement.target = static_cast<uint16_t>(random.below(ranks));
  movement.local.length = random.chance(1, 8) ? uint16_t{0} : static_cast<uint16_t>(8 * (1 + random.below(2)));
  movement.match_bits = static_cast<uint16_t>(random.below(2));
  movement.remote_offset = static_cast<uint16_t>(8 * random.below(4));
  if (kind == OperationKind::put || kind == OperationKind::atomic) movement.ack = static_cast<Ack>(random.below(4));
  Descriptor& descriptor = movement.descriptor;
  descriptor.has_queue = random.chance(3, 4) || movement.ack == Ack::full;
  const bool must_count = movement.ack == Ack::counted || movement.ack == Ack::operation_completed;
  if (must_count || random.chance(1, 3)) {
    descriptor.counter = static_cast<uint8_t>(random.below(counters));
    descriptor.ct_send = random.chance(1, 2);
    descriptor.ct_ack = random.chance(3, 4);
    descriptor.ct_reply = random.chance(3, 4);
    descriptor.ct_bytes = movement.ack != Ack::operation_completed && random.chance(1, 4);
  }
  descriptor.send_disable = random.chance(1, 2);
  descriptor.success_disable = random.chance(1, 8);
  movement.is_signed = random.chance(1, 2);
  if (kind == OperationKind::atomic) movement.atomic = static_cast<AtomicKind>(random.below(10));
  if (kind == OperationKind::fetch_atomic) movement.atomic = static_cast<AtomicKind>(random.below(18));
  if (kind == OperationKind::fetch_atomic && is_one_element(movement.atomic)) movement.local.length = 8;
  if (is_one_element(movement.atomic)) movement.operand = random.between(-2, 130);
  if (random.chance(1, 6)) {  // its half of the slot; the other half takes the reply of a fetching atomic
    movement.skip = static_cast<uint16_t>(random.below(17u - movement.local.length));
    const auto listed = static_cast<uint16_t>(movement.skip + movement.local.length);
    movement.pieces = random_pieces(random, listed, 16);
    if (movement.pieces.empty()) movement.skip = 0;
  }
  return movement;
}

OperationKind random_kind(Random& random) {
  static constexpr OperationKind kinds[] = {
      OperationKind::append,       OperationKind::append,    OperationKind::append, OperationKind::append,
      OperationKind::put,          OperationKind::put,       OperationKind::put,    OperationKind::get,
      OperationKind::atomic,       OperationKind::unlink,    OperationKind::search, OperationKind::fetch_atomic,
      OperationKind::ct_inc,       OperationKind::ct_set,    OperationKind::ct_get, OperationKind::ct_cancel,
      OperationKind::pt_disable,   OperationKind::pt_enable, OperationKind::eq_get, OperationKind::eq_get,
      OperationKind::bundle_begin, OperationKind::bundle_end};
  return kinds[random.below(std::size(kinds))];
}

Operation random_operation(Random& random, uint16_t ranks) {
  Operation operation;
  operation.kind = random_kind(random);
  operation.list = random.chance(1, 2) ? List::priority : List::overflow;
  operation.removes = random.chance(1, 2);
  operation.entry = random_entry(random);
  operation.movement = random_movement(random, operation.kind, ranks);
  operation.counter = static_cast<uint8_t>(random.below(counters));
  (random.chance(3, 4) ? operation.success : operation.failure) = static_cast<uint16_t>(random.below(3));
  operation.departures = random.chance(1, 2);
  const bool may_wait = moves_data(operation.kind) || operation.kind == OperationKind::ct_inc ||
                        operation.kind == OperationKind::ct_set || operation.kind == OperationKind::append ||
                        operation.kind == OperationKind::unlink;
  if (may_wait && random.chance(1, 4)) {
    operation.trigger = Trigger{static_cast<uint8_t>(random.below(counters)), static_cast<uint16_t>(random.below(4))};
  }
  return operation;
}

// A message of a rank to itself may write over its own source. Nobody promises an order of its bytes then, and where a
// list cuts elements, it moves them in parts, which the model does not: there are no lists where that may happen.
void drop_lists_over_own_sources(RankProgram& program, uint16_t rank) {
  constexpr uint16_t local_span = 16, entry_span = 32;
  for (Operation& sent : program.operations) {
    if (!moves_data(sent.kind) || sent.movement.target != rank) continue;
    for (Operation& appended : program.operations) {
      if (appended.kind != OperationKind::append) continue;
      const Region source{sent.movement.local.offset, local_span};
      if (!overlap(source, {appended.entry.memory.offset, entry_span})) continue;
      sent.movement.pieces.clear();
      sent.movement.skip = 0;
      appended.entry.pieces.clear();
    }
  }
}

}  // namespace

Program random_program(Random& random, uint16_t ranks, uint16_t calls) {
  return random_history(random, ranks, calls, 1);
}

Program random_history(Random& random, uint16_t ranks, uint16_t calls, uint16_t windows) {
  Operation settle;
  settle.kind = OperationKind::settle;
  for (;;) {
    Program program;
    for (uint16_t rank = 0; rank < ranks; ++rank) {
      RankProgram made;
      made.setup.counters = counters;
      made.setup.matching = !random.chance(1, 6);
      made.setup.flow_control = random.chance(1, 4);
      if (made.setup.flow_control && random.chance(1, 2))
        made.setup.arrivals_max = static_cast<uint16_t>(1 + random.below(3));
      made.setup.has_queue = made.setup.flow_control || !random.chance(1, 8);
      made.setup.user = static_cast<uint16_t>(random.below(2) * 7);
      if (random.chance(1, 4)) made.setup.headers_max = static_cast<uint16_t>(random.below(3));
      if (random.chance(1, 8)) made.setup.list_max = 1;
      if (random.chance(1, 8)) made.setup.entries_max = 2;
      if (random.chance(1, 8)) made.setup.triggered_max = 1;
      for (uint16_t window = 0; window < windows; ++window) {
        if (window > 0) made.operations.push_back(settle);
        for (uint16_t i = 0; i < calls; ++i) {
          Operation& operation = made.operations.emplace_back(random_operation(random, ranks));
          if (!made.setup.matching) make_list_entry(operation.entry);
        }
      }
      auto with_memory = placed(std::move(made));
      if (!with_memory) break;
      drop_lists_over_own_sources(*with_memory, rank);
      program.ranks.push_back(std::move(*with_memory));
    }
    if (program.ranks.size() == ranks) return program;
  }
}

}  // namespace spinloom::model
