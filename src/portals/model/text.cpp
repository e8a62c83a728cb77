#include "portals/model/text.hpp"

#include <sstream>
#include <utility>

namespace spinloom::model {
namespace {

// Writes " name" for flags that are set and " name=value" for numbers that are not the default.
class Fields {
 public:
  explicit Fields(std::ostream& out) : out_(out) {}
  Fields& flag(const char* name, bool value) {
    if (value) out_ << ' ' << name;
    return *this;
  }
  Fields& number(const char* name, int64_t value, int64_t usual) {
    if (value != usual) out_ << ' ' << name << '=' << value;
    return *this;
  }
  Fields& pieces(const char* name, const std::vector<Region>& pieces) {
    for (const Region& piece : pieces) region(name, piece);
    return *this;
  }
  Fields& region(const char* name, Region region) {
    out_ << ' ' << name << '=' << region.offset << '+' << region.length;
    return *this;
  }

 private:
  std::ostream& out_;
};

void write(std::ostream& out, const Entry& entry) {
  Fields(out)
      .region("memory", entry.memory)
      .pieces("piece", entry.pieces)
      .number("match_rank", entry.match_rank, any)
      .number("match_bits", entry.match_bits, 0)
      .number("ignore_bits", entry.ignore_bits, 0)
      .number("min_free", entry.min_free, 0)
      .number("user", entry.user, any)
      .number("counter", entry.counter, none)
      .flag("op_put", entry.op_put)
      .flag("op_get", entry.op_get)
      .flag("use_once", entry.use_once)
      .flag("manage_local", entry.manage_local)
      .flag("no_truncate", entry.no_truncate)
      .flag("count_unexpected", entry.count_unexpected)
      .flag("unexpected_hdr_disable", entry.unexpected_hdr_disable)
      .flag("link_disable", entry.link_disable)
      .flag("comm_disable", entry.comm_disable)
      .flag("flowctrl_disable", entry.flowctrl_disable)
      .flag("success_disable", entry.success_disable)
      .flag("over_disable", entry.over_disable)
      .flag("unlink_disable", entry.unlink_disable)
      .flag("ct_comm", entry.ct_comm)
      .flag("ct_overflow", entry.ct_overflow)
      .flag("ct_bytes", entry.ct_bytes);
}

void write(std::ostream& out, const Operation& operation) {
  const Movement& movement = operation.movement;
  const Descriptor& descriptor = movement.descriptor;
  Fields(out)
      .number("target", movement.target, any)
      .region("local", movement.local)
      .pieces("piece", movement.pieces)
      .number("skip", movement.skip, 0)
      .number("fetch_offset", movement.fetch_offset, 0)
      .number("match_bits", movement.match_bits, 0)
      .number("remote_offset", movement.remote_offset, 0)
      .flag("ack", movement.ack == Ack::full)
      .flag("ct_ack_request", movement.ack == Ack::counted)
      .flag("oc_ack_request", movement.ack == Ack::operation_completed)
      .flag("no_queue", !descriptor.has_queue)
      .number("counter", descriptor.counter, none)
      .flag("ct_send", descriptor.ct_send)
      .flag("ct_ack", descriptor.ct_ack)
      .flag("ct_reply", descriptor.ct_reply)
      .flag("ct_bytes", descriptor.ct_bytes)
      .flag("send_disable", descriptor.send_disable)
      .flag("success_disable", descriptor.success_disable);
  if (operation.kind == OperationKind::atomic || operation.kind == OperationKind::fetch_atomic) {
    Fields(out)
        .number("op", static_cast<int64_t>(movement.atomic), -1)
        .flag("signed", movement.is_signed)
        .number("operand", movement.operand, 0);
  }
}

void write_operation(std::ostream& out, const Operation& operation) {
  out << name_of(operation.kind);
  switch (operation.kind) {
    case OperationKind::append:
      out << (operation.list == List::priority ? " priority" : " overflow");
      write(out, operation.entry);
      break;
    case OperationKind::search:
      Fields(out).flag("delete", operation.removes);
      write(out, operation.entry);
      break;
    case OperationKind::unlink: out << " entry of " << operation.number; break;
    case OperationKind::put:
    case OperationKind::get:
    case OperationKind::atomic:
    case OperationKind::fetch_atomic: write(out, operation); break;
    case OperationKind::ct_inc:
    case OperationKind::ct_set:
      out << " counter " << int{operation.counter} << " {" << operation.success << ", " << operation.failure << '}';
      break;
    case OperationKind::ct_wait: out << " counter " << int{operation.counter} << " for " << operation.number; break;
    case OperationKind::ct_get:
    case OperationKind::ct_cancel: out << " counter " << int{operation.counter}; break;
    case OperationKind::eq_get:
    case OperationKind::eq_wait: out << (operation.departures ? " departures" : " arrivals"); break;
    default: break;
  }
  if (operation.trigger) {
    out << " when counter " << int{operation.trigger->counter} << " reaches " << operation.trigger->threshold;
  }
}

void write(std::ostream& out, const Returned& returned) {
  out << name_of(returned.code);
  if (returned.count != Count{}) out << " {" << returned.count.success << ", " << returned.count.failure << '}';
  if (returned.event) out << ' ' << text_of(*returned.event);
}

template <class Enum, size_t Size>
const char* one_of(const char* const (&names)[Size], Enum value) {
  const auto place = static_cast<size_t>(value);
  return place < Size ? names[place] : "unknown";
}

}  // namespace

const char* name_of(OperationKind kind) {
  static constexpr const char* names[] = {"append",  "unlink",       "search",     "put",       "get",
                                          "atomic",  "fetch_atomic", "ct_inc",     "ct_set",    "ct_get",
                                          "ct_wait", "ct_cancel",    "pt_disable", "pt_enable", "eq_get",
                                          "eq_wait", "bundle_begin", "bundle_end", "settle"};
  return one_of(names, kind);
}

const char* name_of(EventKind kind) {
  static constexpr const char* names[] = {
      "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
      "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
      "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH"};
  return one_of(names, kind);
}

const char* name_of(Fail fail) {
  static constexpr const char* names[] = {"ok",           "undeliverable", "dropped", "pt_disabled", "perm_violation",
                                          "op_violation", "no_match"};
  return one_of(names, fail);
}

const char* name_of(Code code) {
  static constexpr const char* names[] = {"ok", "empty", "in_use", "invalid", "no_space"};
  return one_of(names, code);
}

std::string text_of(const Program& program) {
  std::ostringstream out;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const Setup& setup = program.ranks[rank].setup;
    if (rank == program.killed) out << "dies at some moment: ";
    out << "rank " << rank << ": " << setup.counters << " counters";
    Fields(out)
        .flag("no_matching", !setup.matching)
        .flag("flow_control", setup.flow_control)
        .number("arrivals_max", setup.arrivals_max, any)
        .flag("no_queue", !setup.has_queue)
        .number("user", setup.user, 0)
        .number("entries_max", setup.entries_max, any)
        .number("list_max", setup.list_max, any)
        .number("headers_max", setup.headers_max, any)
        .number("triggered_max", setup.triggered_max, any);
    out << '\n';
    for (size_t place = 0; place < program.ranks[rank].operations.size(); ++place) {
      out << "  " << place << ": ";
      write_operation(out, program.ranks[rank].operations[place]);
      out << '\n';
    }
  }
  return out.str();
}

std::string text_of(const Event& event) {
  std::ostringstream out;
  out << name_of(event.kind);
  if (event.fail != Fail::ok) out << ' ' << name_of(event.fail);
  Fields(out)
      .flag("overflow", event.list == List::overflow)
      .number("initiator", event.initiator, 0)
      .number("user", event.user, 0)
      .number("match_bits", event.match_bits, 0)
      .number("rlength", event.requested, 0)
      .number("mlength", event.moved, 0)
      .number("remote_offset", event.remote_offset, 0)
      .number("start", event.start, 0)
      .number("op", static_cast<int64_t>(event.atomic), 0);
  const auto whose = [&](const char* name, uint16_t value) {
    if (value != 0) out << ' ' << name << "=rank " << value / 256 - 1 << " call " << value % 256;
  };
  whose("hdr_data", event.hdr_data);
  whose("user_ptr", event.user_ptr);
  return out.str();
}

std::string text_of(const Program& program, const Outcome& outcome) {
  std::ostringstream out;
  for (size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
    const RankOutcome& seen = outcome.ranks[rank];
    out << "rank " << rank << ":";
    for (const Count& count : seen.counters) out << " {" << count.success << ", " << count.failure << '}';
    Fields(out)
        .number("dropped", seen.dropped, 0)
        .number("permission_violations", seen.permission_violations, 0)
        .number("operation_violations", seen.operation_violations, 0);
    out << '\n';
    for (size_t place = 0; place < program.ranks[rank].operations.size(); ++place) {
      out << "  " << place << ": " << name_of(program.ranks[rank].operations[place].kind) << " -> ";
      if (place < seen.returned.size()) {
        write(out, seen.returned[place]);
      } else {
        out << "never returns";
      }
      out << '\n';
    }
    for (const Event& event : seen.arrivals) out << "  arrivals: " << text_of(event) << '\n';
    for (const Event& event : seen.departures) out << "  departures: " << text_of(event) << '\n';
    out << "  memory that changed:";
    for (size_t at = 0; at < seen.memory.size(); ++at) {
      if (seen.memory[at] == first_byte(static_cast<uint16_t>(rank), static_cast<uint16_t>(at))) continue;
      out << ' ' << at << ':' << int{seen.memory[at]};
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace spinloom::model
