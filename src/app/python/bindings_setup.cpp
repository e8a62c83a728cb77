#include "app/python/bindings_setup.hpp"

#include <charconv>

#include "app/python/bindings_profile.hpp"

namespace spinloom::app {
namespace {

// Reads "in"; a number, the window in which packets are shuffled except the first and the last; or "all:N", a window in
// which these are shuffled, too.
simulated::Ordering ordering_of(const nb::object& order) {
  simulated::Ordering out;
  if (!nb::isinstance<nb::str>(order)) {
    if (nb::try_cast<uint32_t>(order, out.window)) return out;
    throw Raised{fail(Code::invalid, "config: \"order\" has the wrong type or range")};
  }
  const std::string name = nb::cast<std::string>(order);
  if (name == "in") return out;
  const char* const end = name.data() + name.size();
  out.reorder_all = name.starts_with("all:");
  const auto read = std::from_chars(name.data() + (out.reorder_all ? 4 : 0), end, out.window);
  if (!out.reorder_all || read.ec != std::errc() || read.ptr != end || out.window == 0) {
    throw Raised{fail(Code::invalid, "config: order is \"", name, "\", not \"in\", \"all:N\" or a number")};
  }
  return out;
}

}  // namespace

nb::object get(const nb::dict& config, const char* key) {
  if (!config.contains(key)) throw Raised{fail(Code::invalid, "config has no \"", key, "\"")};
  return config[key];
}

Setup setup_of(const nb::dict& config) {
  Setup out;
  out.profile = profile_of(get_as<nb::dict>(config, "profile"));
  out.hpus = get_as<uint32_t>(config, "hpus");
  out.payload_bytes = get_as<uint32_t>(config, "mtu");
  out.ordering = ordering_of(get(config, "order"));
  out.ordering.seed = get_as<uint64_t>(config, "seed");
  out.inject = unwrap(inject_named(get_as<std::string>(config, "inject")));
  if (config.contains("slice_cycles")) out.slice_cycles = get_as<uint32_t>(config, "slice_cycles");
  for (const auto& [name, bytes] : get_as<nb::dict>(config, "images")) {
    const nb::bytes file = nb::cast<nb::bytes>(bytes);
    const auto* data = reinterpret_cast<const uint8_t*>(file.c_str());
    out.images[nb::cast<std::string>(name)] = std::vector<uint8_t>(data, data + file.size());
  }
  return out;
}

void add_trace(nb::dict& row, const simulated::Trace& trace, int64_t origin_ps) {
  nb::list spans;
  for (const simulated::Span& span : trace.spans()) {
    spans.append(nb::make_tuple(simulated::name_of(span.track), span.lane, span.number, span.start.ps - origin_ps,
                                span.end.ps - origin_ps));
  }
  row["trace"] = spans;
  row["trace_dropped"] = trace.dropped();
}

}  // namespace spinloom::app
