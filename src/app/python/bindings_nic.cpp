// spinloom._core: a live Ethernet NIC.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <optional>

#include "app/python/bindings_support.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "ethernet/device/card.hpp"
#include "ethernet/device/printed_line.hpp"
#include "ethernet/device/rule_text.hpp"
#include "ethernet/device/service.hpp"
#include "ethernet/port/open.hpp"

namespace spinloom::app {
namespace {

using ethernet::Card;
using frames::ContextId;
using PythonRule = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;  // word, mask, start, end
using PythonRules = std::tuple<bool, std::vector<PythonRule>, PythonRule>;  // any, rules, of the last frame

frames::Rule rule_of(const PythonRule& rule) { return std::make_from_tuple<frames::Rule>(rule); }
PythonRule python_rule_of(const frames::Rule& rule) { return {rule.index, rule.mask, rule.start, rule.end}; }

PythonRules rules_named(const std::string& name) {
  const frames::RuleSet set = unwrap(ethernet::rule_set_named(name));
  PythonRules out{set.mode == frames::RuleMode::any, {}, python_rule_of(set.last_frame)};
  for (const frames::Rule& rule : set.rules) std::get<1>(out).push_back(python_rule_of(rule));
  return out;
}

std::vector<uint8_t> vector_of(const nb::bytes& bytes) {
  const auto* const first = reinterpret_cast<const uint8_t*>(bytes.c_str());
  return {first, first + bytes.size()};
}

nb::dict counters_of(port::FramePort& port) {
  const port::Counters counters = port.counters();
  nb::dict out;
  out["received"] = counters.received;
  out["sent"] = counters.sent;
  out["dropped"] = counters.dropped;
  out["truncated"] = counters.truncated;
  return out;
}

class PythonCard {
 public:
  PythonCard(const std::string& wire, const std::optional<std::string>& host, uint32_t rule_sets, double patience_s) {
    ethernet::Options options;
    options.limits.matcher.rule_sets = rule_sets;
    options.patience = std::chrono::nanoseconds(static_cast<int64_t>(patience_s * 1e9));
    auto wire_port = unwrap(port::open_port(wire));
    port::PortPointer host_port = host ? unwrap(port::open_port(*host)) : nullptr;
    card_ = unwrap(Card::create(options, std::move(wire_port), std::move(host_port)));
  }

  void install(uint32_t id, const std::string& image, const nb::bytes& constants, const nb::bytes& state,
               uint64_t state_bytes, uint64_t host_bytes) {
    ethernet::ContextSetup setup;
    setup.image = image;
    setup.constants = vector_of(constants);
    setup.state = vector_of(state);
    setup.state_bytes = state_bytes;
    setup.host_bytes = host_bytes;
    unwrap(card_->install(ContextId{id}, setup));
  }
  [[nodiscard]] bool initialises(uint32_t id) const {
    const spin::Context* const context = card_->nic().context(ContextId{id});
    return context != nullptr && context->initialise_entry.has_value();
  }
  void initialise(uint32_t id) {
    unwrap(without_lock([&] { return card_->initialise(ContextId{id}); }));
  }
  void activate(uint32_t id, bool active) { unwrap(card_->activate(ContextId{id}, active)); }
  // Opens the NIC to programs and tools, which reach it by this name from now on.
  void serve(const std::string& name) { service_ = unwrap(ethernet::Service::open(name, *card_, rule_sets_)); }
  void configure(const std::vector<PythonRules>& given) {
    std::vector<frames::RuleSet> sets;
    for (const auto& [any, rules, last] : given) {
      frames::RuleSet& set = sets.emplace_back();
      set.mode = any ? frames::RuleMode::any : frames::RuleMode::all;
      for (const PythonRule& rule : rules) set.rules.push_back(rule_of(rule));
      set.last_frame = rule_of(last);
    }
    unwrap(card_->configure(sets));
    rule_sets_ = std::move(sets);
  }

  // Writes the first `limit` lines that handlers print to standard error as they come, and counts the others.
  void print_lines(uint64_t limit) {
    lines_left_ = limit;
    card_->set_debug([this](const frames::DebugLine& line) {
      if (lines_left_ == 0) {
        ++lines_dropped_;
        return;
      }
      --lines_left_;
      const ethernet::PrintedLine printed(line);
      std::fprintf(stderr, "%u.%u: %s\n", printed.cluster, printed.core, printable(printed.text).c_str());
    });
  }
  [[nodiscard]] std::string handler_now() const { return card_->running_handler(); }
  [[nodiscard]] uint64_t lines_lost() const { return lines_dropped_; }

  // Runs until the wire's file has ended, the time is up, or the handler of a signal raises, whose exception this
  // throws.
  void run(std::optional<double> seconds) {
    using Clock = std::chrono::steady_clock;
    const auto until = seconds ? Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(*seconds * 1e9))
                               : Clock::time_point::max();
    std::optional<nb::python_error> stopped;
    const Status status = without_lock([&] {
      return card_->run([&] {
        if (Clock::now() >= until) return false;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) stopped.emplace();
        return !stopped;
      });
    });
    if (stopped) throw nb::python_error(*stopped);
    unwrap(status);
  }

  [[nodiscard]] nb::dict report() const {
    nb::dict counts;
    for (uint8_t which = 0; which < frames::count_kinds; ++which) {
      counts[name_of(static_cast<frames::Count>(which))] = card_->nic().counts()[which];
    }
    counts["lost on the way to the host"] = card_->to_host_lost();
    counts["too long or too short for the wire"] = card_->unsendable_frames();
    nb::list contexts;
    for (uint32_t id = 0; id < card_->nic().limits().matcher.rule_sets; ++id) {
      const spin::TelemetryCounts* const counters = card_->nic().telemetry(ContextId{id});
      if (counters == nullptr) continue;
      nb::dict context;
      context["context"] = id;
      for (uint8_t which = 0; which < spin::telemetry_counts; ++which) {
        context[name_of(static_cast<spin::Telemetry>(which))] = (*counters)[which];
      }
      contexts.append(context);
    }
    const double ns = card_->stages().ns_per_cycle();
    nb::list stages;
    for (size_t which = 0; which < ethernet::stage_count; ++which) {
      const auto stage = static_cast<ethernet::Stage>(which);
      const ethernet::Stages::Spent& spent = card_->stages()[stage];
      stages.append(nb::make_tuple(ethernet::name_of(stage), spent.frames, static_cast<double>(spent.cycles) * ns));
    }
    nb::dict out;
    out["counts"] = counts;
    out["contexts"] = contexts;
    out["stages"] = stages;
    out["wire"] = counters_of(card_->wire());
    if (card_->host() != nullptr) out["host"] = counters_of(*card_->host());
    return out;
  }

  [[nodiscard]] nb::bytes mac() const {
    const packet::MacAddress mac = card_->wire().mac();
    return nb::bytes(mac.bytes.data(), mac.bytes.size());
  }
  [[nodiscard]] nb::bytes state(uint32_t id) const { return as_bytes(card_->state(ContextId{id})); }
  [[nodiscard]] nb::bytes host_memory(uint32_t id) const { return as_bytes(card_->host_memory(ContextId{id})); }
  [[nodiscard]] std::string description() const {
    std::string out = card_->wire().description();
    if (card_->host() != nullptr) out += "; host: " + card_->host()->description();
    return out;
  }

 private:
  [[nodiscard]] static nb::bytes as_bytes(std::span<const uint8_t> bytes) {
    return nb::bytes(bytes.data(), bytes.size());
  }
  std::vector<frames::RuleSet> rule_sets_;  // the argument of the last configure()
  std::unique_ptr<Card> card_;
  std::unique_ptr<ethernet::Service> service_;
  uint64_t lines_left_ = 0;
  uint64_t lines_dropped_ = 0;
};

// Sends warnings of the engine to standard error from now on.
void say_warnings() {
  log::install([](log::Level, std::string_view,
                  std::string_view message) { std::fprintf(stderr, "spinloom: %s\n", printable(message).c_str()); },
               log::Level::warning);
}

}  // namespace

void bind_nic(nb::module_& module) {
  module.def("rules_named", &rules_named, nb::arg("name"), "(any, [(word, mask, start, end)], of the last frame).");
  module.def("say_warnings", &say_warnings, "Warnings of the engine go to standard error from now on.");
  nb::class_<PythonCard>(module, "Card", "A live Ethernet NIC between a wire and a host's network stack.")
      .def(nb::init<const std::string&, const std::optional<std::string>&, uint32_t, double>(), nb::arg("wire"),
           nb::arg("host").none(), nb::arg("rule_sets"), nb::arg("patience_s"))
      .def("install", &PythonCard::install, nb::arg("context"), nb::arg("image"), nb::arg("constants"),
           nb::arg("state"), nb::arg("state_bytes"), nb::arg("host_bytes"))
      .def("initialises", &PythonCard::initialises, nb::arg("context"))
      .def("initialise", &PythonCard::initialise, nb::arg("context"))
      .def("activate", &PythonCard::activate, nb::arg("context"), nb::arg("active"))
      .def("configure", &PythonCard::configure, nb::arg("rule_sets"))
      .def("serve", &PythonCard::serve, nb::arg("name"))
      .def("print_lines", &PythonCard::print_lines, nb::arg("limit"))
      .def("handler_now", &PythonCard::handler_now)
      .def("lines_lost", &PythonCard::lines_lost)
      .def("run", &PythonCard::run, nb::arg("seconds").none())
      .def("report", &PythonCard::report)
      .def("mac", &PythonCard::mac)
      .def("state", &PythonCard::state, nb::arg("context"))
      .def("host_memory", &PythonCard::host_memory, nb::arg("context"))
      .def("description", &PythonCard::description);
}

}  // namespace spinloom::app
