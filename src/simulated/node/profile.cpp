#include "simulated/node/profile.hpp"

#include <functional>
#include <string_view>
#include <vector>

#include "base/limits.hpp"

namespace spinloom::simulated {
namespace {

// One row for each field: its name in the file, its member, and its legal values.
using Store = std::function<Status(Profile&, const ProfileValue&)>;

struct Field {
  std::string_view name;
  Store store;
};

// Upper bounds: far above any machine, and low enough that no product of them overflows.
constexpr int64_t count_max = int64_t{1} << 20;   // counts and cycles
constexpr int64_t bytes_max = int64_t{1} << 32;
constexpr int64_t hertz_max = 1'000'000'000'000;
constexpr int64_t duration_max_ps = 1'000'000'000'000'000;
constexpr int64_t rate_max = 1'000'000'000;  // ps a byte, cycles a block

Result<int64_t> integer(const ProfileValue& value, int64_t minimum, int64_t maximum) {
  const int64_t* number = std::get_if<int64_t>(&value);
  if (number == nullptr) return fail(Code::invalid, "must be a whole number");
  if (*number < minimum || *number > maximum) {
    return fail(Code::invalid, "is ", *number, ", it must be ", minimum, " to ", maximum);
  }
  return *number;
}

Result<Rational> rational(const ProfileValue& value) {
  Rational out;
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    out = {*number, 1};
  } else if (const Rational* ratio = std::get_if<Rational>(&value)) {
    out = *ratio;
  } else {
    return fail(Code::invalid, "must be a number");
  }
  if (out.denominator <= 0 || out.numerator < 0) {
    return fail(Code::invalid, "is ", out.numerator, "/", out.denominator, ", it must not be negative");
  }
  if (out.numerator / out.denominator >= rate_max) {
    return fail(Code::invalid, "is ", out.numerator, "/", out.denominator, ", it must be less than ", rate_max);
  }
  return out;
}

template <class Access>
Store number(Access access, int64_t minimum, int64_t maximum = count_max) {
  return [=](Profile& profile, const ProfileValue& value) -> Status {
    SPL_ASSIGN(access(profile), integer(value, minimum, maximum));
    return {};
  };
}

template <class Access>
Store duration(Access access) {
  return [=](Profile& profile, const ProfileValue& value) -> Status {
    SPL_ASSIGN(const int64_t ps, integer(value, 0, duration_max_ps));
    access(profile) = Time{ps};
    return {};
  };
}

template <class Access>
Store rate(Access access) {
  return [=](Profile& profile, const ProfileValue& value) -> Status {
    SPL_ASSIGN(const Rational ratio, rational(value));
    if (ratio.numerator == 0) return fail(Code::invalid, "is zero, a rate must be positive");
    access(profile) = Rate(ratio.numerator, ratio.denominator);
    return {};
  };
}

template <class Access>
Store ratio(Access access) {
  return [=](Profile& profile, const ProfileValue& value) -> Status {
    SPL_ASSIGN(access(profile), rational(value));
    return {};
  };
}

Status store_core(Profile& profile, const ProfileValue& value) {
  const std::string* name = std::get_if<std::string>(&value);
  if (name == nullptr || (*name != "a15" && *name != "pulp")) {
    return fail(Code::unsupported, "is ", name == nullptr ? "not a name" : *name,
                "; the core models that exist are: a15, pulp");
  }
  profile.hpu.core = *name;
  return {};
}

template <class Access>
Store memory_level(Access access) {
  return [=](Profile& profile, const ProfileValue& value) -> Status {
    const std::string* name = std::get_if<std::string>(&value);
    if (name == nullptr || (*name != "L1" && *name != "L2")) return fail(Code::invalid, "must be L1 or L2");
    access(profile) = *name == "L1" ? MemoryLevel::l1 : MemoryLevel::l2;
    return {};
  };
}

// Returns a reference to a member, for the table below.
#define AT(member) [](Profile& p) -> decltype(auto) { return (p.member); }

const std::vector<Field>& fields_of_a_profile() {
  static const std::vector<Field> fields = {
      {"link.byte_time", rate(AT(link.byte_time))},
      {"link.gap", duration(AT(link.gap))},
      {"link.payload", number(AT(link.payload), 1)},
      {"link.switch", duration(AT(link.switch_latency))},
      {"link.wire", duration(AT(link.wire))},
      {"match.header", duration(AT(match.header))},
      {"match.packet", duration(AT(match.packet))},
      {"hpu.count", number(AT(hpu.count), 1)},
      {"hpu.clock", number(AT(hpu.clock), 1, hertz_max)},
      {"hpu.core", store_core},
      {"hpu.memory_latency", number(AT(hpu.memory_latency), 1)},
      {"a15.rename_width", number(AT(a15.rename_width), 1)},
      {"a15.window", number(AT(a15.window), 1)},
      {"a15.alus", number(AT(a15.alus), 1)},
      {"a15.multiply", number(AT(a15.multiply), 1)},
      {"a15.divide", number(AT(a15.divide), 1)},
      {"a15.float_units", number(AT(a15.float_units), 1)},
      {"a15.float_add", number(AT(a15.float_add), 1)},
      {"a15.float_multiply", number(AT(a15.float_multiply), 1)},
      {"a15.float_multiply_add", number(AT(a15.float_multiply_add), 1)},
      {"a15.float_divide", number(AT(a15.float_divide), 1)},
      {"a15.float_root", number(AT(a15.float_root), 1)},
      {"a15.float_compare", number(AT(a15.float_compare), 1)},
      {"a15.float_convert", number(AT(a15.float_convert), 1)},
      {"a15.float_move", number(AT(a15.float_move), 1)},
      {"a15.load", number(AT(a15.load), 1)},
      {"a15.front_end", number(AT(a15.front_end), 0)},
      {"a15.predictor_entries", number(AT(a15.predictor_entries), 1)},
      {"a15.device_load", number(AT(a15.device_load), 1)},
      {"a15.device_store", number(AT(a15.device_store), 1)},
      {"a15.device_answer", number(AT(a15.device_answer), 1)},
      {"a15.oldest", number(AT(a15.oldest), 0)},
      {"pulp.clusters", number(AT(pulp.clusters), 1)},
      {"pulp.multiply_high", number(AT(pulp.multiply_high), 1)},
      {"pulp.divide", number(AT(pulp.divide), 1)},
      {"pulp.branch_taken", number(AT(pulp.branch_taken), 1)},
      {"pulp.jump", number(AT(pulp.jump), 1)},
      {"pulp.straddle", number(AT(pulp.straddle), 0)},
      {"pulp.load_use", number(AT(pulp.load_use), 0)},
      {"pulp.counter", number(AT(pulp.counter), 1)},
      {"pulp.device", number(AT(pulp.device), 1)},
      {"pulp.l1", number(AT(pulp.l1), 1)},
      {"pulp.l2_handler", number(AT(pulp.l2_handler), 1)},
      {"pulp.l2_packet", number(AT(pulp.l2_packet), 1)},
      {"pulp.atomic_l1", number(AT(pulp.atomic_l1), 1)},
      {"pulp.atomic_l2", number(AT(pulp.atomic_l2), 1)},
      {"pulp.l1_banks", number(AT(pulp.l1_banks), 1)},
      {"pulp.l1_bank_bytes", number(AT(pulp.l1_bank_bytes), 1)},
      {"pulp.l2_banks", number(AT(pulp.l2_banks), 1)},
      {"pulp.l2_bank_bytes", number(AT(pulp.l2_bank_bytes), 1)},
      {"pulp.constants", memory_level(AT(pulp.constants))},
      {"pulp.state", memory_level(AT(pulp.state))},
      {"pulp.packets", memory_level(AT(pulp.packets))},
      {"pulp.port_width", number(AT(pulp.port_width), 1)},
      {"pulp.port_latency", number(AT(pulp.port_latency), 0)},
      {"pulp.dma_width", number(AT(pulp.dma_width), 1)},
      {"pulp.dma_setup", number(AT(pulp.dma_setup), 0)},
      {"pulp.dma_latency", number(AT(pulp.dma_latency), 0)},
      {"pulp.send_latency", number(AT(pulp.send_latency), 0)},
      {"memory.channel_byte_time", rate(AT(memory.channel_byte_time))},
      {"memory.channels_per_hpu", number(AT(memory.channels_per_hpu), 1, 1024)},
      {"memory.state_bytes", number(AT(memory.state_bytes), 1, bytes_max)},
      {"memory.packet_buffer_bytes", number(AT(memory.packet_buffer_bytes), 1, bytes_max)},
      {"memory.outbound_packets", number(AT(memory.outbound_packets), 1, limits::outbound_packets_max)},
      {"scheduler.clock", number(AT(scheduler.clock), 1, hertz_max)},
      {"scheduler.dispatch_cycles", number(AT(scheduler.dispatch_cycles), 0)},
      {"scheduler.start_cycles", number(AT(scheduler.start_cycles), 0)},
      {"scheduler.finish_cycles", number(AT(scheduler.finish_cycles), 0)},
      {"scheduler.vhpu_switch_cycles", number(AT(scheduler.vhpu_switch_cycles), 0)},
      {"scheduler.messages", number(AT(scheduler.messages), 1, 1 << 20)},
      {"pcie.byte_time", rate(AT(pcie.byte_time))},
      {"pcie.latency", duration(AT(pcie.latency))},
      {"pcie.write_payload", number(AT(pcie.write_payload), 1)},
      {"pcie.write_overhead", number(AT(pcie.write_overhead), 0)},
      {"pcie.event_bytes", number(AT(pcie.event_bytes), 0)},
      {"host.clock", number(AT(host.clock), 1, hertz_max)},
      {"host.memory_latency", duration(AT(host.memory_latency))},
      {"host.streamed_in_flight", number(AT(host.streamed_in_flight), 1)},
      {"host.strided_in_flight", number(AT(host.strided_in_flight), 1)},
      {"host.scattered_in_flight", number(AT(host.scattered_in_flight), 1)},
      {"host.refill_cycles", ratio(AT(host.refill_cycles))},
      {"host.memory_byte_time", rate(AT(host.memory_byte_time))},
      {"host.line", number(AT(host.line), 1)},
      {"host.cache", number(AT(host.cache), 1, bytes_max)},
      {"host.cache_ways", number(AT(host.cache_ways), 1)},
      {"host.mpitypes_vector_cycles", ratio(AT(host.mpitypes_vector_cycles))},
      {"host.mpitypes_list_cycles", ratio(AT(host.mpitypes_list_cycles))},
      {"host.best_vector_cycles", ratio(AT(host.best_vector_cycles))},
      {"host.best_list_cycles", ratio(AT(host.best_list_cycles))},
      {"host.segment_block_cycles", ratio(AT(host.segment_block_cycles))},
      {"host.command_latency", duration(AT(host.command_latency))},
      {"host.call", duration(AT(host.call))},
      {"checkpoint.paper_bytes", number(AT(checkpoint.paper_bytes), 1)},
      {"checkpoint.epsilon", ratio(AT(checkpoint.epsilon))},
      {"iovec.entries", number(AT(iovec.entries), 1)},
      {"iovec.refill", duration(AT(iovec.refill))},
      {"frame.bytes_min", number(AT(frame.bytes_min), 1)},
      {"frame.bytes_max", number(AT(frame.bytes_max), 1)},
      {"frame.ingress_min", number(AT(frame.ingress_min), 0)},
      {"frame.ingress_max", number(AT(frame.ingress_max), 0)},
  };
  return fields;
}

#undef AT

// The core that a field belongs to; empty if every profile has the field.
std::string_view core_of(std::string_view field) {
  if (field.starts_with("a15.") || field == "hpu.memory_latency" || field.starts_with("memory.channel")) return "a15";
  return field.starts_with("pulp.") ? "pulp" : "";
}

bool is_optional(std::string_view field) { return field.starts_with("frame."); }

Status check_relations(const Profile& profile) {
  const auto& ingress = profile.frame;
  if (profile.has_ingress() && (ingress.bytes_min >= ingress.bytes_max || ingress.ingress_min > ingress.ingress_max)) {
    return fail(Code::invalid, "frame: the largest frame of ", ingress.bytes_max, " B and ", ingress.ingress_max,
                " cycles must not be below the smallest of ", ingress.bytes_min, " B and ", ingress.ingress_min);
  }
  if (profile.memory.packet_buffer_bytes < profile.link.payload) {
    return fail(Code::invalid, "memory.packet_buffer_bytes is ", profile.memory.packet_buffer_bytes,
                ", one packet of link.payload ", profile.link.payload, " B does not fit");
  }
  if (profile.clustered() && profile.pulp.atomic_l2 < profile.pulp.l2_handler) {
    return fail(Code::invalid, "pulp.atomic_l2 is ", profile.pulp.atomic_l2, ", less than a load's pulp.l2_handler of ",
                profile.pulp.l2_handler);
  }
  if (profile.clustered() && profile.hpu.count % profile.pulp.clusters != 0) {
    return fail(Code::invalid, "hpu.count ", profile.hpu.count, " does not divide into pulp.clusters ",
                profile.pulp.clusters);
  }
  const bool power_of_two = (profile.host.line & (profile.host.line - 1)) == 0;
  if (!power_of_two) return fail(Code::invalid, "host.line is ", profile.host.line, ", it must be a power of two");
  if (profile.host.cache % (profile.host.line * profile.host.cache_ways) != 0) {
    return fail(Code::invalid, "host.cache of ", profile.host.cache, " B does not divide into host.cache_ways ",
                profile.host.cache_ways, " of host.line ", profile.host.line, " B");
  }
  return {};
}

}  // namespace

Result<Profile> build_profile(const ProfileFields& fields) {
  Profile profile;
  const auto optional = fields.lower_bound("frame.");
  const bool has_optional = optional != fields.end() && is_optional(optional->first);
  for (const Field& field : fields_of_a_profile()) {
    if (is_optional(field.name) && !has_optional) continue;
    // The table has hpu.core before the fields that depend on it.
    const std::string_view core = core_of(field.name);
    if (!core.empty() && core != profile.hpu.core) continue;
    const auto found = fields.find(std::string(field.name));
    if (found == fields.end()) return fail(Code::invalid, "NIC profile: field ", field.name, " is missing");
    if (const Status stored = field.store(profile, found->second); !stored) {
      return fail(stored.error().code, "NIC profile: field ", field.name, " ", stored.error().message);
    }
  }
  for (const auto& [name, value] : fields) {
    bool known = false;
    for (const Field& field : fields_of_a_profile()) known = known || field.name == name;
    if (!known) return fail(Code::invalid, "NIC profile: unknown field ", name);
    if (const std::string_view core = core_of(name); !core.empty() && core != profile.hpu.core) {
      return fail(Code::invalid, "NIC profile: field ", name, " belongs to hpu.core ", core, ", this profile has ",
                  profile.hpu.core);
    }
  }
  if (const Status related = check_relations(profile); !related) {
    return fail(related.error().code, "NIC profile: ", related.error().message);
  }
  return profile;
}

}  // namespace spinloom::simulated
