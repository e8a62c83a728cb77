// spinloom._core: the planner of the MPI layer and its model, and messages between two processes, timed.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include "app/measure/peer_probe.hpp"
#include "app/python/bindings_support.hpp"
#include "memory/layout/text.hpp"
#include "mpi/messages/prices.hpp"
#include "mpi/messages/settings.hpp"
#include "mpi/moving/staging.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::app {
namespace {

mpi::Way mpi_way_named(const std::string& name) {
  for (const mpi::Way way : {mpi::Way::pass, mpi::Way::staged, mpi::Way::mapped, mpi::Way::joint, mpi::Way::cma}) {
    if (name == mpi::name_of(way)) return way;
  }
  throw Raised{fail(Code::invalid, "there is no way called '", name, "'")};
}

mpi::Prices prices_of_text(const std::string& list) {
  const auto prices = mpi::read_prices(list);
  if (!prices) throw Raised{fail(Code::invalid, "'", list, "' is no list of prices")};
  return *prices;
}

nb::dict default_prices() {
  nb::dict prices;
  const mpi::Prices defaults;
#define SPINLOOM_MPI_PRICE(name, ns) prices[#name] = defaults.name##_ns;
  SPINLOOM_MPI_PRICES(SPINLOOM_MPI_PRICE)
#undef SPINLOOM_MPI_PRICE
  return prices;
}

using Work = std::tuple<double, double, double, double>;

Work work_of(const std::string& text, int64_t count) {
  const layout::Type type = unwrap(layout::parse(text));
  const mpi::FormPointer form = mpi::make_form(type);
  const mpi::Work work = mpi::work_of(*form, form->size * count);
  return {work.bytes, work.blocks, work.lines, work.jumps};
}

nb::dict way_costs(const std::string& prices, const Work& work) {
  const mpi::Costs costs = mpi::costs_of(prices_of_text(prices),
                                         {std::get<0>(work), std::get<1>(work), std::get<2>(work), std::get<3>(work)},
                                         mpi::Settings{}.chunk_bytes);
  nb::dict out;
  out["staged"] = costs.staged_ns;
  out["mapped"] = costs.mapped_ns;
  out["joint"] = costs.joint_ns;
  out["cma"] = costs.cma_ns;
  return out;
}

nb::tuple choose_way(const std::string& prices, const std::string& type_text, int64_t count, bool mapped, bool waits,
                     bool cma) {
  const layout::Type type = unwrap(layout::parse(type_text));
  const mpi::FormPointer form = mpi::make_form(type);
  mpi::Settings settings;
  settings.prices = prices_of_text(prices);
  settings.staging_bytes = mpi::read_settings(environ).staging_bytes;
  const int64_t bytes = form->size * count;
  const mpi::Choice choice = mpi::choose(settings, *form, count, bytes, {mapped, waits, cma});
  const int64_t times = choice.way == mpi::Way::staged ? 1 : mpi::Staging::reserve_factor;
  if (choice.way != mpi::Way::pass && mpi::Staging::charged_bytes(static_cast<uint64_t>(bytes)) >
                                          static_cast<uint64_t>(times * settings.staging_bytes)) {
    return nb::make_tuple(mpi::name_of(mpi::Way::pass),
                          text("a rank has ", times * settings.staging_bytes >> 20,
                               " MiB for messages under way; SPINLOOM_MPI_STAGING_BYTES gives it more"));
  }
  return nb::make_tuple(mpi::name_of(choice.way), choice.why);
}

class PythonProbe {
 public:
  PythonProbe(const std::string& name, const std::string& mailbox, uint32_t rank) {
    const nb::gil_scoped_release release;
    auto opened = PeerProbe::open(name, mailbox, rank);
    if (opened) probe_ = std::move(*opened);
    if (!opened) error_ = opened.error();
  }
  std::vector<double> measure(const std::string& text, int64_t count, const std::string& way, bool in_heap,
                              int samples) {
    if (!probe_) throw Raised{error_};
    const mpi::Way mpi_way = mpi_way_named(way);
    Result<std::vector<double>> times = [&] {
      const nb::gil_scoped_release release;
      return probe_->measure(text, count, mpi_way, in_heap, samples);
    }();
    return unwrap(std::move(times));
  }

 private:
  std::unique_ptr<PeerProbe> probe_;
  Error error_;
};

}  // namespace

void bind_peers(nb::module_& module) {
  module.def("peer_prices", &default_prices,
             "What the parts of a message's way cost where nothing was measured, in ns.");
  module.def("peer_work", &work_of, nb::arg("text"), nb::arg("count"),
             "Bytes, blocks, touched cache lines and jumps between them of a message, as the planner of the MPI layer "
             "counts them.");
  module.def("peer_costs", &way_costs, nb::arg("prices"), nb::arg("work"),
             "What each way takes by the planner's model, in ns. prices: 'staged=700,near_line=1.1,...'.");
  module.def("peer_choice", &choose_way, nb::arg("prices"), nb::arg("text"), nb::arg("count"), nb::arg("mapped"),
             nb::arg("waits"), nb::arg("cma"), "The way that the MPI layer takes, and why.");
  module.def("peer_memory", &PeerProbe::memory_bytes, nb::arg("message_bytes"), nb::arg("span_bytes"),
             "Bytes that each process of a PeerProbe holds at most for a message.");
  nb::class_<PythonProbe>(module, "PeerProbe", "One of two processes that time messages between them, in host time.")
      .def(nb::init<const std::string&, const std::string&, uint32_t>(), nb::arg("name"), nb::arg("mailbox"),
           nb::arg("rank"))
      .def("measure", &PythonProbe::measure, nb::arg("text"), nb::arg("count"), nb::arg("way"), nb::arg("in_heap"),
           nb::arg("samples"), "Times of one direction in ns; both processes call it alike. Bytes are compared first.");
}

}  // namespace spinloom::app
