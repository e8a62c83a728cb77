#include "predict/program/story.hpp"

#include <algorithm>

namespace spinloom::predict {
namespace {

using trace::Block;
using trace::Call;
using trace::CallForm;
using trace::CommEntry;
using trace::Event;
using trace::Match;
using trace::RankTrace;
using trace::Signature;

bool is_send(Call call) {
  return call == Call::Send || call == Call::Ssend || call == Call::Rsend || call == Call::Bsend;
}
bool is_receive(Call call) { return call == Call::Recv || call == Call::Mrecv; }
bool is_exchange(Call call) { return call == Call::Sendrecv || call == Call::Sendrecv_replace; }

bool is_completion(Call call) {
  switch (call) {
    case Call::Wait:
    case Call::Waitall:
    case Call::Waitany:
    case Call::Waitsome:
    case Call::Test:
    case Call::Testall:
    case Call::Testany:
    case Call::Testsome: return true;
    default: return false;
  }
}

bool is_probe(Call call) {
  return call == Call::Probe || call == Call::Iprobe || call == Call::Mprobe || call == Call::Improbe;
}

class StoryReader {
 public:
  StoryReader(const RankTrace& trace, const StoryContext& context) : trace_(trace), context_(context) {}

  Result<RankScript> read() {
    poll_ns_ = has_work_between_polls() ? poll_time_ns() : 0;
    for (event_number_ = 0; event_number_ < trace_.events.size(); ++event_number_) {
      const Event& event = trace_.events[event_number_];
      const Signature& call = trace_.signatures[event.signature];
      if (call.call == Call::Init) {
        script_ = {};
        last_end_ns_ = event.end_ns;
        continue;
      }
      if (last_end_ns_ != 0 && event.begin_ns > last_end_ns_)
        add_step(Step::Kind::compute, event.begin_ns - last_end_ns_);
      last_end_ns_ = std::max(last_end_ns_, event.end_ns);
      if (call.call == Call::Finalize) break;
      if (event.polls != 0) {
        if (poll_ns_ != 0) add_work_between_polls(event);
        continue;
      }
      if (call.error != 0) {
        leave_out(text(trace::name_of(call.call), " with error ", call.error, ": not replayed"), 0);
        continue;
      }
      SPL_TRY(read_call(call, event));
    }
    for (const Action& action : script_.actions) {
      if (action.may_be_cancelled) {
        leave_out(
            "Cancel, and the trace does not say whether it came in time: met only by a message that is left for it", 0);
      }
    }
    return std::move(script_);
  }

 private:
  struct Request {
    bool is_used = false;
    bool keeps_time = false;  // its call is not replayed and keeps its recorded time, and so does the wait for it
    uint32_t action = trace::none;  // the number of the action that is under way
    const Signature* persistent = nullptr;  // the call that made a persistent request
    uint64_t ordinal = 0;  // its number among the persistent collective operations of its communicator
  };

  // Returns the time that one poll in vain takes.
  [[nodiscard]] uint64_t poll_time_ns() const {
    std::vector<uint64_t> alone;
    uint64_t quickest = UINT64_MAX;
    for (const Event& event : trace_.events) {
      if (event.polls == 0) continue;
      const uint64_t each_ns = (event.end_ns - event.begin_ns) / event.polls;
      quickest = std::min(quickest, each_ns);
      if (event.polls == 1) alone.push_back(each_ns);
    }
    if (alone.empty()) return std::max<uint64_t>(1, quickest);
    const auto middle = alone.begin() + static_cast<std::ptrdiff_t>(alone.size() / 2);
    std::ranges::nth_element(alone, middle);
    return std::max<uint64_t>(1, *middle);
  }

  [[nodiscard]] bool has_work_between_polls() const {
    if (context_.polls != PollMeaning::rule) return context_.polls == PollMeaning::work;
    constexpr uint64_t apart_factor = 2;
    uint64_t polls = 0;
    uint64_t time_ns = 0;
    for (const Event& event : trace_.events) {
      if (event.polls <= 1) continue;
      polls += event.polls;
      time_ns += event.end_ns - event.begin_ns;
    }
    return polls != 0 && time_ns >= apart_factor * polls * poll_time_ns();
  }

  void add_work_between_polls(const Event& event) {
    const uint64_t time_ns = event.end_ns - event.begin_ns;
    const uint64_t in_polls_ns = event.polls * poll_ns_;
    if (time_ns <= in_polls_ns) return;
    script_.recorded.between_polls_ns += time_ns - in_polls_ns;
    add_step(Step::Kind::compute, time_ns - in_polls_ns);
  }

  void add_step(Step::Kind kind, uint64_t value, uint32_t count = 0) {
    script_.steps.push_back({kind, event_number_, value, count});
  }

  void leave_out(const std::string& what, uint64_t time_ns) {
    Note& note = context_.script.left_out[what];
    ++note.count;
    note.time_ns += time_ns;
  }

  void keep_time(const Signature& call, const Event& event, std::string_view why) {
    const uint64_t time_ns = event.end_ns - event.begin_ns;
    leave_out(text(trace::name_of(call.call), " ", why, ": keeps its recorded time"), time_ns);
    if (time_ns != 0) add_step(Step::Kind::fixed, time_ns);
    if (call.form != CallForm::blocking) {
      for (const uint32_t request : call.requests) request_at(request) = {.is_used = true, .keeps_time = true};
    }
  }

  Status read_call(const Signature& call, const Event& event) {
    if (is_completion(call.call)) return complete(call, event);
    if (is_probe(call.call)) return {};
    if (is_send(call.call) || is_receive(call.call) || is_exchange(call.call) || is_collective(call.call)) {
      if (is_collective(call.call) && !has_no_remote_group(call)) {
        keep_time(call, event, "of an intercommunicator");
        return {};
      }
      if (is_collective(call.call) && call.call != Call::Comm_make && call.comm == trace::none) {
        keep_time(call, event, "on a communicator that the trace does not tell");
        return {};
      }
      return begin_or_keep(call);
    }
    switch (call.call) {
      case Call::Start:
      case Call::Startall: return start(call);
      case Call::Request_free:
        for (const uint32_t request : call.requests) request_at(request) = {};
        return {};
      case Call::Cancel:
        for (const uint32_t request : call.requests) on_cancel(request);
        return {};
      case Call::Comm_free: return {};
      default: keep_time(call, event, "is not a message"); return {};
    }
  }

  [[nodiscard]] bool has_no_remote_group(const Signature& call) const {
    return call.comm == trace::none || trace_.comms[call.comm].remote_ranks.empty();
  }

  // A persistent form is kept until it starts.
  Status begin_or_keep(const Signature& call) {
    if (call.form == CallForm::blocking) return begin(call, nullptr);
    if (call.requests.size() != 1) {
      return fail(Code::invalid, where(), trace::name_of(call.call), " makes ", call.requests.size(), " requests");
    }
    Request& request = request_at(call.requests[0]);
    request = {.is_used = true};
    if (call.form == CallForm::nonblocking) return begin(call, &request);
    request.persistent = &call;
    if (is_collective(call.call)) request.ordinal = persistent_count_[call.comm]++;
    return {};
  }

  Status start(const Signature& call) {
    for (const uint32_t request : call.requests) {
      Request& started = request_at(request);
      if (started.persistent == nullptr) {
        return fail(Code::invalid, where(), "request ", request, " starts, and none was made for it");
      }
      SPL_TRY(begin(*started.persistent, &started));
    }
    return {};
  }

  Status begin(const Signature& call, Request* request) {
    if (call.comm == trace::none) {
      if (call.call == Call::Comm_make) return {};  // MPI_COMM_NULL: the rank is not a member
      if (call.call == Call::Mrecv && call.peer == trace::nobody) return {};  // MPI_MESSAGE_NO_PROC
      if (is_receive(call.call) && call.peer == trace::any) return {};  // the trace does not say what this was
      return fail(Code::invalid, where(), trace::name_of(call.call), " without a communicator");
    }
    Action action{.event = event_number_,
                  .first_round = static_cast<uint32_t>(script_.rounds.size()),
                  .is_blocking = request == nullptr,
                  .is_awaited = request == nullptr,
                  .is_synchronous = call.call == Call::Ssend,
                  .is_collective = is_collective(call.call)};
    if (is_collective(call.call)) {
      SPL_TRY(add_collective(call, request));
    } else {
      SPL_TRY(add_messages(call));
    }
    action.rounds_end = static_cast<uint32_t>(script_.rounds.size());
    if (request != nullptr) request->action = static_cast<uint32_t>(script_.actions.size());
    add_step(Step::Kind::act, script_.actions.size());
    script_.actions.push_back(action);
    return {};
  }

  Status complete(const Signature& call, const Event& event) {
    const auto first = static_cast<uint32_t>(script_.awaited.size());
    const bool keeps_time = !call.requests.empty() && std::ranges::all_of(call.requests, [&](uint32_t request) {
      return request_at(request).keeps_time;
    });
    if (keeps_time) keep_time(call, event, "for what is not replayed");
    for (const uint32_t request : call.requests) {
      Request& completed = request_at(request);
      if (completed.action != trace::none) {
        Action& action = script_.actions[completed.action];
        for (const Match& match : call.matches) {
          if (match.request == request) SPL_TRY(apply_match(action, match));
        }
        script_.actions[completed.action].is_awaited = true;
        script_.awaited.push_back(completed.action);
      }
      completed.action = trace::none;
      if (completed.persistent == nullptr) completed = {};
    }
    const auto count = static_cast<uint32_t>(script_.awaited.size()) - first;
    if (count != 0) add_step(Step::Kind::await, first, count);
    return {};
  }

  // Fills in the receive of an action that asked for any source or any tag: the one without a peer or a tag. Or the
  // match gives the outcome of a cancel.
  Status apply_match(Action& action, const Match& match) {
    action.may_be_cancelled = false;
    if (match.source == trace::cancelled) {
      drop_legs(action);
      return {};
    }
    if (match.source == trace::any) return {};
    for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
      for (uint32_t number = script_.rounds[round].first_leg; number < script_.rounds[round].legs_end; ++number) {
        Leg& leg = script_.legs[number];
        if (leg.side != Side::receive || leg.tag != unresolved) continue;
        const uint32_t comm = leg.peer;
        SPL_ASSIGN(leg.peer, world_rank(comm, match.source));
        leg.tag = message_tag(comm, match.tag);
        return {};
      }
    }
    return {};
  }

  void on_cancel(uint32_t request) {
    const uint32_t action = request_at(request).action;
    if (action != trace::none) script_.actions[action].may_be_cancelled = true;
  }

  void drop_legs(const Action& action) {
    for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
      for (uint32_t leg = script_.rounds[round].first_leg; leg < script_.rounds[round].legs_end; ++leg) {
        script_.legs[leg].tag = dropped;
      }
    }
  }

  Status add_messages(const Signature& call) {
    open_round();
    if (is_receive(call.call) || is_exchange(call.call)) SPL_TRY(add_receive(call));
    if (!is_receive(call.call) && call.peer != trace::nobody) {
      SPL_ASSIGN(const uint32_t peer, world_rank(call.comm, call.peer));
      const Part part = call.sends.empty() ? Part{} : part_of(call.sends[0]);
      script_.legs.push_back({part, peer, message_tag(call.comm, call.tag), Side::send, {}});
    }
    close_round();
    return {};
  }

  Status add_receive(const Signature& call) {
    const bool is_exchange_call = is_exchange(call.call);
    const uint32_t comm = call.comm;
    int32_t source = is_exchange_call ? call.receive_peer : call.peer;
    int32_t tag = is_exchange_call ? call.receive_tag : call.tag;
    if (source == trace::nobody) return {};
    for (const Match& match : call.matches) {
      if (match.request != trace::none && call.call != Call::Mrecv) continue;
      source = match.source;
      tag = match.tag;
    }
    const std::vector<Block>& blocks = call.receives.empty() ? call.sends : call.receives;
    const Part part = blocks.empty() ? Part{} : part_of(blocks[0]);
    if (source == trace::any || tag == trace::any) {
      script_.legs.push_back({part, comm, unresolved, Side::receive, {}});
      return {};
    }
    SPL_ASSIGN(const uint32_t peer, world_rank(comm, source));
    script_.legs.push_back({part, peer, message_tag(comm, tag), Side::receive, {}});
    return {};
  }

  Status add_collective(const Signature& call, const Request* request) {
    const CommEntry& comm = trace_.comms[call.comm];
    const uint32_t communicator = context_.communicators.number_of(trace_.rank, call.comm);
    SPL_ASSIGN(const CollectiveCall collective, collective_of(call, comm));
    uint32_t tag = 0;
    if (request == nullptr) {
      tag = context_.tags.intern(communicator, Tags::Kind::collective, 0);
    } else if (request->persistent != nullptr) {
      tag = context_.tags.intern(communicator, Tags::Kind::persistent, request->ordinal);
    } else {
      tag = context_.tags.intern(communicator, Tags::Kind::nonblocking, nonblocking_count_[call.comm]++);
    }
    if (call.call != Call::Comm_make) {
      std::string name(trace::name_of(call.call));
      name[0] = static_cast<char>(name[0] - 'A' + 'a');
      ++context_.script.algorithms[text(name, " ", algorithm_of(collective, context_.algorithms))];
    }
    auto rounds = rounds_of(collective, context_.algorithms);
    if (!rounds) return fail(rounds.error().code, where(), rounds.error().message);
    for (const Round& round : *rounds) {
      open_round();
      for (const Leg& leg : round.legs) {
        SPL_ASSIGN(const uint32_t peer, world_rank_of_member(comm.world_ranks, static_cast<int32_t>(leg.peer)));
        script_.legs.push_back({without_place(leg.part), peer, tag, leg.side, {}});
      }
      for (const Copy& copy : round.copies)
        script_.copies.push_back({without_place(copy.from), without_place(copy.to)});
      script_.rounds.back().combined_bytes = round.combined_bytes();
      close_round();
    }
    return {};
  }

  Result<CollectiveCall> collective_of(const Signature& call, const CommEntry& comm) {
    CollectiveCall collective;
    collective.call = call.call;
    collective.rank = comm.rank;
    collective.size = static_cast<uint32_t>(comm.world_ranks.size());
    collective.in_place = call.in_place;
    collective.is_grid = !comm.dims.empty();
    collective.sources = comm.sources;
    collective.destinations = comm.destinations;
    if (call.peer >= 0 && is_rooted(call.call)) collective.root = static_cast<uint32_t>(call.peer);
    for (const Block& block : call.sends) collective.sends.push_back(part_of(block));
    for (const Block& block : call.receives) collective.receives.push_back(part_of(block));
    // The trace gives as sent data what all ranks get together.
    if (call.call == Call::Reduce_scatter_block) collective.sends = collective.receives;
    return collective;
  }

  // Prices do not depend on the place.
  static Part without_place(const Part& part) { return collective::algorithms::at_place(part, {}); }

  static bool is_rooted(Call call) {
    switch (call) {
      case Call::Bcast:
      case Call::Reduce:
      case Call::Gather:
      case Call::Gatherv:
      case Call::Scatter:
      case Call::Scatterv: return true;
      default: return false;
    }
  }

  [[nodiscard]] Part part_of(const Block& block) const {
    if (block.type == trace::none || block.count <= 0) return {};
    const trace::TypeEntry& type = trace_.types[block.type];
    return {static_cast<uint64_t>(block.count) * static_cast<uint64_t>(type.size_bytes), block.count,
            context_.layouts.number_of(trace_.rank, block.type, block.count)};
  }

  [[nodiscard]] uint32_t message_tag(uint32_t comm, int32_t tag) {
    return context_.tags.intern(context_.communicators.number_of(trace_.rank, comm), Tags::Kind::message,
                                static_cast<uint64_t>(static_cast<uint32_t>(tag)));
  }

  // The rank in the world of a message's peer. On an intercommunicator peers are ranks of the remote group.
  [[nodiscard]] Result<uint32_t> world_rank(uint32_t comm, int32_t peer) const {
    if (comm >= trace_.comms.size()) return fail(Code::invalid, where(), "there is no communicator ", comm);
    const CommEntry& entry = trace_.comms[comm];
    return world_rank_of_member(entry.remote_ranks.empty() ? entry.world_ranks : entry.remote_ranks, peer);
  }

  [[nodiscard]] Result<uint32_t> world_rank_of_member(const std::vector<uint32_t>& group, int32_t peer) const {
    if (peer < 0 || static_cast<size_t>(peer) >= group.size()) {
      return fail(Code::invalid, where(), "peer ", peer, " of a group of ", group.size());
    }
    const uint32_t rank = group[static_cast<size_t>(peer)];
    if (rank >= trace_.ranks) {
      return fail(Code::unsupported, where(), "peer ", peer, " is not in MPI_COMM_WORLD of the recorded program");
    }
    return rank;
  }

  [[nodiscard]] std::string where() const { return text("rank ", trace_.rank, ", event ", event_number_, ": "); }

  Request& request_at(uint32_t request) {
    if (request >= requests_.size()) requests_.resize(request + 1);
    return requests_[request];
  }

  void open_round() {
    const auto legs = static_cast<uint32_t>(script_.legs.size());
    const auto copies = static_cast<uint32_t>(script_.copies.size());
    script_.rounds.push_back({legs, legs, copies, copies, 0});
  }
  void close_round() {
    ScriptRound& round = script_.rounds.back();
    round.legs_end = static_cast<uint32_t>(script_.legs.size());
    round.copies_end = static_cast<uint32_t>(script_.copies.size());
  }

  const RankTrace& trace_;
  const StoryContext& context_;
  RankScript script_;
  uint32_t event_number_ = 0;
  uint64_t last_end_ns_ = 0;  // the time when the calls before had all ended
  uint64_t poll_ns_ = 0;  // the time that a poll in vain takes, if the program works between them; 0: it waits
  std::vector<Request> requests_;  // one for each slot
  std::map<uint32_t, uint64_t> nonblocking_count_;  // non-blocking collective operations, by communicator
  std::map<uint32_t, uint64_t> persistent_count_;  // persistent ones, by communicator
};

}  // namespace

std::string Tags::describe(uint32_t number) const {
  for (const auto& [key, value] : numbers_) {
    if (value != number) continue;
    const auto [communicator, kind, tag] = key;
    if (kind != Kind::message) return text("a collective operation of communicator ", communicator);
    return text("tag ", tag, " of communicator ", communicator);
  }
  return "any tag";
}

Result<RankScript> story_of(const RankTrace& trace, const StoryContext& context) {
  return StoryReader(trace, context).read();
}

}  // namespace spinloom::predict
