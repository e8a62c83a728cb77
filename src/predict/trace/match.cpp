#include "predict/trace/match.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "predict/trace/cancels.hpp"
#include "predict/trace/communicators.hpp"
#include "predict/trace/walk.hpp"

namespace spinloom::trace {
namespace {

bool is_send(Call call) { return call >= Call::Send && call <= Call::Bsend; }

// The transfers of one rank, each list in the order in which they began.
class Collector {
 public:
  enum class Cancel : uint8_t { no, untold, done };
  struct Found {
    Transfer transfer;
    uint32_t comm = none;  // its number in the trace; none: the trace has none
    Cancel cancel = Cancel::no;
  };

  Collector(const RankTrace& trace, uint32_t number) : trace_(trace), number_(number) {}

  void started(uint32_t event, const Signature& made, uint32_t slot) { begin(event, made, slot); }
  void ended(uint32_t event, const OpenSlot&, uint32_t slot) {
    const auto found = open_.find(slot);
    if (found == open_.end()) return;
    for (const auto& [list, place] : found->second) (*list)[place].transfer.done = event;
    const auto& matches = trace_.signatures[trace_.events[event].signature].matches;
    for (const Match& match : matches) {
      if (match.request == slot) meet(found->second, match);
    }
    open_.erase(found);
  }
  void event(uint32_t number, const Signature& signature) {
    if (signature.error != 0) return;
    if (signature.call == Call::Mprobe || signature.call == Call::Improbe) return probe(number, signature);
    if (signature.call == Call::Cancel) {
      for (const uint32_t slot : signature.requests) {
        const auto found = open_.find(slot);
        if (found == open_.end()) continue;
        for (const auto& [list, place] : found->second) (*list)[place].cancel = Cancel::untold;
      }
      return;
    }
    if (signature.call == Call::Request_free) {
      for (const uint32_t slot : signature.requests) open_.erase(slot);
      return;
    }
    if (signature.form == CallForm::persistent) {
      for (const uint32_t slot : signature.requests) made_[slot] = trace_.events[number].signature;
      return;
    }
    begin(number, signature, signature.requests.empty() ? none : signature.requests[0]);
  }

  std::vector<Found> sends, receives;

 private:
  using Places = std::vector<std::pair<std::vector<Found>*, size_t>>;

  void begin(uint32_t event, const Signature& signature, uint32_t slot) {
    Places places;
    const bool both = signature.call == Call::Sendrecv || signature.call == Call::Sendrecv_replace;
    if (signature.call == Call::Mrecv) {
      take_probed(event, signature, places);
    } else {
      if ((is_send(signature.call) || both) && !signature.sends.empty()) {
        add(sends, places, event, signature, signature.sends[0], signature.peer, signature.tag);
      }
      if ((signature.call == Call::Recv || both) && !signature.receives.empty()) {
        add(receives, places, event, signature, signature.receives[0], both ? signature.receive_peer : signature.peer,
            both ? signature.receive_tag : signature.tag);
      }
    }
    if (places.empty()) return;
    for (const auto& [list, place] : places) {
      const auto made = made_.find(slot);
      const bool is_start = trace_.signatures[trace_.events[event].signature].call != signature.call;
      (*list)[place].transfer.signature =
          is_start && made != made_.end() ? made->second : trace_.events[event].signature;
    }
    if (slot != none) {
      open_[slot] = std::move(places);
      return;
    }
    for (const auto& [list, place] : places) (*list)[place].transfer.done = event;
    for (const Match& match : signature.matches) meet(places, match);
  }

  void add(std::vector<Found>& list, Places& places, uint32_t event, const Signature& signature, const Block& block,
           int32_t peer, int32_t tag) {
    const bool is_untold = signature.comm == none && peer == any;
    if (peer == nobody || (signature.comm == none && !is_untold)) return;
    Found found;
    found.comm = signature.comm;
    found.transfer = {.trace = number_,
                      .event = event,
                      .peer = is_untold ? none : world_rank(signature.comm, peer),
                      .tag = tag,
                      .block = block,
                      .bytes = bytes_of(block)};
    if (peer != any && found.transfer.peer == none) return;
    places.emplace_back(&list, list.size());
    list.push_back(found);
  }

  void meet(const Places& places, const Match& match) {
    for (const auto& [list, place] : places) {
      Found& found = (*list)[place];
      found.cancel = match.source == cancelled ? Cancel::done : Cancel::no;
      if (list != &receives || match.source < 0 || found.comm == none) continue;
      found.transfer.peer = world_rank(found.comm, match.source);
      found.transfer.tag = match.tag;
    }
  }

  // The message is taken now; MPI_Mrecv gives the buffer later.
  void probe(uint32_t event, const Signature& signature) {
    if (signature.matches.empty() || signature.matches[0].source < 0 || signature.comm == none) return;
    const Match& match = signature.matches[0];
    probed_[{signature.comm, match.source, match.tag}].push_back(receives.size());
    Found found;
    found.comm = signature.comm;
    found.transfer = {.trace = number_,
                      .event = event,
                      .peer = world_rank(signature.comm, match.source),
                      .tag = match.tag,
                      .block = {},
                      .bytes = match.bytes};
    receives.push_back(found);
  }
  void take_probed(uint32_t event, const Signature& signature, Places& places) {
    auto& waiting = probed_[{signature.comm, signature.peer, signature.tag}];
    if (waiting.empty() || signature.receives.empty()) return;
    const size_t place = waiting.front();
    waiting.pop_front();
    Transfer& transfer = receives[place].transfer;
    transfer.event = event;
    transfer.block = signature.receives[0];
    transfer.bytes = bytes_of(transfer.block);
    places.emplace_back(&receives, place);
  }

  [[nodiscard]] uint32_t world_rank(uint32_t comm, int32_t peer) const {
    const CommEntry& entry = trace_.comms[comm];
    const auto& ranks = entry.remote_ranks.empty() ? entry.world_ranks : entry.remote_ranks;
    return peer >= 0 && static_cast<size_t>(peer) < ranks.size() ? ranks[static_cast<size_t>(peer)] : none;
  }
  [[nodiscard]] int64_t bytes_of(const Block& block) const {
    int64_t bytes = 0;
    if (block.type == none || __builtin_mul_overflow(block.count, trace_.types[block.type].size_bytes, &bytes))
      return 0;
    return bytes;
  }

  const RankTrace& trace_;
  uint32_t number_;
  std::unordered_map<uint32_t, Places> open_;  // by slot
  std::unordered_map<uint32_t, uint32_t> made_;  // persistent: the signature that made the slot's request
  std::map<std::tuple<uint32_t, int32_t, int32_t>, std::deque<size_t>> probed_;
};

using Found = Collector::Found;

bool may_be_cancelled(const Found* one) { return one->cancel == Collector::Cancel::untold; }

using Key = std::tuple<uint32_t, uint32_t, uint32_t, int32_t>;  // communicator, sender, receiver, tag

// Both ends of the messages of one key. Receives that may have got one of several messages have a key with `none` or
// `any`.
struct Ends {
  std::vector<Found*> sends;
  std::vector<Found*> receives;
  size_t met = 0;  // how many of the receives have got their message

  void settle() {
    const bool is_doubtful =
        std::ranges::any_of(sends, may_be_cancelled) || std::ranges::any_of(receives, may_be_cancelled);
    for (Found* const one : drop_surplus(receives, sends.size(), may_be_cancelled)) {
      one->cancel = Collector::Cancel::done;
    }
    for (Found* const one : drop_surplus(sends, receives.size(), may_be_cancelled)) {
      one->cancel = Collector::Cancel::done;
    }
    for (auto* const list : {&sends, &receives}) {
      for (Found* const one : *list) one->transfer.is_doubtful = is_doubtful;
    }
  }
};
using Messages = std::map<Key, Ends>;

bool is_untold(const Key& key) { return std::get<1>(key) == none || std::get<3>(key) == any; }

// Looks for a receive that can take this message and whose own match is not in the traces. Returns true if one is left.
// Marks the message as doubtful if there are such receives.
bool take_untold(Messages& messages, const Key& key, Transfer& send) {
  const auto& [of_comm, sender, receiver, of_tag] = key;
  for (const uint32_t comm : {of_comm, none}) {
    for (const uint32_t from : {sender, none}) {
      for (const int32_t tag : {of_tag, any}) {
        const Key other(comm, from, receiver, tag);
        const auto found = is_untold(other) ? messages.find(other) : messages.end();
        if (found == messages.end() || found->second.receives.empty()) continue;
        send.is_doubtful = true;
        if (found->second.met == found->second.receives.size()) continue;
        ++found->second.met;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Matching match(std::span<const RankTrace* const> traces) {
  const Communicators communicators(traces);
  Messages messages;
  std::vector<Collector> collected;
  collected.reserve(traces.size());
  const auto comm_of = [&](uint32_t trace, const Found& found) {
    return found.comm == none ? none : communicators.number(trace, found.comm);
  };
  for (uint32_t i = 0; i < traces.size(); ++i) {
    const uint32_t rank = traces[i]->rank;
    Collector& own = collected.emplace_back(*traces[i], i);
    walk(*traces[i], own);
    for (Found& found : own.sends) {
      if (found.cancel == Collector::Cancel::done) continue;
      messages[{comm_of(i, found), rank, found.transfer.peer, found.transfer.tag}].sends.push_back(&found);
    }
    for (Found& found : own.receives) {
      if (found.cancel == Collector::Cancel::done) continue;
      messages[{comm_of(i, found), found.transfer.peer, rank, found.transfer.tag}].receives.push_back(&found);
    }
  }
  for (auto& [key, ends] : messages) {
    if (!is_untold(key)) ends.settle();
  }
  Matching matching;
  for (uint32_t i = 0; i < traces.size(); ++i) {
    for (Found& found : collected[i].sends) {
      if (found.cancel == Collector::Cancel::done) continue;
      const Key key(comm_of(i, found), traces[i]->rank, found.transfer.peer, found.transfer.tag);
      Ends& ends = messages[key];
      if (ends.met < ends.receives.size()) {
        matching.pairs.push_back({found.transfer, ends.receives[ends.met++]->transfer});
      } else if (!take_untold(messages, key, found.transfer)) {
        matching.sends.push_back(found.transfer);
      }
    }
  }
  for (auto& [key, ends] : messages) {
    for (size_t i = ends.met; i < ends.receives.size(); ++i) {
      const Found& found = *ends.receives[i];
      // A receive from an unknown sender or with any tag is not missing a message if it has ended or had a cancel.
      if (is_untold(key) && (found.transfer.done != none || found.cancel != Collector::Cancel::no)) continue;
      matching.receives.push_back(found.transfer);
      matching.receives.back().is_doubtful |= found.comm == none;
    }
  }
  return matching;
}

}  // namespace spinloom::trace
