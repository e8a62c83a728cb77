#include "predict/trace/check.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "predict/trace/overlaps.hpp"
#include "predict/trace/sequence.hpp"
#include "predict/trace/walk.hpp"

namespace spinloom::trace {
namespace {

class Findings {
 public:
  void add(Finding one) {
    const auto key = std::tuple(one.trouble, one.from, one.to, one.tag, one.sent_bytes, one.room_bytes, one.bytes);
    const auto [found, is_new] = places_.try_emplace(key, list_.size());
    if (is_new) list_.push_back(one);
    Finding& all = list_[found->second];
    ++all.times;
    all.doubt = std::min(all.doubt, one.doubt);
    all.first_ns = std::min(all.first_ns, one.first_ns);
  }
  [[nodiscard]] std::vector<Finding> take() {
    std::ranges::sort(list_, {}, [](const Finding& one) {
      return std::tuple(one.trouble, one.from, one.to, one.tag, one.sent_bytes, one.room_bytes, one.bytes);
    });
    return std::move(list_);
  }

 private:
  std::vector<Finding> list_;
  std::map<std::tuple<Trouble, uint32_t, uint32_t, int32_t, int64_t, int64_t, int64_t>, size_t> places_;
};

// True for types that match everything, or whose sequence says nothing.
bool is_loose(const TypeEntry& type) { return type.name == "MPI_PACKED" || type.name == "MPI_BYTE"; }

// Tracks the sends that are under way together, and reports bytes that sends to the same peer have in common.
class Exchanges {
 public:
  Exchanges(const RankTrace& trace, Findings& findings) : trace_(trace), findings_(findings) {}

  void started(uint32_t event, const Signature& made, uint32_t slot) { begin(event, made, slot); }
  void ended(uint32_t, const OpenSlot&, uint32_t slot) { close(slot); }
  void event(uint32_t number, const Signature& signature) {
    if (signature.call == Call::Request_free) {  // no later event says whether these are under way
      for (const uint32_t slot : signature.requests) close(slot);
    }
    if (signature.error != 0 || signature.form == CallForm::persistent) return;
    const bool is_open = signature.form == CallForm::nonblocking && !signature.requests.empty();
    begin(number, signature, is_open ? signature.requests[0] : none);
    if (is_open) return;
    look();
    std::erase_if(open_, [](const Open& one) { return one.slot == none; });
  }
  void end() { look(); }

 private:
  struct Open {
    uint32_t slot = none;
    uint32_t event = 0;
    uint32_t to = 0;
    int32_t tag = 0;
    Block block;
  };

  void close(uint32_t slot) {
    if (std::ranges::none_of(open_, [slot](const Open& one) { return one.slot == slot; })) return;
    look();
    std::erase_if(open_, [slot](const Open& one) { return one.slot == slot; });
  }

  void begin(uint32_t event, const Signature& signature, uint32_t slot) {
    if (signature.comm == none) return;
    const CommEntry& comm = trace_.comms[signature.comm];
    const auto& ranks = comm.remote_ranks.empty() ? comm.world_ranks : comm.remote_ranks;
    const auto add = [&](int32_t peer, int32_t tag, const Block& block) {
      if (peer < 0 || static_cast<size_t>(peer) >= ranks.size() || block.count <= 0) return;
      open_.push_back({slot, event, ranks[static_cast<size_t>(peer)], tag, block});
      is_new_ = true;
    };
    const Call call = signature.call;
    const bool sends =
        (call >= Call::Send && call <= Call::Bsend) || call == Call::Sendrecv || call == Call::Sendrecv_replace;
    if (sends && !signature.sends.empty()) add(signature.peer, signature.tag, signature.sends[0]);
    const bool spreads =
        call == Call::Neighbor_alltoall || call == Call::Neighbor_alltoallv || call == Call::Neighbor_alltoallw;
    if (spreads && signature.sends.size() == comm.destinations.size()) {
      for (size_t i = 0; i < signature.sends.size(); ++i) add(comm.destinations[i], 0, signature.sends[i]);
    }
    if ((call == Call::Alltoallv || call == Call::Alltoallw) && signature.sends.size() == ranks.size()) {
      for (size_t i = 0; i < signature.sends.size(); ++i) add(static_cast<int32_t>(i), 0, signature.sends[i]);
    }
  }

  void look() {
    if (!std::exchange(is_new_, false)) return;
    std::map<uint32_t, std::vector<const Open*>> by_peer;
    for (const Open& one : open_) by_peer[one.to].push_back(&one);
    for (const auto& [to, sends] : by_peer) {
      std::vector<Block> blocks;
      for (const Open* const one : sends) blocks.push_back(one->block);
      const int64_t twice = common(blocks);
      if (twice == 0) continue;
      findings_.add({.trouble = Trouble::sent_twice,
                     .from = trace_.rank,
                     .to = to,
                     .tag = sends.back()->tag,
                     .bytes = twice,
                     .first_ns = trace_.events[sends.front()->event].begin_ns});
    }
  }

  // Returns the number of bytes that blocks have in common, or 0 if it is not known. Results are kept, because loops
  // send the same blocks again and again.
  int64_t common(const std::vector<Block>& blocks) {
    std::vector<uint64_t> key;
    for (const Block& block : blocks) {
      key.insert(key.end(), {block.address, static_cast<uint64_t>(block.count), block.type});
    }
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    constexpr size_t known_most = 4'096;
    if (known_.size() >= known_most) known_.clear();
    return known_.emplace(std::move(key), common_bytes(trace_, blocks).value_or(0)).first->second;
  }

  const RankTrace& trace_;
  Findings& findings_;
  std::vector<Open> open_;
  bool is_new_ = false;
  std::map<std::vector<uint64_t>, int64_t> known_;
};

}  // namespace

std::string_view name_of(Trouble trouble) {
  static constexpr std::array<std::string_view, 6> names{"truncated", "types differ", "not received",
                                                         "not sent",  "sent twice",   "room left"};
  const auto number = static_cast<size_t>(trouble);
  SPL_ASSERT(number < names.size(), "there is no trouble ", number);
  return names[number];
}

std::string_view name_of(Doubt doubt) {
  static constexpr std::array<std::string_view, 3> names{"", "short trace", "untold"};
  const auto number = static_cast<size_t>(doubt);
  SPL_ASSERT(number < names.size(), "there is no doubt ", number);
  return names[number];
}

std::vector<Finding> check(std::span<const RankTrace* const> traces, const Matching& matching) {
  Findings findings;
  const auto began = [&](const Transfer& one) { return traces[one.trace]->events[one.event].begin_ns; };
  const auto type_of = [&](const Transfer& one) -> const TypeEntry* {
    return one.block.type == none ? nullptr : &traces[one.trace]->types[one.block.type];
  };
  for (const auto& [send, receive] : matching.pairs) {
    Finding one{.from = traces[send.trace]->rank,
                .to = traces[receive.trace]->rank,
                .tag = send.tag,
                .sent_bytes = send.bytes,
                .room_bytes = receive.bytes,
                .bytes = std::abs(send.bytes - receive.bytes),
                .first_ns = began(send),
                .doubt = send.is_doubtful || receive.is_doubtful ? Doubt::untold : Doubt::no};
    const TypeEntry* const out = type_of(send);
    const TypeEntry* const in = type_of(receive);
    if (send.bytes != receive.bytes) {
      one.trouble = send.bytes > receive.bytes ? Trouble::truncated : Trouble::room_left;
      findings.add(one);
    } else if (out != nullptr && in != nullptr && !is_loose(*out) && !is_loose(*in)) {
      const uint64_t sent = hash_of(*out, send.block.count);
      const uint64_t received = hash_of(*in, receive.block.count);
      if (sent == 0 || received == 0 || sent == received) continue;
      one.trouble = Trouble::types_differ;
      one.bytes = send.bytes;
      findings.add(one);
    }
  }
  // If a rank's trace is missing or has not ended, nobody knows what else the rank did.
  std::map<uint32_t, bool> has_ended;
  for (const RankTrace* const trace : traces) has_ended[trace->rank] = trace->ended && trace->warning.empty();
  const auto add_left = [&](const Transfer& one, Trouble trouble, uint32_t from, uint32_t to) {
    const auto peer = has_ended.find(one.peer);
    if (one.peer != none && peer == has_ended.end()) return;
    const bool is_whole = has_ended[traces[one.trace]->rank] && (one.peer == none || peer->second);
    const bool sends = trouble == Trouble::not_received;
    findings.add({.trouble = trouble,
                  .from = from,
                  .to = to,
                  .tag = one.tag,
                  .sent_bytes = sends ? one.bytes : 0,
                  .room_bytes = sends ? 0 : one.bytes,
                  .bytes = one.bytes,
                  .first_ns = began(one),
                  .doubt = !is_whole         ? Doubt::short_trace
                           : one.is_doubtful ? Doubt::untold
                                             : Doubt::no});
  };
  for (const Transfer& one : matching.sends) {
    add_left(one, Trouble::not_received, traces[one.trace]->rank, one.peer);
  }
  for (const Transfer& one : matching.receives) add_left(one, Trouble::not_sent, one.peer, traces[one.trace]->rank);
  for (const RankTrace* const trace : traces) {
    Exchanges exchanges(*trace, findings);
    walk(*trace, exchanges);
    exchanges.end();
  }
  return findings.take();
}

}  // namespace spinloom::trace
