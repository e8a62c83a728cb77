#include "torture/config.hpp"

#include <numeric>

namespace spinloom::torture {
namespace {

struct Field {
  const char* name;
  uint32_t Config::* member;
  uint32_t least;
  uint32_t most;
};

constexpr Field fields[] = {
    {"ranks", &Config::ranks, 2, 8},
    {"messages", &Config::messages, 1, 10'000},
    {"at_a_time", &Config::at_a_time, 1, 200},
    {"size_max", &Config::size_max, 1, 1 << 20},
    {"nic.payload_bytes", &Config::payload_bytes, 32, 65536},
    {"nic.packet_buffer_packets", &Config::packet_buffer_packets, 1, 4096},
    {"nic.hpus", &Config::hpus, 1, 64},
    {"nic.early_packets", &Config::early_packets, 1, 4096},
    {"nic.handler_messages", &Config::handler_messages, 1, 4096},
    {"nic.unexpected_headers", &Config::unexpected_headers, 1, 1 << 16},
    {"nic.at_once_bytes", &Config::at_once_bytes, 0, 4096},
    {"link.datagram_bytes", &Config::datagram_bytes, 256, 65507},
    {"link.window", &Config::window, 1, 4096},
    {"link.copy_bytes", &Config::copy_bytes, 0, 1 << 20},
    {"engine.limited", &Config::limited, 0, 1},
    {"faults.dead", &Config::dead, 0, 1},
    {"faults.drop", &Config::drop, 0, 500},
    {"faults.duplicate", &Config::duplicate, 0, 500},
    {"faults.reorder", &Config::reorder, 0, 1000},
    {"faults.corrupt", &Config::corrupt, 0, 500},
};

}  // namespace

const char* name_of(Work work) {
  constexpr const char* names[work_count] = {"put",        "get",         "atomic",     "fetch_atomic", "swap",
                                             "queue",      "append",      "unexpected", "chain",        "release",
                                             "shared",     "iovec",       "stream",     "process",      "scatter",
                                             "forward",    "misbehave",   "flow",       "counted",      "overrun",
                                             "crowd",      "cancel",      "collective", "frame_echo",   "frame_message",
                                             "frame_ring", "frame_stray", "frame_host", "frame_change"};
  return names[static_cast<size_t>(work)];
}

std::vector<std::string> Config::names() {
  std::vector<std::string> all;
  for (const Field& field : fields) all.emplace_back(field.name);
  for (size_t i = 0; i < work_count; ++i) all.push_back(text("work.", name_of(static_cast<Work>(i))));
  return all;
}

Status Config::set(std::string_view name, int64_t value) {
  for (const Field& field : fields) {
    if (name != field.name) continue;
    if (value < field.least || value > field.most) {
      return fail(Code::invalid, "scenario: ", name, " is ", value, ", it must be ", field.least, " to ", field.most);
    }
    this->*field.member = static_cast<uint32_t>(value);
    return {};
  }
  for (size_t i = 0; i < work_count; ++i) {
    if (name != text("work.", name_of(static_cast<Work>(i)))) continue;
    if (value < 0 || value > 1000)
      return fail(Code::invalid, "scenario: ", name, " is ", value, ", it must be 0 to 1000");
    weights[i] = static_cast<uint32_t>(value);
    return {};
  }
  std::string known;
  for (const std::string& one : names()) known += (known.empty() ? "" : ", ") + one;
  return fail(Code::invalid, "scenario: there is no number ", name, "; there are: ", known);
}

bool has_frames(const Config& config) {
  const auto first = config.weights.begin() + static_cast<ptrdiff_t>(first_frame_work);
  return std::accumulate(first, config.weights.end(), 0u) > 0;
}

Status check(const Config& config) {
  if (std::accumulate(config.weights.begin(), config.weights.end(), 0u) == 0) {
    return fail(Code::invalid, "scenario: all weights of [work] are 0");
  }
  const auto portals_end = config.weights.begin() + static_cast<ptrdiff_t>(first_frame_work);
  if (has_frames(config) && std::accumulate(config.weights.begin(), portals_end, 0u) > 0) {
    return fail(Code::invalid,
                "scenario: [work] has frames and Portals' operations; these need NICs of different kinds");
  }
  if (config.packet_buffer_packets < 2) {
    return fail(Code::invalid, "scenario: nic.packet_buffer_packets is ", config.packet_buffer_packets,
                ", a packet ahead of its header needs a second one's room");
  }
  return {};
}

}  // namespace spinloom::torture
