#include <algorithm>
#include <unordered_map>

#include "predict/program/story.hpp"
#include "predict/trace/cancels.hpp"

namespace spinloom::predict {
namespace {

struct Place {
  uint32_t rank = 0;
  uint32_t leg = 0;
};

struct Stream {  // from one rank to another with one tag
  std::vector<Place> sends;
  std::vector<Place> receives;
};

class Pairing {
 public:
  Pairing(std::span<const trace::RankTrace> traces, std::vector<RankScript>& ranks, const Tags& tags)
      : traces_(traces), ranks_(ranks), tags_(tags), actions_(ranks.size()), untold_(ranks.size()) {}

  Status pair() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) collect(rank);
    for (Stream& stream : streams_) {
      settle(stream);
      SPL_TRY(match(stream));
    }
    while (cut_further()) {
    }
    return {};
  }

 private:
  void collect(uint32_t rank) {
    RankScript& script = ranks_[rank];
    actions_[rank].resize(script.legs.size());
    script.synchronous.resize(script.legs.size());
    for (uint32_t action = 0; action < script.actions.size(); ++action) {
      const Action& one = script.actions[action];
      if (one.first_round == one.rounds_end) continue;
      const uint32_t end = script.rounds[one.rounds_end - 1].legs_end;
      for (uint32_t number = script.rounds[one.first_round].first_leg; number < end; ++number) {
        actions_[rank][number] = action;
        Leg& leg = script.legs[number];
        if (leg.tag == unresolved) {  // nobody waited for it, or nobody told whose message it got
          leg.tag = dropped;
          untold_[rank] = untold_[rank] || one.is_awaited;
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
    const size_t number = numbers_[tag].try_emplace(pair, streams_.size()).first->second;
    if (number == streams_.size()) streams_.emplace_back();
    return streams_[number];
  }

  [[nodiscard]] Leg& leg_of(Place place) { return ranks_[place.rank].legs[place.leg]; }
  [[nodiscard]] const Action& action_of(Place place) const {
    return ranks_[place.rank].actions[actions_[place.rank][place.leg]];
  }

  void settle(Stream& stream) {
    const auto may_be = [this](Place place) { return action_of(place).may_be_cancelled; };
    for (const Place place : trace::drop_surplus(stream.receives, stream.sends.size(), may_be))
      leg_of(place).tag = dropped;
    for (const Place place : trace::drop_surplus(stream.sends, stream.receives.size(), may_be))
      leg_of(place).tag = dropped;
  }

  Status match(const Stream& stream) {
    const size_t met = std::min(stream.sends.size(), stream.receives.size());
    for (size_t number = 0; number < met; ++number) {
      Leg& sent = leg_of(stream.sends[number]);
      Leg& received = leg_of(stream.receives[number]);
      if (received.part.bytes != sent.part.bytes) SPL_TRY(shorten(stream.receives[number], received, sent.part.bytes));
      if (action_of(stream.sends[number]).is_synchronous) {
        for (const Place place : {stream.sends[number], stream.receives[number]}) {
          ranks_[place.rank].synchronous[place.leg] = true;
        }
      }
      sent.partner = received.own();
      received.partner = sent.own();
      partners_.push_back({stream.sends[number], stream.receives[number]});
    }
    for (size_t number = met; number < stream.sends.size(); ++number) SPL_TRY(lone(stream.sends[number]));
    for (size_t number = met; number < stream.receives.size(); ++number) SPL_TRY(lone(stream.receives[number]));
    return {};
  }

  // A receive may take less than it has room for; a message of more is cut off by MPI with an error.
  Status shorten(Place place, Leg& received, uint64_t bytes) {
    if (received.part.bytes < bytes) {
      return fail(Code::invalid, where(place), "receives at most ", received.part.bytes, " B from rank ", received.peer,
                  " (", tags_.describe(received.tag), "), and ", bytes, " B were sent");
    }
    const auto element =
        received.part.count == 0 ? 0 : received.part.bytes / static_cast<uint64_t>(received.part.count);
    received.part.count = element == 0 ? 0 : static_cast<int64_t>(div_up(bytes, element));
    received.part.bytes = bytes;
    return {};
  }
  static uint64_t div_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

  // The leg has no partner.
  Status lone(Place place) {
    Leg& leg = leg_of(place);
    const Action& action = action_of(place);
    const bool is_end_missing = !traces_[leg.peer].ended || !traces_[place.rank].ended;
    if (!action.is_awaited) {
      leg.tag = dropped;
      return {};
    }
    if (!is_end_missing && leg.side == Side::send && untold_[leg.peer]) {
      return fail(Code::unsupported, where(place), "sends ", leg.part.bytes, " B to rank ", leg.peer, " (",
                  tags_.describe(leg.tag),
                  "), which receives of any source: the trace does not tell whose messages it got, ",
                  "and a replay needs to know");
    }
    if (!is_end_missing) {
      return fail(Code::invalid, where(place), leg.side == Side::send ? "sends " : "receives ", leg.part.bytes, " B ",
                  leg.side == Side::send ? "to" : "from", " rank ", leg.peer, " (", tags_.describe(leg.tag),
                  "), and that rank has no call that meets it");
    }
    cut(place);
    return {};
  }

  [[nodiscard]] std::string where(Place place) const {
    return text("rank ", place.rank, ", event ", action_of(place).event, ": ");
  }

  bool cut(Place place) {
    RankScript& script = ranks_[place.rank];
    const uint32_t event = action_of(place).event;
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
  std::vector<std::vector<uint32_t>> actions_;  // by rank and leg
  std::vector<bool> untold_;  // by rank: it has receives whose senders no trace tells
  std::vector<Stream> streams_;
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, size_t>> numbers_;  // of streams: by tag, and by both ends
  std::vector<std::pair<Place, Place>> partners_;
};

}  // namespace

Status pair_legs(std::span<const trace::RankTrace> traces, std::vector<RankScript>& ranks, const Tags& tags) {
  return Pairing(traces, ranks, tags).pair();
}

}  // namespace spinloom::predict
