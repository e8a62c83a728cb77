#include "trace/match.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/communicators.hpp"
#include "trace/walk.hpp"

namespace spinloom::trace {
namespace {

bool is_send(Call call) { return call >= Call::Send && call <= Call::Bsend; }

// The transfers of one rank, each list in the order in which they began.
class Collector {
 public:
  struct Found {
    Transfer transfer;
    uint32_t comm = none;  // of the trace
    bool is_cancelled = false;
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
        for (const auto& [list, place] : open_[slot]) (*list)[place].is_cancelled = true;
      }
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
    if (peer == nobody || signature.comm == none) return;
    Found found;
    found.comm = signature.comm;
    found.transfer = {.trace = number_,
                      .event = event,
                      .peer = world_rank(signature.comm, peer),
                      .tag = tag,
                      .block = block,
                      .bytes = bytes_of(block)};
    if (peer != any && found.transfer.peer == none) return;
    places.emplace_back(&list, list.size());
    list.push_back(found);
  }

  void meet(const Places& places, const Match& match) {
    for (const auto& [list, place] : places) {
      if (list != &receives) continue;
      Found& found = receives[place];
      found.transfer.peer = world_rank(found.comm, match.source);
      found.transfer.tag = match.tag;
    }
  }

  // The message is taken now; MPI_Mrecv says where it goes.
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

}  // namespace

Matching match(std::span<const RankTrace* const> traces) {
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, int32_t>;  // communicator, sender, receiver, tag
  struct Queue {
    std::vector<Transfer> receives;
    size_t next = 0;
  };
  const Communicators communicators(traces);
  std::map<Key, Queue> queues;
  std::vector<Collector> collected;
  collected.reserve(traces.size());
  Matching matching;
  for (uint32_t i = 0; i < traces.size(); ++i) {
    const RankTrace& trace = *traces[i];
    Collector& own = collected.emplace_back(trace, i);
    walk(trace, own);
    for (const Collector::Found& found : own.receives) {
      const Transfer& one = found.transfer;
      if (found.is_cancelled && one.done == none) continue;
      if (one.peer == none || one.tag == any) {
        if (!found.is_cancelled) matching.receives.push_back(one);
      } else {
        queues[{communicators.number(i, found.comm), one.peer, trace.rank, one.tag}].receives.push_back(one);
      }
    }
  }
  for (uint32_t i = 0; i < traces.size(); ++i) {
    for (const Collector::Found& found : collected[i].sends) {
      const Transfer& one = found.transfer;
      const auto queue = queues.find({communicators.number(i, found.comm), traces[i]->rank, one.peer, one.tag});
      if (queue != queues.end() && queue->second.next < queue->second.receives.size()) {
        matching.pairs.push_back({one, queue->second.receives[queue->second.next++]});
      } else if (!found.is_cancelled) {
        matching.sends.push_back(one);
      }
    }
  }
  for (const auto& [key, queue] : queues) {
    matching.receives.insert(matching.receives.end(), queue.receives.begin() + static_cast<std::ptrdiff_t>(queue.next),
                             queue.receives.end());
  }
  return matching;
}

}  // namespace spinloom::trace
