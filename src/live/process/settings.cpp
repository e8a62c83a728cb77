#include "live/process/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <string_view>

#include "base/nearest.hpp"
#include "live/process/own_address.hpp"
#include "live/process/rail_wish.hpp"

namespace spinloom::process {
namespace {

constexpr std::array<Variable, 20> known_variables{{
    {"SPINLOOM_COPY", "auto, heap, single-copy, two-copy",
     "how long messages between processes of a machine are copied; two-copy touches no other process's memory"},
    {"SPINLOOM_DIRECT", "auto, mapped, packets",
     "whether messages to plain entries are done in their memory: where that is quicker, in the heap only, or never"},
    {"SPINLOOM_END_S", "0 to 1000000",
     "seconds that PtlNIFini and PtlFini wait for peers to end messages; 0 is for ever"},
    {"SPINLOOM_FABRIC", "auto, none, or a libfabric provider, as tcp or verbs:mlx5_0",
     "what carries packets between machines; auto takes a network that moves the bytes itself, else UDP"},
    {"SPINLOOM_FABRIC_FAULTS", "refuse=, delay=, drop=, corrupt=, fail=RATE, seed=N",
     "disturbs messages on their way to the fabric, for tests"},
    {"SPINLOOM_GATEWAY", "0, 1, store",
     "whether a rank forwards between ranks that do not reach each other; store keeps messages until they are whole"},
    {"SPINLOOM_HANDLERS", "folders, separated by ':'", "where handler images are looked for, before the library's own"},
    {"SPINLOOM_HANDLER_KIND", "sandbox, native", "which of NAME.elf and NAME.so is taken for the image NAME"},
    {"SPINLOOM_HPUS", "1 to 64", "threads that run handlers"},
    {"SPINLOOM_LIBFABRIC", "a file", "the libfabric library, where it is not found"},
    {"SPINLOOM_MEET", "contact, start", "when ranks of one machine meet: at their first contact, or all in PtlInit"},
    {"SPINLOOM_PCAP", "a file", "records UDP datagrams; the rank is appended to the name"},
    {"SPINLOOM_PMIX", "a file", "the PMIx library, where it is not found"},
    {"SPINLOOM_RAILS", "1 to 8 of auto, shm, udp, udp=ADDRESS, fabric, fabric=PROVIDER, separated by commas",
     "a NIC for each, over which spinloom/rails.h sends; the first one is that of the Portals calls"},
    {"SPINLOOM_SPIN_US", "0 to 1000000", "microseconds that a call which waits polls before it sleeps"},
    {"SPINLOOM_START_S", "0 to 1000000", "seconds that a rank waits for others to call PtlInit; 0 is for ever"},
    {"SPINLOOM_TRACE", "a file",
     "records packets, and what the rank does, for spinloom trace --live; the rank is appended to the name"},
    {"SPINLOOM_TRANSPORT", "auto, shm, udp, fabric", "how ranks reach each other"},
    {"SPINLOOM_UDP_ADDRESS", "an IPv4 address of this machine, or its network as 10.1.0.0/16; several with ','",
     "where UDP is bound; else the first interface's"},
    {"SPINLOOM_UDP_FAULTS", "drop=, duplicate=, reorder=, corrupt=RATE, seed=N",
     "disturbs outgoing datagrams, for tests"},
}};

// Variables that other parts of Spinloom read: ignored here, but not reported as misspelt.
constexpr std::string_view foreign[] = {"SPINLOOM_NIC",         "SPINLOOM_NIC_NAME", "SPINLOOM_HOST",
                                        "SPINLOOM_SEED",        "SPINLOOM_WORKERS",  "SPINLOOM_KERNEL",
                                        "SPINLOOM_BENCH_MPICC", "SPINLOOM_TEST_",    "SPINLOOM_PYTHON_EXECUTABLE",
                                        "SPINLOOM_GPU",         "SPINLOOM_RANK",     "SPINLOOM_SIZE",
                                        "SPINLOOM_MPI",         "SPINLOOM_SIM"};

bool is_foreign(std::string_view name) {
  for (const std::string_view other : foreign) {
    if (name.substr(0, other.size()) == other) return true;
  }
  return false;
}

template <class T>
bool read_choice(std::string_view value, std::initializer_list<std::pair<std::string_view, T>> choices, T& out) {
  for (const auto& [name, meaning] : choices) {
    if (name == value) {
      out = meaning;
      return true;
    }
  }
  return false;
}

bool read_number(std::string_view value, uint32_t least, uint32_t most, uint32_t& out) {
  uint32_t read_value = 0;
  const auto [end, trouble] = std::from_chars(value.data(), value.data() + value.size(), read_value);
  if (trouble != std::errc() || end != value.data() + value.size() || read_value < least || read_value > most)
    return false;
  out = read_value;
  return true;
}

bool read_variable(Settings& settings, std::string_view name, std::string_view value) {
  using live::CopyMode;
  if (name == "SPINLOOM_COPY") {
    return read_choice<CopyMode>(value,
                                 {{"auto", CopyMode::automatic},
                                  {"heap", CopyMode::heap},
                                  {"single-copy", CopyMode::single},
                                  {"two-copy", CopyMode::twice}},
                                 settings.copy);
  }
  if (name == "SPINLOOM_DIRECT") {
    return read_choice<live::DirectMode>(value,
                                         {{"auto", live::DirectMode::automatic},
                                          {"mapped", live::DirectMode::mapped},
                                          {"packets", live::DirectMode::never}},
                                         settings.direct);
  }
  if (name == "SPINLOOM_HANDLER_KIND") {
    return read_choice<HandlerKind>(value, {{"sandbox", HandlerKind::sandbox}, {"native", HandlerKind::native}},
                                    settings.handlers);
  }
  if (name == "SPINLOOM_HANDLERS") {
    for (size_t at = 0; at <= value.size();) {
      const size_t end = std::min(value.find(':', at), value.size());
      if (end > at) settings.handler_folders.emplace_back(value.substr(at, end - at));
      at = end + 1;
    }
    return true;
  }
  if (name == "SPINLOOM_TRANSPORT") {
    return read_choice<TransportChoice>(value,
                                        {{"auto", TransportChoice::automatic},
                                         {"shm", TransportChoice::shm},
                                         {"udp", TransportChoice::udp},
                                         {"fabric", TransportChoice::fabric}},
                                        settings.transport);
  }
  if (name == "SPINLOOM_MEET") {
    return read_choice<Meet>(value, {{"contact", Meet::contact}, {"start", Meet::start}}, settings.meet);
  }
  if (name == "SPINLOOM_UDP_ADDRESS") {
    const auto networks = own_networks(value);
    if (!networks) return false;
    settings.udp_networks = *networks;
    settings.udp_address = networks->front().address;
    return true;
  }
  if (name == "SPINLOOM_UDP_FAULTS") {
    auto faults = live::read_faults(std::string(value));
    if (faults) settings.faults = *faults;
    return faults.ok();
  }
  if (name == "SPINLOOM_RAILS") {
    auto rails = read_rails(value);
    if (rails) settings.rails = std::move(*rails);
    return !settings.rails.empty();
  }
  if (name == "SPINLOOM_FABRIC") {
    const auto wish = live::read_wish(value);
    if (wish) settings.fabric = *wish;
    return wish.has_value();
  }
  if (name == "SPINLOOM_FABRIC_FAULTS") {
    auto faults = live::read_fabric_faults(std::string(value));
    if (faults) settings.fabric_faults = *faults;
    return faults.ok();
  }
  if (name == "SPINLOOM_GATEWAY") {
    settings.gateway_stores = value == "store";
    return read_choice<live::Gateway>(
        value, {{"0", live::Gateway::no}, {"1", live::Gateway::beside}, {"store", live::Gateway::beside}},
        settings.gateway);
  }
  if (name == "SPINLOOM_LIBFABRIC") settings.libfabric = value;
  if (name == "SPINLOOM_PCAP") settings.record = value;
  if (name == "SPINLOOM_TRACE") settings.trace = value;
  if (name == "SPINLOOM_HPUS") return read_number(value, 1, 64, settings.hpus);
  if (name == "SPINLOOM_SPIN_US") return read_number(value, 0, 1'000'000, settings.spin_us);
  if (name == "SPINLOOM_END_S") return read_number(value, 0, 1'000'000, settings.end_s);
  if (name == "SPINLOOM_START_S") return read_number(value, 0, 1'000'000, settings.start_s);
  return true;
}

}  // namespace

std::span<const Variable> variables() { return known_variables; }

// UDP and fabrics need the cards of all ranks, and gateways and rails a count of them that all agree on.
bool may_meet_at_contact(const Settings& settings) {
  const bool by_memory = settings.transport == TransportChoice::automatic || settings.transport == TransportChoice::shm;
  const bool tells_udp = !settings.udp_networks.empty() || settings.faults.any() || !settings.record.empty();
  const bool tells_fabric = settings.fabric.kind == live::FabricWish::Kind::named || settings.fabric_faults.any();
  return settings.meet == Meet::contact && by_memory && !tells_udp && !tells_fabric && settings.rails.empty() &&
         settings.gateway == live::Gateway::no;
}

Settings read_settings(const char* const* environment) {
  Settings settings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    if (equals == std::string_view::npos || name.substr(0, 9) != "SPINLOOM_" || is_foreign(name)) continue;
    const Variable* found = nullptr;
    for (const Variable& variable : known_variables) found = name == variable.name ? &variable : found;
    if (found == nullptr) {
      std::vector<std::string_view> names;
      for (const Variable& variable : known_variables) names.emplace_back(variable.name);
      const auto near = nearest(name, names);
      settings.warnings.push_back(text("the environment variable ", name, " is not known",
                                       near ? text("; the nearest is ", *near) : std::string()));
    } else if (!read_variable(settings, name, entry.substr(equals + 1))) {
      settings.warnings.push_back(text(entry, ": it takes ", found->values, "; the default stands"));
    }
  }
  return settings;
}

}  // namespace spinloom::process
