// spinloom._core: schedules on the NICs of a profile.
#include "app/python/bindings_fidelity.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/python/bindings_goal_model.hpp"
#include "app/python/bindings_profile.hpp"
#include "app/python/bindings_support.hpp"
#include "app/python/bindings_watched.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/blob_type.hpp"
#include "memory/layout/text.hpp"
#include "predict/goal/nics/fidelity.hpp"
#include "predict/goal/nics/nic_programs.hpp"

namespace spinloom::app {
namespace {

goal::Sample sample_of(const std::vector<uint32_t>& chosen, uint32_t ranks) {
  std::vector<bool> is_chosen(ranks);
  for (const uint32_t rank : chosen) {
    if (rank >= ranks) unwrap(Status(fail(Code::invalid, "rank ", rank, " is none: ranks are 0 to ", ranks - 1)));
    is_chosen[rank] = true;
  }
  return goal::Sample(std::move(is_chosen));
}

nb::dict run_on(const schedule::Schedule& schedule, const std::string& fidelity, const nb::dict& profile, uint64_t o_ps,
                const Ratio& O, uint64_t S_bytes, uint64_t unit_ps, const std::optional<nb::dict>& network,
                const std::optional<Noise>& noise, const std::optional<Ratio>& layout, const nb::object& progress,
                const std::optional<std::vector<uint32_t>>& ranks, uint64_t L_ps, uint64_t g_ps, const Ratio& G,
                bool record) {
  if (fidelity != "nic" && fidelity != "full") {
    unwrap(Status(fail(Code::invalid, "there is no fidelity \"", fidelity, "\" on NICs; there are nic and full")));
  }
  const simulated::Profile nics = profile_of(profile);
  goal::Model model{L_ps, o_ps, g_ps, rate("G", G), rate("O", O), S_bytes, unit_ps};
  if (network.has_value()) model.network = network_of(*network);
  if (noise.has_value()) model.noise = noise_of(*noise);
  if (layout.has_value()) model.layout = rate("layout", *layout);
  const goal::Fidelity level = fidelity == "nic" ? goal::Fidelity::nic : goal::Fidelity::full;
  goal::Record run_record;
  nb::dict out = dict_of(watched(progress, [&](const goal::Watch& watch) {
    if (!ranks.has_value()) return goal::run_on(level, nics, schedule, model, record ? &run_record : nullptr, watch);
    return goal::run_sample(level, nics, schedule, model, sample_of(*ranks, schedule.ranks()), watch);
  }));
  if (record && !ranks.has_value()) out["spans"] = spans_of(schedule, run_record);
  return out;
}

// Returns, for each Shape whose own end has a layout with bytes and that a transfer uses: that layout, and how many
// transfers use it.
nb::list layout_uses(const schedule::Schedule& schedule) {
  std::vector<uint64_t> transfers(schedule.shapes().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (const schedule::Operation& operation : program.operations) transfers[operation.shape] += program.passes;
  }
  nb::list out;
  for (uint32_t number = 0; number < transfers.size(); ++number) {
    const uint32_t layout = schedule.transfer_layouts(number).local;
    if (layout == schedule::contiguous || transfers[number] == 0 || schedule.layouts()[layout].bytes == 0) continue;
    const schedule::Layout& used_layout = schedule.layouts()[layout];
    const schedule::Kind kind = schedule.shapes()[number].kind;
    const bool is_received = kind == schedule::Kind::receive || kind == schedule::Kind::get;
    const layout::Blob blob = unwrap(layout::Blob::validate(std::as_bytes(std::span(used_layout.blob))));
    nb::dict use;
    use["shape"] = number;
    use["layout"] = layout;
    use["type"] = layout::print(unwrap(layout::type_of(blob)));
    use["count"] = used_layout.count;
    use["side"] = is_received ? "receive" : "send";
    use["bytes"] = used_layout.bytes;
    use["messages"] = transfers[number];
    out.append(use);
  }
  return out;
}

nb::tuple with_nic_programs(const schedule::Schedule& schedule, const nb::dict& prices, uint64_t unit_ps) {
  std::vector<goal::ProgramPrice> by_shape(schedule.shapes().size());
  for (const auto& [shape, price] : prices) {
    const auto [cpu_ps, nic_ps, nic_busy_ps] = nb::cast<std::tuple<uint64_t, uint64_t, uint64_t>>(price);
    by_shape.at(nb::cast<uint32_t>(shape)) = {cpu_ps, nic_ps, nic_busy_ps};
  }
  goal::WithNicPrograms with =
      unwrap(without_lock([&] { return goal::with_nic_programs(schedule, by_shape, unit_ps); }));
  return nb::make_tuple(std::move(with.schedule), with.nic_ps);
}

}  // namespace

void bind_fidelity(nb::module_& module) {
  module.def("run_goal_on", &run_on, nb::arg("schedule"), nb::arg("fidelity"), nb::arg("profile"), nb::arg("o_ps"),
             nb::arg("O") = Ratio(0, 1), nb::arg("S_bytes") = 65535, nb::arg("unit_ps") = 1000,
             nb::arg("network") = nb::none(), nb::arg("noise") = nb::none(), nb::arg("layout") = nb::none(),
             nb::arg("progress") = nb::none(), nb::arg("ranks") = nb::none(), nb::arg("L_ps") = 0, nb::arg("g_ps") = 0,
             nb::arg("G") = Ratio(0, 1), nb::arg("record") = false,
             "Each rank's times of a Schedule on the NICs of a profile, as those of Schedule.run; \"nic\" or \"full\". "
             "\"full\" moves the bytes and raises SpinloomError if one is wrong. With ranks only those have NICs, and "
             "the others are at message level with L, g and G. With record, and all of them: spans, what CPUs did.");
  module.def(
      "layout_uses", &layout_uses, nb::arg("schedule"),
      "The layouts at transfers' own ends, a dictionary for each shape of an operation that has one: shape, layout, "
      "type, count, side, bytes of it, messages.");
  module.def(
      "with_nic_programs", &with_nic_programs, nb::arg("schedule"), nb::arg("prices"), nb::arg("unit_ps"),
      "The Schedule in which NICs move these layouts, with computations in ps, and of each rank the ps of its NIC's "
      "work among them. prices: by shape (ps of the CPU, ps that a message waits, ps that the NIC is busy).");
}

}  // namespace spinloom::app
