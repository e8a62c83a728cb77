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

class Reader {
 public:
  Reader(const RankTrace& trace, const StoryContext& context) : trace_(trace), context_(context) {}

  Result<RankScript> read() {
    poll_ns_ = is_work() ? poll_ns() : 0;
    for (number_ = 0; number_ < trace_.events.size(); ++number_) {
      const Event& event = trace_.events[number_];
      const Signature& call = trace_.signatures[event.signature];
      if (call.call == Call::Init) {
        story_ = {};
        ended_ns_ = event.end_ns;
        continue;
      }
      if (ended_ns_ != 0 && event.begin_ns > ended_ns_) step(Step::Kind::compute, event.begin_ns - ended_ns_);
      ended_ns_ = std::max(ended_ns_, event.end_ns);
      if (call.call == Call::Finalize) break;
      if (event.polls != 0) {
        if (poll_ns_ != 0) work_between(event);
        continue;
      }
      if (call.error != 0) {
        leave_out(text(trace::name_of(call.call), " with error ", call.error, ": not replayed"), 0);
        continue;
      }
      SPL_TRY(play(call, event));
    }
    for (const Action& action : story_.actions) {
      if (action.may_be_cancelled) {
        leave_out(
            "Cancel, and the trace does not say whether it came in time: met only by a message that is left for it", 0);
      }
    }
    return std::move(story_);
  }

 private:
  struct Slot {
    bool is_used = false;
    bool is_kept = false;  // a call that is not replayed: so is the wait for it
    uint32_t action = trace::none;  // under way
    const Signature* persistent = nullptr;
    uint64_t ordinal = 0;  // of a persistent collective operation
  };

  // Returns the time of one poll in vain.
  [[nodiscard]] uint64_t poll_ns() const {
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

  [[nodiscard]] bool is_work() const {
    if (context_.polls != Polls::rule) return context_.polls == Polls::work;
    constexpr uint64_t apart = 2;
    uint64_t polls = 0;
    uint64_t time_ns = 0;
    for (const Event& event : trace_.events) {
      if (event.polls <= 1) continue;
      polls += event.polls;
      time_ns += event.end_ns - event.begin_ns;
    }
    return polls != 0 && time_ns >= apart * polls * poll_ns();
  }

  void work_between(const Event& event) {
    const uint64_t time_ns = event.end_ns - event.begin_ns;
    const uint64_t in_polls_ns = event.polls * poll_ns_;
    if (time_ns <= in_polls_ns) return;
    story_.recorded.between_ns += time_ns - in_polls_ns;
    step(Step::Kind::compute, time_ns - in_polls_ns);
  }

  void step(Step::Kind kind, uint64_t value, uint32_t count = 0) {
    story_.steps.push_back({kind, number_, value, count});
  }

  void leave_out(const std::string& what, uint64_t time_ns) {
    Note& note = context_.script.left_out[what];
    ++note.count;
    note.time_ns += time_ns;
  }

  void keep_time(const Signature& call, const Event& event, std::string_view why) {
    const uint64_t time_ns = event.end_ns - event.begin_ns;
    leave_out(text(trace::name_of(call.call), " ", why, ": keeps its recorded time"), time_ns);
    if (time_ns != 0) step(Step::Kind::fixed, time_ns);
    if (call.form != CallForm::blocking) {
      for (const uint32_t request : call.requests) slot(request) = {.is_used = true, .is_kept = true};
    }
  }

  Status play(const Signature& call, const Event& event) {
    if (is_completion(call.call)) return complete(call, event);
    if (is_probe(call.call)) return {};
    if (is_send(call.call) || is_receive(call.call) || is_exchange(call.call) || is_collective(call.call)) {
      if (is_collective(call.call) && !can_replay(call)) {
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
        for (const uint32_t request : call.requests) slot(request) = {};
        return {};
      case Call::Cancel:
        for (const uint32_t request : call.requests) cancel(request);
        return {};
      case Call::Comm_free: return {};
      default: keep_time(call, event, "is not a message"); return {};
    }
  }

  [[nodiscard]] bool can_replay(const Signature& call) const {
    return call.comm == trace::none || trace_.comms[call.comm].remote_ranks.empty();
  }

  // A persistent form is kept until it starts.
  Status begin_or_keep(const Signature& call) {
    if (call.form == CallForm::blocking) return begin(call, nullptr);
    if (call.requests.size() != 1) {
      return fail(Code::invalid, place(), trace::name_of(call.call), " makes ", call.requests.size(), " requests");
    }
    Slot& made = slot(call.requests[0]);
    made = {.is_used = true};
    if (call.form == CallForm::nonblocking) return begin(call, &made);
    made.persistent = &call;
    if (is_collective(call.call)) made.ordinal = persistent_[call.comm]++;
    return {};
  }

  Status start(const Signature& call) {
    for (const uint32_t request : call.requests) {
      Slot& one = slot(request);
      if (one.persistent == nullptr) {
        return fail(Code::invalid, place(), "request ", request, " starts, and none was made for it");
      }
      SPL_TRY(begin(*one.persistent, &one));
    }
    return {};
  }

  Status begin(const Signature& call, Slot* made) {
    if (call.comm == trace::none) {
      if (call.call == Call::Comm_make) return {};  // MPI_COMM_NULL: the rank is not a member
      if (call.call == Call::Mrecv && call.peer == trace::nobody) return {};  // MPI_MESSAGE_NO_PROC
      if (is_receive(call.call) && call.peer == trace::any) return {};  // the trace does not say what this was
      return fail(Code::invalid, place(), trace::name_of(call.call), " without a communicator");
    }
    Action action{.event = number_,
                  .first_round = static_cast<uint32_t>(story_.rounds.size()),
                  .is_blocking = made == nullptr,
                  .is_awaited = made == nullptr,
                  .is_synchronous = call.call == Call::Ssend,
                  .is_collective = is_collective(call.call)};
    if (is_collective(call.call)) {
      SPL_TRY(add_collective(call, made));
    } else {
      SPL_TRY(add_messages(call));
    }
    action.rounds_end = static_cast<uint32_t>(story_.rounds.size());
    if (made != nullptr) made->action = static_cast<uint32_t>(story_.actions.size());
    step(Step::Kind::act, story_.actions.size());
    story_.actions.push_back(action);
    return {};
  }

  Status complete(const Signature& call, const Event& event) {
    const auto first = static_cast<uint32_t>(story_.awaited.size());
    const bool is_kept =
        !call.requests.empty() && std::ranges::all_of(call.requests, [&](uint32_t one) { return slot(one).is_kept; });
    if (is_kept) keep_time(call, event, "for what is not replayed");
    for (const uint32_t request : call.requests) {
      Slot& one = slot(request);
      if (one.action != trace::none) {
        Action& action = story_.actions[one.action];
        for (const Match& match : call.matches) {
          if (match.request == request) SPL_TRY(resolve(action, match));
        }
        story_.actions[one.action].is_awaited = true;
        story_.awaited.push_back(one.action);
      }
      one.action = trace::none;
      if (one.persistent == nullptr) one = {};
    }
    const auto count = static_cast<uint32_t>(story_.awaited.size()) - first;
    if (count != 0) step(Step::Kind::await, first, count);
    return {};
  }

  // Fills in the receive of an action that asked for any source or any tag: the one without a peer or a tag. Or the
  // match gives the outcome of a cancel.
  Status resolve(Action& action, const Match& match) {
    action.may_be_cancelled = false;
    if (match.source == trace::cancelled) {
      drop(action);
      return {};
    }
    if (match.source == trace::any) return {};
    for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
      for (uint32_t number = story_.rounds[round].first_leg; number < story_.rounds[round].legs_end; ++number) {
        Leg& leg = story_.legs[number];
        if (leg.side != Side::receive || leg.tag != unresolved) continue;
        const uint32_t comm = leg.peer;
        SPL_ASSIGN(leg.peer, world_rank(comm, match.source));
        leg.tag = message_tag(comm, match.tag);
        return {};
      }
    }
    return {};
  }

  void cancel(uint32_t request) {
    const uint32_t action = slot(request).action;
    if (action != trace::none) story_.actions[action].may_be_cancelled = true;
  }

  void drop(const Action& action) {
    for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
      for (uint32_t leg = story_.rounds[round].first_leg; leg < story_.rounds[round].legs_end; ++leg) {
        story_.legs[leg].tag = dropped;
      }
    }
  }

  Status add_messages(const Signature& call) {
    open_round();
    if (is_receive(call.call) || is_exchange(call.call)) SPL_TRY(add_receive(call));
    if (!is_receive(call.call) && call.peer != trace::nobody) {
      SPL_ASSIGN(const uint32_t peer, world_rank(call.comm, call.peer));
      const Part part = call.sends.empty() ? Part{} : part_of(call.sends[0]);
      story_.legs.push_back({part, peer, message_tag(call.comm, call.tag), Side::send, {}});
    }
    close_round();
    return {};
  }

  Status add_receive(const Signature& call) {
    const bool exchange = is_exchange(call.call);
    const uint32_t comm = call.comm;
    int32_t source = exchange ? call.receive_peer : call.peer;
    int32_t tag = exchange ? call.receive_tag : call.tag;
    if (source == trace::nobody) return {};
    for (const Match& match : call.matches) {
      if (match.request != trace::none && call.call != Call::Mrecv) continue;
      source = match.source;
      tag = match.tag;
    }
    const std::vector<Block>& blocks = call.receives.empty() ? call.sends : call.receives;
    const Part part = blocks.empty() ? Part{} : part_of(blocks[0]);
    if (source == trace::any || tag == trace::any) {
      story_.legs.push_back({part, comm, unresolved, Side::receive, {}});
      return {};
    }
    SPL_ASSIGN(const uint32_t peer, world_rank(comm, source));
    story_.legs.push_back({part, peer, message_tag(comm, tag), Side::receive, {}});
    return {};
  }

  Status add_collective(const Signature& call, const Slot* made) {
    const CommEntry& comm = trace_.comms[call.comm];
    const uint32_t communicator = context_.communicators.number(trace_.rank, call.comm);
    SPL_ASSIGN(const CollectiveCall collective, collective_of(call, comm));
    uint32_t tag = 0;
    if (made == nullptr) {
      tag = context_.tags.number(communicator, Tags::Kind::collective, 0);
    } else if (made->persistent != nullptr) {
      tag = context_.tags.number(communicator, Tags::Kind::persistent, made->ordinal);
    } else {
      tag = context_.tags.number(communicator, Tags::Kind::nonblocking, nonblocking_[call.comm]++);
    }
    if (call.call != Call::Comm_make) {
      std::string name(trace::name_of(call.call));
      name[0] = static_cast<char>(name[0] - 'A' + 'a');
      ++context_.script.algorithms[text(name, " ", algorithm_of(collective, context_.algorithms))];
    }
    auto rounds = rounds_of(collective, context_.algorithms);
    if (!rounds) return fail(rounds.error().code, place(), rounds.error().message);
    for (const Round& round : *rounds) {
      open_round();
      for (const Leg& leg : round.legs) {
        SPL_ASSIGN(const uint32_t peer, member(comm.world_ranks, static_cast<int32_t>(leg.peer)));
        story_.legs.push_back({anywhere(leg.part), peer, tag, leg.side, {}});
      }
      for (const Copy& copy : round.copies) story_.copies.push_back({anywhere(copy.from), anywhere(copy.to)});
      story_.rounds.back().combined_bytes = round.combined_bytes();
      close_round();
    }
    return {};
  }

  Result<CollectiveCall> collective_of(const Signature& call, const CommEntry& comm) {
    CollectiveCall made;
    made.call = call.call;
    made.rank = comm.rank;
    made.size = static_cast<uint32_t>(comm.world_ranks.size());
    made.in_place = call.in_place;
    made.is_grid = !comm.dims.empty();
    made.sources = comm.sources;
    made.destinations = comm.destinations;
    if (call.peer >= 0 && is_rooted(call.call)) made.root = static_cast<uint32_t>(call.peer);
    for (const Block& block : call.sends) made.sends.push_back(part_of(block));
    for (const Block& block : call.receives) made.receives.push_back(part_of(block));
    // The trace gives as sent data what all ranks get together.
    if (call.call == Call::Reduce_scatter_block) made.sends = made.receives;
    return made;
  }

  // Prices do not depend on the place.
  static Part anywhere(const Part& part) { return collective::algorithms::moved(part, {}); }

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
            context_.layouts.number(trace_.rank, block.type, block.count)};
  }

  [[nodiscard]] uint32_t message_tag(uint32_t comm, int32_t tag) {
    return context_.tags.number(context_.communicators.number(trace_.rank, comm), Tags::Kind::message,
                                static_cast<uint64_t>(static_cast<uint32_t>(tag)));
  }

  // The rank in the world of a message's peer. On an intercommunicator peers are ranks of the remote group.
  [[nodiscard]] Result<uint32_t> world_rank(uint32_t comm, int32_t peer) const {
    if (comm >= trace_.comms.size()) return fail(Code::invalid, place(), "there is no communicator ", comm);
    const CommEntry& entry = trace_.comms[comm];
    return member(entry.remote_ranks.empty() ? entry.world_ranks : entry.remote_ranks, peer);
  }

  [[nodiscard]] Result<uint32_t> member(const std::vector<uint32_t>& group, int32_t peer) const {
    if (peer < 0 || static_cast<size_t>(peer) >= group.size()) {
      return fail(Code::invalid, place(), "peer ", peer, " of a group of ", group.size());
    }
    const uint32_t rank = group[static_cast<size_t>(peer)];
    if (rank >= trace_.ranks) {
      return fail(Code::unsupported, place(), "peer ", peer, " is not in MPI_COMM_WORLD of the recorded program");
    }
    return rank;
  }

  [[nodiscard]] std::string place() const { return text("rank ", trace_.rank, ", event ", number_, ": "); }

  Slot& slot(uint32_t request) {
    if (request >= slots_.size()) slots_.resize(request + 1);
    return slots_[request];
  }

  void open_round() {
    const auto legs = static_cast<uint32_t>(story_.legs.size());
    const auto copies = static_cast<uint32_t>(story_.copies.size());
    story_.rounds.push_back({legs, legs, copies, copies, 0});
  }
  void close_round() {
    ScriptRound& round = story_.rounds.back();
    round.legs_end = static_cast<uint32_t>(story_.legs.size());
    round.copies_end = static_cast<uint32_t>(story_.copies.size());
  }

  const RankTrace& trace_;
  const StoryContext& context_;
  RankScript story_;
  uint32_t number_ = 0;      // of the event
  uint64_t ended_ns_ = 0;    // the call before
  uint64_t poll_ns_ = 0;     // what a poll in vain takes, if the program works between them; 0: it waits
  std::vector<Slot> slots_;  // of requests
  std::map<uint32_t, uint64_t> nonblocking_;  // collective operations, by communicator
  std::map<uint32_t, uint64_t> persistent_;
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
  return Reader(trace, context).read();
}

}  // namespace spinloom::predict
