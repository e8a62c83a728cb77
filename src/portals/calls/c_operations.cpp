// The C calls that put operations into schedules (spinloom/offload.h).
#include <algorithm>
#include <limits>
#include <optional>

#include "portals/calls/convert.hpp"
#include "portals/calls/offload.hpp"

namespace spinloom::calls {
namespace {

using collective::VertexKind;

bool lacks_memory(const collective::Pieces& pieces) {
  return std::ranges::any_of(pieces, [](const nic::IovecElement& piece) { return piece.base == nullptr; });
}

// Adds an operation to a schedule that has not been posted. Returns SPL_OP_NONE if the operation is refused.
spl_op add(const char* call, spl_schedule* schedule, collective::Vertex vertex) {
  if (schedule == nullptr) return SPL_OP_NONE;
  spl_oe* const engine = schedule->team->engine;
  if (schedule->offloaded) {
    engine->error = text(call, ": the schedule has been posted");
    return SPL_OP_NONE;
  }
  if (lacks_memory(vertex.from) || lacks_memory(vertex.to)) {
    engine->error = text(call, ": the memory is NULL, and has ",
                         collective::bytes_of(vertex.from) + collective::bytes_of(vertex.to), " B");
    return SPL_OP_NONE;
  }
  schedule->graph.operations.push_back(std::move(vertex));
  return static_cast<spl_op>(schedule->graph.operations.size() - 1);
}

spl_op refuse(spl_schedule* schedule, const std::string& reason) {
  if (schedule != nullptr) schedule->team->engine->error = reason;
  return SPL_OP_NONE;
}

collective::Pieces pieces(const void* memory, uint64_t bytes) {
  if (bytes == 0) return {};
  return {{static_cast<uint8_t*>(const_cast<void*>(memory)), bytes}};
}

std::optional<collective::Pieces> pieces(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return {};
  return list_of(list, count, std::numeric_limits<int>::max());
}

spl_op add_message(const char* call, spl_schedule* schedule, collective::Vertex vertex, uint32_t tag) {
  using collective::MessageName;
  if (schedule == nullptr) return SPL_OP_NONE;
  if (vertex.peer >= schedule->team->team.ranks.size()) return refuse(schedule, text(call, ": no rank ", vertex.peer));
  if (tag >= MessageName::tag_count)
    return refuse(schedule, text(call, ": tag ", tag, "; tags are below ", MessageName::tag_count));
  uint32_t& number = schedule->message_counts[{vertex.peer, tag, vertex.kind == VertexKind::send}];
  if (number == MessageName::number_count) {
    return refuse(schedule, text(call, ": more than ", MessageName::number_count, " messages with tag ", tag,
                                 "; use other tags"));
  }
  vertex.name.message = tag * MessageName::number_count + number++;
  return add(call, schedule, std::move(vertex));
}

spl_op add_one_sided(const char* call, spl_schedule* schedule, collective::Vertex vertex, const spl_target& target) {
  if (schedule == nullptr) return SPL_OP_NONE;
  if (target.rank >= schedule->team->team.ranks.size()) return refuse(schedule, text(call, ": no rank ", target.rank));
  spl_oe* const engine = schedule->team->engine;
  const NetworkInterface* const interface = engine->process->interface_of(engine->interface);
  if (interface == nullptr || target.portal >= portals_each) {
    return refuse(schedule, text(call, ": no portal table entry ", target.portal));
  }
  vertex.peer = target.rank;
  vertex.target = {portal_of(*interface, target.portal), target.bits, target.offset};
  return add(call, schedule, std::move(vertex));
}

// Returns an Error unless atomics of the NIC can combine such elements.
Status check_elements(uint64_t bytes, ptl_op_t op, ptl_datatype_t type) {
  if (op > PTL_BXOR || type >= PTL_DATATYPE_LAST) return fail(Code::invalid, "no such operation or type of elements");
  const auto datatype = static_cast<nic::Datatype>(type);
  if (bytes % nic::bytes_of(datatype) != 0) {
    return fail(Code::invalid, bytes, " B are no whole elements of ", nic::bytes_of(datatype), " B");
  }
  return spin::check(static_cast<nic::AtomicOperation>(op), datatype, nic::bytes_of(datatype), false, UINT32_MAX);
}

Status check_edge(const char* call, spl_schedule* schedule, spl_op first, spl_op then) {
  const auto& operations = schedule->graph.operations;
  if (schedule->offloaded) return fail(Code::invalid, call, ": the schedule has been posted");
  if (then >= operations.size() || first >= then) {
    return fail(Code::invalid, call, ": ", first, " -> ", then, " of ", operations.size(),
                " operations; the first was made before the other");
  }
  if (operations[then].kind != VertexKind::receive) return {};
  return fail(Code::unsupported, call, ": a receive begins with its schedule; let what uses its data wait instead");
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::Status;
using spinloom::collective::VertexKind;

extern "C" {

spl_op spl_send(spl_schedule* schedule, const void* from, uint64_t bytes, uint32_t to_rank, uint32_t tag) {
  return spinloom::calls::add_message(
      "spl_send", schedule, {.kind = VertexKind::send, .peer = to_rank, .from = spinloom::calls::pieces(from, bytes)},
      tag);
}

spl_op spl_receive(spl_schedule* schedule, void* to, uint64_t bytes, uint32_t from_rank, uint32_t tag) {
  return spinloom::calls::add_message(
      "spl_receive", schedule,
      {.kind = VertexKind::receive, .peer = from_rank, .to = spinloom::calls::pieces(to, bytes)}, tag);
}

spl_op spl_send_list(spl_schedule* schedule, const ptl_iovec_t* from, size_t count, uint32_t to_rank, uint32_t tag) {
  auto list = spinloom::calls::pieces(from, count);
  if (!list) return spinloom::calls::refuse(schedule, "spl_send_list: a piece has no memory, or they are too many");
  return spinloom::calls::add_message("spl_send_list", schedule,
                                      {.kind = VertexKind::send, .peer = to_rank, .from = std::move(*list)}, tag);
}

spl_op spl_receive_list(spl_schedule* schedule, const ptl_iovec_t* to, size_t count, uint32_t from_rank, uint32_t tag) {
  auto list = spinloom::calls::pieces(to, count);
  if (!list) return spinloom::calls::refuse(schedule, "spl_receive_list: a piece has no memory, or they are too many");
  return spinloom::calls::add_message("spl_receive_list", schedule,
                                      {.kind = VertexKind::receive, .peer = from_rank, .to = std::move(*list)}, tag);
}

spl_op spl_combine(spl_schedule* schedule, void* into, const void* from, uint64_t bytes, ptl_op_t op,
                   ptl_datatype_t type) {
  if (const Status checked = spinloom::calls::check_elements(bytes, op, type); !checked) {
    return spinloom::calls::refuse(schedule, "spl_combine: " + checked.error().message);
  }
  return spinloom::calls::add("spl_combine", schedule,
                              {.kind = VertexKind::combine,
                               .from = spinloom::calls::pieces(from, bytes),
                               .to = spinloom::calls::pieces(into, bytes),
                               .op = static_cast<spinloom::nic::AtomicOperation>(op),
                               .type = static_cast<spinloom::nic::Datatype>(type)});
}

spl_op spl_copy(spl_schedule* schedule, void* to, const void* from, uint64_t bytes) {
  return spinloom::calls::add("spl_copy", schedule,
                              {.kind = VertexKind::copy,
                               .from = spinloom::calls::pieces(from, bytes),
                               .to = spinloom::calls::pieces(to, bytes)});
}

spl_op spl_put(spl_schedule* schedule, const void* from, uint64_t bytes, spl_target target) {
  return spinloom::calls::add_one_sided(
      "spl_put", schedule, {.kind = VertexKind::put, .from = spinloom::calls::pieces(from, bytes)}, target);
}

spl_op spl_get(spl_schedule* schedule, void* to, uint64_t bytes, spl_target target) {
  return spinloom::calls::add_one_sided("spl_get", schedule,
                                        {.kind = VertexKind::get, .to = spinloom::calls::pieces(to, bytes)}, target);
}

spl_op spl_atomic(spl_schedule* schedule, const void* from, uint64_t bytes, ptl_op_t op, ptl_datatype_t type,
                  spl_target target) {
  const Status checked = spinloom::calls::check_elements(bytes, op, type);
  if (!checked) return spinloom::calls::refuse(schedule, "spl_atomic: " + checked.error().message);
  return spinloom::calls::add_one_sided("spl_atomic", schedule,
                                        {.kind = VertexKind::atomic,
                                         .from = spinloom::calls::pieces(from, bytes),
                                         .op = static_cast<spinloom::nic::AtomicOperation>(op),
                                         .type = static_cast<spinloom::nic::Datatype>(type)},
                                        target);
}

int spl_after(spl_schedule* schedule, spl_op first, spl_op then) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  const Status edge = spinloom::calls::check_edge("spl_after", schedule, first, then);
  if (!edge) return spinloom::calls::record_error(schedule->team->engine, edge.error());
  schedule->graph.operations[then].all.push_back(first);
  return PTL_OK;
}

int spl_after_any(spl_schedule* schedule, spl_op first, spl_op then) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  const Status edge = spinloom::calls::check_edge("spl_after_any", schedule, first, then);
  if (!edge) return spinloom::calls::record_error(schedule->team->engine, edge.error());
  schedule->graph.operations[then].any.push_back(first);
  return PTL_OK;
}

int spl_cpu_dependent(spl_schedule* schedule, spl_op op) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  auto& operations = schedule->graph.operations;
  if (schedule->offloaded || op >= operations.size() || operations[op].kind == VertexKind::receive) {
    schedule->team->engine->error = "spl_cpu_dependent: no operation, or a receive, or the schedule has been posted";
    return PTL_ARG_INVALID;
  }
  operations[op].cpu_dependent = true;
  return PTL_OK;
}

}  // extern "C"
