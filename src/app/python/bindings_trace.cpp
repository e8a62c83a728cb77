// spinloom._core: recorded programs (src/predict/trace), under python/spinloom/traces/recorded.py.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/python/bindings_support.hpp"
#include "app/python/python_text.hpp"
#include "predict/trace/check.hpp"
#include "predict/trace/communicators.hpp"
#include "predict/trace/match.hpp"
#include "predict/trace/reader.hpp"
#include "predict/trace/sequence.hpp"
#include "predict/trace/summary.hpp"
#include "predict/trace/text_import.hpp"
#include "predict/trace/views.hpp"
#include "predict/trace/writer.hpp"

namespace spinloom::app {
namespace {

using trace::RankTrace;

// Returns the bytes of one column, for memoryview.cast(), numpy.frombuffer() and the like.
template <class Number, class Field>
nb::bytes column(const std::vector<trace::Event>& events, Field&& field) {
  std::vector<Number> values;
  values.reserve(events.size());
  for (const trace::Event& event : events) values.push_back(field(event));
  return nb::bytes(values.data(), values.size() * sizeof(Number));
}

nb::dict columns(const RankTrace& rank_trace) {
  const auto signature = [&rank_trace](const trace::Event& event) -> const trace::Signature& {
    return rank_trace.signatures[event.signature];
  };
  nb::dict out;
  out["signature"] = column<uint32_t>(rank_trace.events, [](const auto& event) { return event.signature; });
  out["polls"] = column<uint32_t>(rank_trace.events, [](const auto& event) { return event.polls; });
  out["begin_ns"] = column<uint64_t>(rank_trace.events, [](const auto& event) { return event.begin_ns; });
  out["end_ns"] = column<uint64_t>(rank_trace.events, [](const auto& event) { return event.end_ns; });
  out["call"] = column<uint8_t>(rank_trace.events,
                                [&](const auto& event) { return static_cast<uint8_t>(signature(event).call); });
  out["form"] = column<uint8_t>(rank_trace.events,
                                [&](const auto& event) { return static_cast<uint8_t>(signature(event).form); });
  out["peer"] = column<int32_t>(rank_trace.events, [&](const auto& event) { return signature(event).peer; });
  out["tag"] = column<int32_t>(rank_trace.events, [&](const auto& event) { return signature(event).tag; });
  out["comm"] = column<uint32_t>(rank_trace.events, [&](const auto& event) { return signature(event).comm; });
  out["sent_bytes"] = column<int64_t>(
      rank_trace.events, [&](const auto& event) { return traffic_of(rank_trace, signature(event)).sent_bytes; });
  out["received_bytes"] = column<int64_t>(
      rank_trace.events, [&](const auto& event) { return traffic_of(rank_trace, signature(event)).received_bytes; });
  return out;
}

nb::list blocks(const std::vector<trace::Block>& list) {
  nb::list out;
  for (const trace::Block& block : list) out.append(nb::make_tuple(block.address, block.count, block.type));
  return out;
}

nb::list signatures(const RankTrace& rank_trace) {
  nb::list out;
  for (const trace::Signature& signature : rank_trace.signatures) {
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
    const trace::Traffic traffic = traffic_of(rank_trace, signature);
    row["sent_bytes"] = traffic.sent_bytes;
    row["received_bytes"] = traffic.received_bytes;
    row["point_to_point"] = signature.call >= trace::Call::Send && signature.call <= trace::Call::Sendrecv_replace;
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

nb::list comms(const RankTrace& rank_trace) {
  nb::list out;
  for (const trace::CommEntry& comm : rank_trace.comms) {
    nb::dict row;
    row["rank"] = comm.rank;
    row["world_ranks"] = comm.world_ranks;
    row["remote_ranks"] = comm.remote_ranks;
    row["has_topology"] = comm.has_topology;
    row["sources"] = comm.sources;
    row["destinations"] = comm.destinations;
    row["dims"] = comm.dims;
    row["parent"] = comm.parent == trace::none ? nb::none() : nb::cast(comm.parent);
    out.append(row);
  }
  return out;
}

nb::list types(const RankTrace& rank_trace) {
  nb::list out;
  for (const trace::TypeEntry& type : rank_trace.types) {
    nb::dict row;
    row["name"] = text_of(type.name);
    row["size_bytes"] = type.size_bytes;
    row["extent_bytes"] = type.extent_bytes;
    row["signature_hash"] = type.signature_hash;
    row["text"] = text_of(type.text);
    row["blob"] = nb::bytes(reinterpret_cast<const char*>(type.blob.data()), type.blob.size());
    out.append(row);
  }
  return out;
}

using Traces = std::vector<const RankTrace*>;

nb::list matrix_of(const Traces& traces) {
  nb::list out;
  for (const trace::PairTraffic& traffic : without_lock([&] { return trace::matrix(traces); })) {
    nb::dict row;
    row["from"] = traffic.from;
    row["to"] = traffic.to;
    row["messages"] = traffic.messages;
    row["bytes"] = traffic.bytes;
    out.append(row);
  }
  return out;
}

nb::list types_of(const Traces& traces) {
  nb::list out;
  for (const trace::TypeUse& use : without_lock([&] { return trace::types(traces); })) {
    nb::dict row;
    row["name"] = text_of(use.type.name);
    row["text"] = text_of(use.type.text);
    row["size_bytes"] = use.type.size_bytes;
    row["extent_bytes"] = use.type.extent_bytes;
    row["blocks"] = use.blocks;
    row["contiguous"] = use.is_contiguous;
    row["sends"] = use.sends;
    row["receives"] = use.receives;
    row["elements"] = use.elements;
    row["bytes"] = use.bytes;
    row["count_min"] = use.count_min;
    row["count_max"] = use.count_max;
    out.append(row);
  }
  return out;
}

// Returns the rank, or None if it is not known.
nb::object rank_or_none(uint32_t rank) { return rank == trace::none ? nb::none() : nb::cast(rank); }

nb::list findings_of(const Traces& traces) {
  const auto findings = without_lock([&] { return trace::check(traces, trace::match(traces)); });
  nb::list out;
  for (const trace::Finding& finding : findings) {
    nb::dict row;
    row["finding"] = std::string(name_of(finding.trouble));
    row["from"] = rank_or_none(finding.from);
    row["to"] = rank_or_none(finding.to);
    row["tag"] = finding.tag;
    row["times"] = finding.times;
    row["sent_bytes"] = finding.sent_bytes;
    row["room_bytes"] = finding.room_bytes;
    row["bytes"] = finding.bytes;
    row["first_ns"] = finding.first_ns;
    row["sure"] = finding.doubt == trace::Doubt::no;
    row["doubt"] = finding.doubt == trace::Doubt::no ? nb::none() : nb::cast(std::string(name_of(finding.doubt)));
    out.append(row);
  }
  return out;
}

// Returns for each message (trace, event that began it, event that ended it) of the sender, the same of the receiver,
// and the bytes sent, in one tuple.
nb::list messages_of(const Traces& traces) {
  nb::list out;
  const auto matching = without_lock([&] { return trace::match(traces); });
  const auto last = [](const trace::Transfer& transfer) {
    return transfer.done == trace::none ? transfer.event : transfer.done;
  };
  for (const auto& [send, receive] : matching.pairs) {
    out.append(
        nb::make_tuple(send.trace, send.event, last(send), receive.trace, receive.event, last(receive), send.bytes));
  }
  return out;
}

nb::list communicators_of(const Traces& traces) {
  const trace::Communicators communicators(traces);
  nb::list out;
  for (size_t index = 0; index < traces.size(); ++index) {
    nb::list numbers;
    for (uint32_t comm = 0; comm < traces[index]->comms.size(); ++comm) {
      numbers.append(communicators.number_of(index, comm));
    }
    out.append(numbers);
  }
  return out;
}

std::string_view reason_of(trace::LeftOut why) {
  switch (why) {
    case trace::LeftOut::local: return "local";
    case trace::LeftOut::no_members: return "no members";
    case trace::LeftOut::no_counts: return "no counts";
    default: return "not known";
  }
}

nb::dict import_text(const nb::sequence& paths, nb::handle folder) {
  std::vector<std::string> files;
  for (const nb::handle path : paths) files.push_back(path_of(path));
  const std::string directory = path_of(folder);
  const auto imported = unwrap(without_lock([&] { return trace::import_text(files, directory); }));
  nb::dict out;
  out["calls"] = imported.calls;
  out["any_source"] = imported.any_source;
  out["never_ended"] = imported.never_ended;
  out["guessed_comms"] = imported.guessed_comms;
  out["times_back"] = imported.times_back;
  out["cut_lines"] = imported.cut_lines;
  nb::list left_out;
  for (const auto& [what, times] : imported.left_out) {
    left_out.append(nb::make_tuple(std::string(reason_of(what.first)), text_of(what.second), times));
  }
  out["left_out"] = left_out;
  return out;
}

// Returns the call and the form with this full name, for example "Isend"; throws if a trace has no such call.
std::pair<trace::Call, trace::CallForm> call_named(const std::string& name) {
  for (auto call = uint8_t{0}; call <= static_cast<uint8_t>(trace::Call::File_write); ++call) {
    for (const auto form : {trace::CallForm::blocking, trace::CallForm::nonblocking, trace::CallForm::persistent}) {
      if (full_name(static_cast<trace::Call>(call), form) == name) return {static_cast<trace::Call>(call), form};
    }
  }
  throw Raised{fail(Code::invalid, "a trace has no MPI_", name)};
}

// Writes a rank's trace that is imported from elsewhere. All its buffers are bytes in one block at no known place.
class TraceWriter {
 public:
  TraceWriter(nb::handle directory, uint32_t rank, uint32_t ranks, uint64_t begun_unix_ns, const std::string& host,
              const std::string& from)
      : writer_(unwrap(trace::Writer::create(path_of(directory), {rank, ranks, 0, begun_unix_ns, host, from, from}))) {
    trace::TypeEntry byte;
    byte.name = "MPI_BYTE";
    byte.size_bytes = byte.extent_bytes = 1;
    byte.signature_hash = trace::Sequence::basic(byte.name, 1).hash();
    byte_ = writer_->add(byte);
  }
  uint32_t comm(uint32_t rank, const std::vector<uint32_t>& world_ranks, std::optional<uint32_t> parent) {
    trace::CommEntry entry;
    entry.rank = rank;
    entry.world_ranks = world_ranks;
    entry.parent = parent.value_or(trace::none);
    return writer_->add(entry);
  }
  void call(const std::string& name, uint64_t begin_ns, uint64_t end_ns, const nb::dict& fields, uint32_t polls) {
    trace::Signature signature;
    std::tie(signature.call, signature.form) = call_named(name);
    const auto number = [&](const char* key, auto& to) {
      if (fields.contains(key)) to = nb::cast<std::remove_reference_t<decltype(to)>>(fields[key]);
    };
    number("comm", signature.comm);
    number("peer", signature.peer);
    number("tag", signature.tag);
    number("receive_peer", signature.receive_peer);
    number("receive_tag", signature.receive_tag);
    number("requests", signature.requests);
    std::vector<int64_t> sends;
    std::vector<int64_t> receives;
    number("sends", sends);
    number("receives", receives);
    std::vector<uint32_t> cancelled;
    number("cancelled", cancelled);
    for (const int64_t bytes : sends) signature.sends.push_back({trace::nowhere, bytes, byte_});
    for (const int64_t bytes : receives) signature.receives.push_back({trace::nowhere, bytes, byte_});
    for (const uint32_t slot : cancelled) signature.matches.push_back({slot, trace::cancelled, trace::any, 0});
    if (polls == 0) writer_->record(signature, begin_ns, end_ns);
    for (uint32_t poll = 0; poll < polls; ++poll)
      writer_->poll(signature, begin_ns, poll + 1 == polls ? end_ns : begin_ns);
    check();
  }
  void end() {
    writer_->end();
    check();
  }
  void end_within(const std::string& name, uint64_t begin_ns) {
    const auto [call, form] = call_named(name);
    writer_->end_within(call, form, begin_ns);
    check();
  }

 private:
  void check() const {
    if (!writer_->trouble().empty()) throw Raised{fail(Code::environment, writer_->trouble())};
  }

  std::unique_ptr<trace::Writer> writer_;
  uint32_t byte_ = 0;
};

nb::list calls(const RankTrace& rank_trace) {
  nb::list out;
  for (const trace::CallSum& sum : without_lock([&] { return calls_of(rank_trace); })) {
    nb::dict row;
    row["call"] = full_name(sum.call, sum.form);
    row["count"] = sum.count;
    row["polls"] = sum.polls;
    row["errors"] = sum.errors;
    row["ns"] = sum.time_ns;
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
      .def_prop_ro("host", [](const RankTrace& rank_trace) { return text_of(rank_trace.host); })
      .def_prop_ro("mpi", [](const RankTrace& rank_trace) { return text_of(rank_trace.mpi); })
      .def_prop_ro("program", [](const RankTrace& rank_trace) { return text_of(rank_trace.program); })
      .def_ro("is_cpu_time", &RankTrace::is_cpu_time)
      .def_ro("ended", &RankTrace::has_ended)
      .def_ro("tells_under_way", &RankTrace::tells_under_way)
      .def_prop_ro("tells_buffers", [](const RankTrace& rank_trace) { return trace::tells_buffers(rank_trace); })
      .def_prop_ro("warning", [](const RankTrace& rank_trace) { return text_of(rank_trace.warning); })
      .def_prop_ro("under_way",
                   [](const RankTrace& rank_trace) -> nb::object {
                     if (!rank_trace.is_under_way) return nb::none();
                     return nb::make_tuple(full_name(rank_trace.under_way, rank_trace.under_way_form),
                                           rank_trace.under_way_ns);
                   })
      .def_prop_ro("events", [](const RankTrace& rank_trace) { return rank_trace.events.size(); })
      .def_prop_ro(
          "run_ns",
          [](const RankTrace& rank_trace) { return rank_trace.events.empty() ? 0 : rank_trace.events.back().end_ns; })
      .def("columns", &columns, "Its events, as bytes for each column.")
      .def("signatures", &signatures)
      .def("comms", &comms)
      .def("types", &types)
      .def("calls", &calls, "What its calls add up to, one dictionary for each call.");
  nb::class_<TraceWriter>(module, "TraceWriter", "Writes one rank's trace, whose buffers are bytes in one block.")
      .def(nb::init<nb::handle, uint32_t, uint32_t, uint64_t, const std::string&, const std::string&>(),
           nb::arg("directory"), nb::arg("rank"), nb::arg("ranks"), nb::arg("begun_unix_ns"), nb::arg("host"),
           nb::arg("source"))
      .def("comm", &TraceWriter::comm, nb::arg("rank"), nb::arg("world_ranks"), nb::arg("parent") = nb::none(),
           "The next communicator's number: 0 is MPI_COMM_WORLD, 1 MPI_COMM_SELF.")
      .def("call", &TraceWriter::call, nb::arg("name"), nb::arg("begin_ns"), nb::arg("end_ns"), nb::arg("fields"),
           nb::arg("polls") = 0,
           "A call that has ended, in the order of ends: of a signature's fields those that it has; sends and receives "
           "are bytes, cancelled are slots of requests. With polls: so many in vain.")
      .def("end", &TraceWriter::end, "The rank has ended, or nobody knows where it was.")
      .def("end_within", &TraceWriter::end_within, nb::arg("name"), nb::arg("begin_ns"),
           "The trace ends while the rank is in this call.");
  module.def("trace_matrix", &matrix_of, nb::arg("traces"), "Who sent whom how much.");
  module.def("trace_types", &types_of, nb::arg("traces"), "The datatypes of the calls' buffers.");
  module.def("trace_findings", &findings_of, nb::arg("traces"), "What is wrong with the messages, or wasted.");
  module.def("trace_messages", &messages_of, nb::arg("traces"), "The ends of each message, as numbers of events.");
  module.def("trace_communicators", &communicators_of, nb::arg("traces"),
             "For each trace, the numbers that its communicators have on all ranks.");
  module.def("import_text", &import_text, nb::arg("files"), nb::arg("directory"),
             "Text traces, one for each rank, as a recorded program: what was imported, and what was not.");
  module.def(
      "trace_calls",
      [] {
        nb::list names;
        for (auto call = uint8_t{0}; call <= static_cast<uint8_t>(trace::Call::File_write); ++call) {
          names.append(full_name(static_cast<trace::Call>(call), trace::CallForm::blocking));
          names.append(full_name(static_cast<trace::Call>(call), trace::CallForm::nonblocking));
        }
        return names;
      },
      "The calls that a trace has, in the forms that block and that do not.");
  module.def(
      "trace_ranks", [](nb::handle directory) { return unwrap(trace::ranks_in(path_of(directory))); },
      nb::arg("directory"), "The ranks whose traces lie there.");
  module.def(
      "read_trace",
      [](nb::handle folder, uint32_t rank) {
        const std::string directory = path_of(folder);
        return unwrap(without_lock([&] { return trace::read_rank(directory, rank); }));
      },
      nb::arg("directory"), nb::arg("rank"), "A RankTrace.");
}

}  // namespace spinloom::app
