// spinloom._core: recorded programs (src/trace), under python/spinloom/recorded.py.
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "app/bindings_support.hpp"
#include "trace/reader.hpp"
#include "trace/summary.hpp"

namespace spinloom::app {
namespace {

using trace::RankTrace;

// The bytes of one column, for memoryview.cast(), numpy.frombuffer() and the like.
template <class Number, class Of>
nb::bytes column(const std::vector<trace::Event>& events, Of&& of) {
  std::vector<Number> values;
  values.reserve(events.size());
  for (const trace::Event& event : events) values.push_back(of(event));
  return nb::bytes(values.data(), values.size() * sizeof(Number));
}

nb::dict columns(const RankTrace& one) {
  const auto signature = [&one](const trace::Event& event) -> const trace::Signature& {
    return one.signatures[event.signature];
  };
  nb::dict out;
  out["signature"] = column<uint32_t>(one.events, [](const auto& event) { return event.signature; });
  out["polls"] = column<uint32_t>(one.events, [](const auto& event) { return event.polls; });
  out["begin_ns"] = column<uint64_t>(one.events, [](const auto& event) { return event.begin_ns; });
  out["end_ns"] = column<uint64_t>(one.events, [](const auto& event) { return event.end_ns; });
  out["call"] =
      column<uint8_t>(one.events, [&](const auto& event) { return static_cast<uint8_t>(signature(event).call); });
  out["form"] =
      column<uint8_t>(one.events, [&](const auto& event) { return static_cast<uint8_t>(signature(event).form); });
  out["peer"] = column<int32_t>(one.events, [&](const auto& event) { return signature(event).peer; });
  out["tag"] = column<int32_t>(one.events, [&](const auto& event) { return signature(event).tag; });
  out["comm"] = column<uint32_t>(one.events, [&](const auto& event) { return signature(event).comm; });
  out["sent_bytes"] =
      column<int64_t>(one.events, [&](const auto& event) { return traffic_of(one, signature(event)).sent_bytes; });
  out["received_bytes"] =
      column<int64_t>(one.events, [&](const auto& event) { return traffic_of(one, signature(event)).received_bytes; });
  return out;
}

nb::list blocks(const std::vector<trace::Block>& list) {
  nb::list out;
  for (const trace::Block& block : list) out.append(nb::make_tuple(block.address, block.count, block.type));
  return out;
}

nb::list signatures(const RankTrace& one) {
  nb::list out;
  for (const trace::Signature& signature : one.signatures) {
    nb::dict row;
    row["call"] = full_name(signature.call, signature.form);
    row["comm"] = signature.comm;
    row["peer"] = signature.peer;
    row["tag"] = signature.tag;
    row["receive_peer"] = signature.receive_peer;
    row["receive_tag"] = signature.receive_tag;
    row["error"] = signature.error;
    row["window"] = signature.window;
    row["in_place"] = signature.in_place;
    row["sends"] = blocks(signature.sends);
    row["receives"] = blocks(signature.receives);
    row["requests"] = signature.requests;
    nb::list matches;
    for (const trace::Match& match : signature.matches) {
      matches.append(nb::make_tuple(match.request, match.source, match.tag, match.bytes));
    }
    row["matches"] = matches;
    out.append(row);
  }
  return out;
}

nb::list comms(const RankTrace& one) {
  nb::list out;
  for (const trace::CommEntry& comm : one.comms) {
    nb::dict row;
    row["rank"] = comm.rank;
    row["world_ranks"] = comm.world_ranks;
    row["remote_ranks"] = comm.remote_ranks;
    row["has_topology"] = comm.has_topology;
    row["sources"] = comm.sources;
    row["destinations"] = comm.destinations;
    row["dims"] = comm.dims;
    out.append(row);
  }
  return out;
}

nb::list types(const RankTrace& one) {
  nb::list out;
  for (const trace::TypeEntry& type : one.types) {
    nb::dict row;
    row["name"] = type.name;
    row["size_bytes"] = type.size_bytes;
    row["extent_bytes"] = type.extent_bytes;
    row["signature_hash"] = type.signature_hash;
    row["blob"] = nb::bytes(reinterpret_cast<const char*>(type.blob.data()), type.blob.size());
    out.append(row);
  }
  return out;
}

nb::list calls(const RankTrace& one) {
  nb::list out;
  for (const trace::CallSum& sum : without_lock([&] { return calls_of(one); })) {
    nb::dict row;
    row["call"] = full_name(sum.call, sum.form);
    row["count"] = sum.count;
    row["polls"] = sum.polls;
    row["errors"] = sum.errors;
    row["ns"] = sum.ns;
    row["sent_bytes"] = sum.traffic.sent_bytes;
    row["received_bytes"] = sum.traffic.received_bytes;
    out.append(row);
  }
  return out;
}

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<RankTrace>(module, "RankTrace", "What one rank did, call by call.")
      .def_ro("rank", &RankTrace::rank)
      .def_ro("ranks", &RankTrace::ranks)
      .def_ro("begun_ns", &RankTrace::begun_ns)
      .def_ro("begun_unix_ns", &RankTrace::begun_unix_ns)
      .def_ro("host", &RankTrace::host)
      .def_ro("mpi", &RankTrace::mpi)
      .def_ro("program", &RankTrace::program)
      .def_ro("ended", &RankTrace::ended)
      .def_ro("warning", &RankTrace::warning)
      .def_prop_ro("events", [](const RankTrace& one) { return one.events.size(); })
      .def_prop_ro("run_ns", [](const RankTrace& one) { return one.events.empty() ? 0 : one.events.back().end_ns; })
      .def("columns", &columns, "Its events, as bytes for each column.")
      .def("signatures", &signatures)
      .def("comms", &comms)
      .def("types", &types)
      .def("calls", &calls, "What its calls add up to, one dictionary for each call.");
  module.def(
      "trace_ranks", [](const std::string& directory) { return unwrap(trace::ranks_in(directory)); },
      nb::arg("directory"), "The ranks whose traces lie there.");
  module.def(
      "read_trace",
      [](const std::string& directory, uint32_t rank) {
        return unwrap(without_lock([&] { return trace::read_rank(directory, rank); }));
      },
      nb::arg("directory"), nb::arg("rank"), "A RankTrace.");
}

}  // namespace spinloom::app
