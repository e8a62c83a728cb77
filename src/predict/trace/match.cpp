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
  enum class Cancel : uint8_t { no, unknown, done };
  // A transfer, of which later events tell more.
  struct PendingTransfer {
    Transfer transfer;
    uint32_t comm = none;  // its number in the trace; none: the trace has none
    Cancel cancel = Cancel::no;
  };

  Collector(const RankTrace& trace, uint32_t number) : trace_(trace), number_(number) {}

  void started(uint32_t event, const Signature& made, uint32_t slot) { begin(event, made, slot); }
  void ended(uint32_t event, const OpenSlot&, uint32_t slot) {
    const auto transfers = under_way_.find(slot);
    if (transfers == under_way_.end()) return;
    for (const auto& [list, place] : transfers->second) (*list)[place].transfer.done = event;
    const auto& matches = trace_.signatures[trace_.events[event].signature].matches;
    for (const Match& match : matches) {
      if (match.request == slot) apply_match(transfers->second, match);
    }
    under_way_.erase(transfers);
  }
  void event(uint32_t number, const Signature& signature) {
    if (signature.error != 0) return;
    if (signature.call == Call::Mprobe || signature.call == Call::Improbe) return add_probed(number, signature);
    if (signature.call == Call::Cancel) {
      for (const uint32_t slot : signature.requests) {
        const auto transfers = under_way_.find(slot);
        if (transfers == under_way_.end()) continue;
        for (const auto& [list, place] : transfers->second) (*list)[place].cancel = Cancel::unknown;
      }
      return;
    }
    if (signature.call == Call::Request_free) {
      for (const uint32_t slot : signature.requests) under_way_.erase(slot);
      return;
    }
    if (signature.form == CallForm::persistent) {
      for (const uint32_t slot : signature.requests) persistent_signatures_[slot] = trace_.events[number].signature;
      return;
    }
    begin(number, signature, signature.requests.empty() ? none : signature.requests[0]);
  }

  std::vector<PendingTransfer> sends, receives;

 private:
  using Places = std::vector<std::pair<std::vector<PendingTransfer>*, size_t>>;

  void begin(uint32_t event, const Signature& signature, uint32_t slot) {
    Places places;
    const bool is_exchange = signature.call == Call::Sendrecv || signature.call == Call::Sendrecv_replace;
    if (signature.call == Call::Mrecv) {
      take_probed(event, signature, places);
    } else {
      if ((is_send(signature.call) || is_exchange) && !signature.sends.empty()) {
        add(sends, places, event, signature, signature.sends[0], signature.peer, signature.tag);
      }
      if ((signature.call == Call::Recv || is_exchange) && !signature.receives.empty()) {
        add(receives, places, event, signature, signature.receives[0],
            is_exchange ? signature.receive_peer : signature.peer, is_exchange ? signature.receive_tag : signature.tag);
      }
    }
    if (places.empty()) return;
    for (const auto& [list, place] : places) {
      const auto persistent = persistent_signatures_.find(slot);
      const bool is_start = trace_.signatures[trace_.events[event].signature].call != signature.call;
      (*list)[place].transfer.signature =
          is_start && persistent != persistent_signatures_.end() ? persistent->second : trace_.events[event].signature;
    }
    if (slot != none) {
      under_way_[slot] = std::move(places);
      return;
    }
    for (const auto& [list, place] : places) (*list)[place].transfer.done = event;
    for (const Match& match : signature.matches) apply_match(places, match);
  }

  void add(std::vector<PendingTransfer>& list, Places& places, uint32_t event, const Signature& signature,
           const Block& block, int32_t peer, int32_t tag) {
    const bool has_unknown_sender = signature.comm == none && peer == any;
    if (peer == nobody || (signature.comm == none && !has_unknown_sender)) return;
    PendingTransfer pending;
    pending.comm = signature.comm;
    pending.transfer = {.trace = number_,
                        .event = event,
                        .peer = has_unknown_sender ? none : world_rank(signature.comm, peer),
                        .tag = tag,
                        .block = block,
                        .bytes = bytes_of(block)};
    if (peer != any && pending.transfer.peer == none) return;
    places.emplace_back(&list, list.size());
    list.push_back(pending);
  }

  void apply_match(const Places& places, const Match& match) {
    for (const auto& [list, place] : places) {
      PendingTransfer& pending = (*list)[place];
      pending.cancel = match.source == cancelled ? Cancel::done : Cancel::no;
      if (list != &receives || match.source < 0 || pending.comm == none) continue;
      pending.transfer.peer = world_rank(pending.comm, match.source);
      pending.transfer.tag = match.tag;
    }
  }

  // The message is taken now; MPI_Mrecv gives the buffer later.
  void add_probed(uint32_t event, const Signature& signature) {
    if (signature.matches.empty() || signature.matches[0].source < 0 || signature.comm == none) return;
    const Match& match = signature.matches[0];
    probed_[{signature.comm, match.source, match.tag}].push_back(receives.size());
    PendingTransfer pending;
    pending.comm = signature.comm;
    pending.transfer = {.trace = number_,
                        .event = event,
                        .peer = world_rank(signature.comm, match.source),
                        .tag = match.tag,
                        .block = {},
                        .bytes = match.bytes};
    receives.push_back(pending);
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
  std::unordered_map<uint32_t, Places> under_way_;  // the transfers of each slot's request
  std::unordered_map<uint32_t, uint32_t> persistent_signatures_;  // the signature that made each slot's request
  std::map<std::tuple<uint32_t, int32_t, int32_t>, std::deque<size_t>> probed_;
};

using PendingTransfer = Collector::PendingTransfer;

bool may_be_cancelled(const PendingTransfer* pending) { return pending->cancel == Collector::Cancel::unknown; }

using Key = std::tuple<uint32_t, uint32_t, uint32_t, int32_t>;  // communicator, sender, receiver, tag

// Both ends of the messages of one key. Receives that may have got one of several messages have a key with `none` or
// `any`.
struct MessageEnds {
  std::vector<PendingTransfer*> sends;
  std::vector<PendingTransfer*> receives;
  size_t matched = 0;  // the number of receives that have got their message

  void settle_cancels() {
    const bool is_doubtful =
        std::ranges::any_of(sends, may_be_cancelled) || std::ranges::any_of(receives, may_be_cancelled);
    for (PendingTransfer* const pending : drop_surplus(receives, sends.size(), may_be_cancelled)) {
      pending->cancel = Collector::Cancel::done;
    }
    for (PendingTransfer* const pending : drop_surplus(sends, receives.size(), may_be_cancelled)) {
      pending->cancel = Collector::Cancel::done;
    }
    for (auto* const list : {&sends, &receives}) {
      for (PendingTransfer* const pending : *list) pending->transfer.is_doubtful = is_doubtful;
    }
  }
};
using Messages = std::map<Key, MessageEnds>;

bool has_unknown_sender(const Key& key) { return std::get<1>(key) == none || std::get<3>(key) == any; }

// Looks for a receive that can take this message and whose own match is not in the traces. Returns true if one is left.
// Marks the message as doubtful if there are such receives.
bool take_unknown_receive(Messages& messages, const Key& key, Transfer& send) {
  const auto& [message_comm, sender, receiver, message_tag] = key;
  for (const uint32_t comm : {message_comm, none}) {
    for (const uint32_t from : {sender, none}) {
      for (const int32_t tag : {message_tag, any}) {
        const Key other(comm, from, receiver, tag);
        const auto ends = has_unknown_sender(other) ? messages.find(other) : messages.end();
        if (ends == messages.end() || ends->second.receives.empty()) continue;
        send.is_doubtful = true;
        if (ends->second.matched == ends->second.receives.size()) continue;
        ++ends->second.matched;
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
  const auto comm_of = [&](uint32_t trace, const PendingTransfer& pending) {
    return pending.comm == none ? none : communicators.number_of(trace, pending.comm);
  };
  for (uint32_t i = 0; i < traces.size(); ++i) {
    const uint32_t rank = traces[i]->rank;
    Collector& own = collected.emplace_back(*traces[i], i);
    walk(*traces[i], own);
    for (PendingTransfer& pending : own.sends) {
      if (pending.cancel == Collector::Cancel::done) continue;
      messages[{comm_of(i, pending), rank, pending.transfer.peer, pending.transfer.tag}].sends.push_back(&pending);
    }
    for (PendingTransfer& pending : own.receives) {
      if (pending.cancel == Collector::Cancel::done) continue;
      messages[{comm_of(i, pending), pending.transfer.peer, rank, pending.transfer.tag}].receives.push_back(&pending);
    }
  }
  for (auto& [key, ends] : messages) {
    if (!has_unknown_sender(key)) ends.settle_cancels();
  }
  Matching matching;
  for (uint32_t i = 0; i < traces.size(); ++i) {
    for (PendingTransfer& pending : collected[i].sends) {
      if (pending.cancel == Collector::Cancel::done) continue;
      const Key key(comm_of(i, pending), traces[i]->rank, pending.transfer.peer, pending.transfer.tag);
      MessageEnds& ends = messages[key];
      if (ends.matched < ends.receives.size()) {
        matching.pairs.push_back({pending.transfer, ends.receives[ends.matched++]->transfer});
      } else if (!take_unknown_receive(messages, key, pending.transfer)) {
        matching.sends.push_back(pending.transfer);
      }
    }
  }
  for (auto& [key, ends] : messages) {
    for (size_t i = ends.matched; i < ends.receives.size(); ++i) {
      const PendingTransfer& pending = *ends.receives[i];
      // A receive from an unknown sender or with any tag is not missing a message if it has ended or had a cancel.
      if (has_unknown_sender(key) && (pending.transfer.done != none || pending.cancel != Collector::Cancel::no))
        continue;
      matching.receives.push_back(pending.transfer);
      matching.receives.back().is_doubtful |= pending.comm == none;
    }
  }
  return matching;
}

}  // namespace spinloom::trace
