#include "portals/model/grammar.hpp"

#include <utility>

namespace spinloom::model {
namespace {

constexpr uint16_t slot_bytes = 32;  // the memory of one operation
constexpr uint16_t slots = 8;
constexpr uint16_t own_place = any;  // a remote offset that means: the operation's own

Operation call(OperationKind kind) {
  Operation operation;
  operation.kind = kind;
  return operation;
}

Operation append(List list, bool use_once) {
  Operation operation = call(OperationKind::append);
  operation.list = list;
  operation.entry.memory.length = slot_bytes;
  operation.entry.use_once = use_once;
  operation.entry.op_get = true;
  return operation;
}

// Each message of an operation of 8 bytes lies behind the one before it; the third finds too little room.
Operation append_block(List list) {
  Operation operation = append(list, false);
  operation.entry.manage_local = true;
  operation.entry.memory.length = 20;
  operation.entry.min_free = 8;
  return operation;
}

Operation count_unexpected(Operation operation) {
  operation.entry.count_unexpected = true;
  return operation;
}

Operation counted(Operation operation, bool bytes) {
  operation.entry.counter = 0;
  operation.entry.ct_comm = true;
  operation.entry.ct_overflow = true;
  operation.entry.ct_bytes = bytes;
  return operation;
}

Operation moving(OperationKind kind, uint16_t target, Ack ack = Ack::none) {
  Operation operation = call(kind);
  operation.movement.target = target;
  operation.movement.local.length = 8;
  operation.movement.remote_offset = own_place;
  operation.movement.ack = ack;
  operation.movement.descriptor.send_disable = true;
  return operation;
}

Operation with_send_event(Operation operation) {
  operation.movement.descriptor.send_disable = false;
  return operation;
}

Operation when(Operation operation, uint8_t counter, uint16_t threshold) {
  operation.trigger = Trigger{counter, threshold};
  return operation;
}

Operation eq(OperationKind kind, bool departures) {
  Operation operation = call(kind);
  operation.departures = departures;
  return operation;
}

Operation count(OperationKind kind, uint8_t counter, uint16_t success = 0) {
  Operation operation = call(kind);
  operation.counter = counter;
  operation.success = success;
  return operation;
}

Operation ct_wait(uint8_t counter, uint16_t test) {
  Operation operation = count(OperationKind::ct_wait, counter);
  operation.number = test;
  return operation;
}

Operation search(bool removes, bool use_once) {
  Operation operation = append(List::priority, use_once);
  operation.kind = OperationKind::search;
  operation.removes = removes;
  return operation;
}

constexpr auto put = OperationKind::put;
constexpr auto get = OperationKind::get;

Grammar lists() {
  return {"lists",
          {{{}, {moving(put, 1), moving(put, 1, Ack::full), eq(OperationKind::eq_wait, true)}, 2},
           {{},
            {append(List::priority, false), append(List::priority, true), append(List::overflow, false),
             append(List::overflow, true), call(OperationKind::unlink), eq(OperationKind::eq_wait, false)},
            3}}};
}

Grammar unexpected() {
  return {"unexpected",
          {{{}, {moving(put, 1), moving(get, 1)}, 2},
           {{},
            {append(List::overflow, false), append(List::overflow, true), append_block(List::overflow),
             count_unexpected(append_block(List::priority)), append(List::priority, false),
             append(List::priority, true), search(false, false), search(false, true), search(true, false),
             search(true, true), eq(OperationKind::eq_get, false), call(OperationKind::unlink)},
            3}}};
}

Grammar fetches() {
  Operation sum = moving(OperationKind::atomic, 1, Ack::full);
  sum.movement.remote_offset = 0;
  Operation fetched = moving(OperationKind::fetch_atomic, 1);
  fetched.movement.remote_offset = 0;
  fetched.movement.atomic = AtomicKind::product;
  Operation swapped = with_send_event(fetched);
  swapped.movement.atomic = AtomicKind::compare_swap_less;
  swapped.movement.local.length = 8;
  swapped.movement.operand = 66;
  Operation gotten = moving(get, 1);
  gotten.movement.local.length = 16;
  gotten.movement.remote_offset = 24;
  Operation read_only = append(List::priority, true);
  read_only.entry.op_put = false;
  Operation write_only = append(List::priority, false);
  write_only.entry.op_get = false;
  const std::vector<Operation> initiated{sum, fetched, swapped, gotten, eq(OperationKind::eq_wait, true)};
  return {"fetches",
          {{{}, initiated, 2},
           {{}, {append(List::priority, true), read_only, write_only, append(List::overflow, false), fetched}, 2}}};
}

Grammar counters() {
  RankGrammar target;
  target.setup.counters = 2;
  target.operations = {counted(append(List::priority, false), false),
                       counted(append(List::overflow, true), true),
                       when(moving(put, 0), 0, 1),
                       when(count(OperationKind::ct_inc, 1, 1), 0, 2),
                       when(moving(get, 0), 1, 1),
                       when(count(OperationKind::ct_set, 0, 5), 1, 1),
                       count(OperationKind::ct_inc, 0, 1),
                       count(OperationKind::ct_set, 1, 1),
                       count(OperationKind::ct_get, 0),
                       ct_wait(0, 1),
                       count(OperationKind::ct_cancel, 0)};
  target.length = 3;
  Operation counting = moving(put, 1, Ack::counted);
  counting.movement.descriptor.counter = 0;
  counting.movement.descriptor.ct_send = true;
  counting.movement.descriptor.ct_ack = true;
  RankGrammar initiator;
  initiator.setup.counters = 1;
  initiator.operations = {moving(put, 1), counting, append(List::priority, false), ct_wait(0, 2)};
  initiator.length = 2;
  return {"counters", {initiator, target}};
}

// Appends and unlinks that wait for a counter of messages.
Grammar triggers() {
  RankGrammar target;
  target.setup.counters = 1;
  target.operations = {counted(append(List::priority, false), false),
                       when(append(List::priority, true), 0, 1),
                       when(append(List::overflow, false), 0, 1),
                       when(append(List::overflow, true), 0, 2),
                       when(call(OperationKind::unlink), 0, 1),
                       count(OperationKind::ct_inc, 0, 1),
                       count(OperationKind::ct_cancel, 0)};
  target.length = 3;
  return {"triggers", {{{}, {moving(put, 1), moving(put, 1, Ack::full)}, 2}, target}};
}

Grammar flow() {
  Operation quiet = append(List::overflow, false);
  quiet.entry.flowctrl_disable = true;
  quiet.entry.memory.length = 0;
  RankGrammar target;
  target.setup.flow_control = true;
  target.setup.headers_max = 1;
  target.operations = {
      append(List::priority, true),   append(List::overflow, false),   quiet,
      call(OperationKind::pt_enable), call(OperationKind::pt_disable), eq(OperationKind::eq_wait, false)};
  target.length = 3;
  return {"flow", {{{}, {moving(put, 1), moving(put, 1, Ack::full), eq(OperationKind::eq_wait, true)}, 3}, target}};
}

Grammar limits() {
  RankGrammar target;
  target.setup.counters = 1;
  target.setup.entries_max = 2;
  target.setup.list_max = 1;
  target.setup.headers_max = 1;
  target.setup.triggered_max = 1;
  target.operations = {append(List::priority, true),
                       append(List::priority, false),
                       append(List::overflow, false),
                       append(List::overflow, true),
                       search(true, true),
                       when(moving(put, 0), 0, 1),
                       call(OperationKind::unlink),
                       count(OperationKind::ct_inc, 0, 1)};
  target.length = 3;
  return {"limits", {{{}, {moving(put, 1), moving(put, 1, Ack::full)}, 2}, target}};
}

Grammar crossing() {
  RankGrammar rank;
  Operation other_user = append(List::priority, false);
  other_user.entry.user = 7;
  rank.operations = {append(List::priority, true),
                     append(List::overflow, false),
                     other_user,
                     moving(put, 0, Ack::full),
                     moving(put, 1),
                     eq(OperationKind::eq_get, false)};
  rank.length = 2;
  return {"crossing", {rank, rank}};
}

}  // namespace

std::vector<Grammar> grammars() {
  return {lists(), unexpected(), fetches(), counters(), triggers(), flow(), limits(), crossing()};
}

std::optional<RankProgram> placed(RankProgram rank) {
  rank.setup.memory_bytes = slot_bytes * slots;
  std::optional<uint16_t> appended;
  for (uint16_t place = 0; place < rank.operations.size(); ++place) {
    Operation& operation = rank.operations[place];
    const auto slot = static_cast<uint16_t>(place % slots * slot_bytes);
    switch (operation.kind) {
      case OperationKind::append: appended = place; [[fallthrough]];
      case OperationKind::search: operation.entry.memory.offset = slot; break;
      case OperationKind::unlink:
        if (!appended) return std::nullopt;
        operation.number = *appended;
        break;
      case OperationKind::put:
      case OperationKind::get:
      case OperationKind::atomic:
      case OperationKind::fetch_atomic:
        operation.movement.local.offset = slot;
        operation.movement.fetch_offset = static_cast<uint16_t>(slot + slot_bytes / 2);
        if (operation.movement.remote_offset == own_place) {
          operation.movement.remote_offset = static_cast<uint16_t>(8 * (place % 4));
        }
        break;
      default: break;
    }
  }
  return rank;
}

uint64_t programs_of(const Grammar& grammar) {
  uint64_t programs = 1;
  for (const RankGrammar& rank : grammar.ranks) {
    for (uint16_t place = 0; place < rank.length; ++place) programs *= rank.operations.size();
  }
  return programs;
}

std::optional<Program> program_at(const Grammar& grammar, uint64_t number) {
  Program program;
  for (const RankGrammar& rank : grammar.ranks) {
    RankProgram made{rank.setup, {}};
    for (uint16_t place = 0; place < rank.length; ++place) {
      made.operations.push_back(rank.operations[number % rank.operations.size()]);
      number /= rank.operations.size();
    }
    auto with_memory = placed(std::move(made));
    if (!with_memory) return std::nullopt;
    program.ranks.push_back(std::move(*with_memory));
  }
  return program;
}

}  // namespace spinloom::model
