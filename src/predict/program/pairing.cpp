#include <algorithm>
#include <unordered_map>

#include "predict/program/story.hpp"
#include "predict/trace/cancels.hpp"

namespace spinloom::predict {
namespace {

struct LegId {
  uint32_t rank = 0;
  uint32_t leg = 0;
};

// The ends of the messages from one rank to another with one tag, in the order of both ranks.
struct Stream {
  std::vector<LegId> sends;
  std::vector<LegId> receives;
};

class Pairing {
 public:
  Pairing(std::span<const trace::RankTrace> traces, std::vector<RankScript>& ranks, const Tags& tags)
      : traces_(traces), ranks_(ranks), tags_(tags), action_of_leg_(ranks.size()), has_unknown_senders_(ranks.size()) {}

  Status pair() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) collect(rank);
    for (Stream& stream : streams_) {
      drop_cancelled(stream);
      SPL_TRY(match(stream));
    }
    while (cut_further()) {
    }
    return {};
  }

 private:
  void collect(uint32_t rank) {
    RankScript& script = ranks_[rank];
    action_of_leg_[rank].resize(script.legs.size());
    script.synchronous.resize(script.legs.size());
    for (uint32_t action_number = 0; action_number < script.actions.size(); ++action_number) {
      const Action& action = script.actions[action_number];
      if (action.first_round == action.rounds_end) continue;
      const uint32_t end = script.rounds[action.rounds_end - 1].legs_end;
      for (uint32_t number = script.rounds[action.first_round].first_leg; number < end; ++number) {
        action_of_leg_[rank][number] = action_number;
        Leg& leg = script.legs[number];
        if (leg.tag == unresolved) {  // nobody waited for it, or nobody told whose message it got
          leg.tag = dropped;
          has_unknown_senders_[rank] = has_unknown_senders_[rank] || action.is_awaited;
        }
        if (leg.tag == dropped) continue;
        const bool is_send = leg.side == Side::send;
        Stream& stream = stream_of(is_send ? rank : leg.peer, is_send ? leg.peer : rank, leg.tag);
        (is_send ? stream.sends : stream.receives).push_back({rank, number});
      }
    }
  }

  Stream& stream_of(uint32_t from, uint32_t to, uint32_t tag) {
    const uint64_t pair = uint64_t{from} * ranks_.size() + to;
    const size_t number = stream_numbers_[tag].try_emplace(pair, streams_.size()).first->second;
    if (number == streams_.size()) streams_.emplace_back();
    return streams_[number];
  }

  [[nodiscard]] Leg& leg_of(LegId id) { return ranks_[id.rank].legs[id.leg]; }
  [[nodiscard]] const Action& action_of(LegId id) const {
    return ranks_[id.rank].actions[action_of_leg_[id.rank][id.leg]];
  }

  // Drops ends that have no other end and may have been cancelled.
  void drop_cancelled(Stream& stream) {
    const auto is_uncertain = [this](LegId id) { return action_of(id).may_be_cancelled; };
    for (const LegId id : trace::drop_surplus(stream.receives, stream.sends.size(), is_uncertain)) {
      leg_of(id).tag = dropped;
    }
    for (const LegId id : trace::drop_surplus(stream.sends, stream.receives.size(), is_uncertain)) {
      leg_of(id).tag = dropped;
    }
  }

  Status match(const Stream& stream) {
    const size_t pairs = std::min(stream.sends.size(), stream.receives.size());
    for (size_t number = 0; number < pairs; ++number) {
      Leg& sent = leg_of(stream.sends[number]);
      Leg& received = leg_of(stream.receives[number]);
      if (received.part.bytes != sent.part.bytes) SPL_TRY(shorten(stream.receives[number], received, sent.part.bytes));
      if (action_of(stream.sends[number]).is_synchronous) {
        for (const LegId id : {stream.sends[number], stream.receives[number]}) {
          ranks_[id.rank].synchronous[id.leg] = true;
        }
      }
      sent.partner_layout = received.own_layout();
      received.partner_layout = sent.own_layout();
      partners_.push_back({stream.sends[number], stream.receives[number]});
    }
    for (size_t number = pairs; number < stream.sends.size(); ++number) SPL_TRY(settle_unpaired(stream.sends[number]));
    for (size_t number = pairs; number < stream.receives.size(); ++number)
      SPL_TRY(settle_unpaired(stream.receives[number]));
    return {};
  }

  // A receive may take less than it has room for; a message of more is cut off by MPI with an error.
  Status shorten(LegId id, Leg& received, uint64_t bytes) {
    if (received.part.bytes < bytes) {
      return fail(Code::invalid, where(id), "receives at most ", received.part.bytes, " B from rank ", received.peer,
                  " (", tags_.describe(received.tag), "), and ", bytes, " B were sent");
    }
    const auto element =
        received.part.count == 0 ? 0 : received.part.bytes / static_cast<uint64_t>(received.part.count);
    received.part.count = element == 0 ? 0 : static_cast<int64_t>(div_ceil(bytes, element));
    received.part.bytes = bytes;
    return {};
  }
  static uint64_t div_ceil(uint64_t value, uint64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

  // Drops a leg without a partner, cuts the rank's trace before it, or is an error.
  Status settle_unpaired(LegId id) {
    Leg& leg = leg_of(id);
    const Action& action = action_of(id);
    const bool is_end_missing = !traces_[leg.peer].has_ended || !traces_[id.rank].has_ended;
    if (!action.is_awaited) {
      leg.tag = dropped;
      return {};
    }
    if (!is_end_missing && leg.side == Side::send && has_unknown_senders_[leg.peer]) {
      return fail(Code::unsupported, where(id), "sends ", leg.part.bytes, " B to rank ", leg.peer, " (",
                  tags_.describe(leg.tag),
                  "), which receives of any source: the trace does not tell whose messages it got, ",
                  "and a replay needs to know");
    }
    if (!is_end_missing) {
      return fail(Code::invalid, where(id), leg.side == Side::send ? "sends " : "receives ", leg.part.bytes, " B ",
                  leg.side == Side::send ? "to" : "from", " rank ", leg.peer, " (", tags_.describe(leg.tag),
                  "), and that rank has no call that meets it");
    }
    cut(id);
    return {};
  }

  [[nodiscard]] std::string where(LegId id) const {
    return text("rank ", id.rank, ", event ", action_of(id).event, ": ");
  }

  // Cuts the rank's script before the leg. Returns true if it was longer.
  bool cut(LegId id) {
    RankScript& script = ranks_[id.rank];
    const uint32_t event = action_of(id).event;
    if (event >= script.cut_event) return false;
    script.cut_event = event;
    return true;
  }

  // Cuts legs whose partner is not replayed. Returns true if it has cut any.
  bool cut_further() {
    bool changed = false;
    for (const auto& [sent, received] : partners_) {
      const bool is_sent = action_of(sent).event < ranks_[sent.rank].cut_event;
      const bool is_received = action_of(received).event < ranks_[received.rank].cut_event;
      if (is_sent != is_received) changed |= cut(is_sent ? sent : received);
    }
    return changed;
  }

  std::span<const trace::RankTrace> traces_;
  std::vector<RankScript>& ranks_;
  const Tags& tags_;
  std::vector<std::vector<uint32_t>> action_of_leg_;  // the number of the action of each rank's legs
  std::vector<bool> has_unknown_senders_;  // one for each rank: it has receives whose senders are in no trace
  std::vector<Stream> streams_;
  // The key is the tag, then both ranks.
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, size_t>> stream_numbers_;
  std::vector<std::pair<LegId, LegId>> partners_;  // the send and the receive of each message
};

}  // namespace

Status pair_legs(std::span<const trace::RankTrace> traces, std::vector<RankScript>& ranks, const Tags& tags) {
  return Pairing(traces, ranks, tags).pair();
}

}  // namespace spinloom::predict
