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
  void add(Finding finding) {
    const auto key = key_of(finding);
    const auto [entry, is_new] = indices_.try_emplace(key, list_.size());
    if (is_new) list_.push_back(finding);
    Finding& merged = list_[entry->second];
    ++merged.times;
    merged.doubt = std::min(merged.doubt, finding.doubt);
    merged.first_ns = std::min(merged.first_ns, finding.first_ns);
  }
  [[nodiscard]] std::vector<Finding> take() {
    std::ranges::sort(list_, {}, key_of);
    return std::move(list_);
  }

 private:
  using Key = std::tuple<Trouble, uint32_t, uint32_t, int32_t, int64_t, int64_t, int64_t>;
  // Findings of one key are one.
  static Key key_of(const Finding& finding) {
    return {finding.trouble,    finding.from,       finding.to,   finding.tag,
            finding.sent_bytes, finding.room_bytes, finding.bytes};
  }

  std::vector<Finding> list_;
  std::map<Key, size_t> indices_;  // indices into list_
};

// True for types that match everything, or whose sequence says nothing.
bool matches_any_type(const TypeEntry& type) { return type.name == "MPI_PACKED" || type.name == "MPI_BYTE"; }

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
    report_repeated();
    std::erase_if(active_, [](const ActiveSend& one) { return one.slot == none; });
  }
  void end() { report_repeated(); }

 private:
  struct ActiveSend {
    uint32_t slot = none;
    uint32_t event = 0;
    uint32_t to = 0;
    int32_t tag = 0;
    Block block;
  };

  void close(uint32_t slot) {
    if (std::ranges::none_of(active_, [slot](const ActiveSend& one) { return one.slot == slot; })) return;
    report_repeated();
    std::erase_if(active_, [slot](const ActiveSend& one) { return one.slot == slot; });
  }

  void begin(uint32_t event, const Signature& signature, uint32_t slot) {
    if (signature.comm == none) return;
    const CommEntry& comm = trace_.comms[signature.comm];
    const auto& ranks = comm.remote_ranks.empty() ? comm.world_ranks : comm.remote_ranks;
    const auto add = [&](int32_t peer, int32_t tag, const Block& block) {
      if (peer < 0 || static_cast<size_t>(peer) >= ranks.size() || block.count <= 0) return;
      active_.push_back({slot, event, ranks[static_cast<size_t>(peer)], tag, block});
      is_new_ = true;
    };
    const Call call = signature.call;
    const bool sends =
        (call >= Call::Send && call <= Call::Bsend) || call == Call::Sendrecv || call == Call::Sendrecv_replace;
    if (sends && !signature.sends.empty()) add(signature.peer, signature.tag, signature.sends[0]);
    const bool is_neighbour_call =
        call == Call::Neighbor_alltoall || call == Call::Neighbor_alltoallv || call == Call::Neighbor_alltoallw;
    if (is_neighbour_call && signature.sends.size() == comm.destinations.size()) {
      for (size_t i = 0; i < signature.sends.size(); ++i) add(comm.destinations[i], 0, signature.sends[i]);
    }
    if ((call == Call::Alltoallv || call == Call::Alltoallw) && signature.sends.size() == ranks.size()) {
      for (size_t i = 0; i < signature.sends.size(); ++i) add(static_cast<int32_t>(i), 0, signature.sends[i]);
    }
  }

  void report_repeated() {
    if (!std::exchange(is_new_, false)) return;
    std::map<uint32_t, std::vector<const ActiveSend*>> by_peer;
    for (const ActiveSend& one : active_) by_peer[one.to].push_back(&one);
    for (const auto& [to, sends] : by_peer) {
      std::vector<Block> blocks;
      for (const ActiveSend* const one : sends) blocks.push_back(one->block);
      const int64_t repeated_bytes = common(blocks);
      if (repeated_bytes == 0) continue;
      findings_.add({.trouble = Trouble::sent_twice,
                     .from = trace_.rank,
                     .to = to,
                     .tag = sends.back()->tag,
                     .bytes = repeated_bytes,
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
    const auto cached = common_bytes_cache_.find(key);
    if (cached != common_bytes_cache_.end()) return cached->second;
    constexpr size_t cache_entries_max = 4'096;
    if (common_bytes_cache_.size() >= cache_entries_max) common_bytes_cache_.clear();
    return common_bytes_cache_.emplace(std::move(key), common_bytes(trace_, blocks).value_or(0)).first->second;
  }

  const RankTrace& trace_;
  Findings& findings_;
  std::vector<ActiveSend> active_;
  bool is_new_ = false;
  std::map<std::vector<uint64_t>, int64_t> common_bytes_cache_;
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
  const auto began = [&](const Transfer& transfer) { return traces[transfer.trace]->events[transfer.event].begin_ns; };
  const auto type_of = [&](const Transfer& transfer) -> const TypeEntry* {
    return transfer.block.type == none ? nullptr : &traces[transfer.trace]->types[transfer.block.type];
  };
  for (const auto& [send, receive] : matching.pairs) {
    Finding finding{.from = traces[send.trace]->rank,
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
      finding.trouble = send.bytes > receive.bytes ? Trouble::truncated : Trouble::room_left;
      findings.add(finding);
    } else if (out != nullptr && in != nullptr && !matches_any_type(*out) && !matches_any_type(*in)) {
      const uint64_t sent = hash_of(*out, send.block.count);
      const uint64_t received = hash_of(*in, receive.block.count);
      if (sent == 0 || received == 0 || sent == received) continue;
      finding.trouble = Trouble::types_differ;
      finding.bytes = send.bytes;
      findings.add(finding);
    }
  }
  // If a rank's trace is missing or has not ended, nobody knows what else the rank did.
  std::map<uint32_t, bool> has_ended;
  for (const RankTrace* const trace : traces) has_ended[trace->rank] = trace->has_ended && trace->warning.empty();
  const auto add_unmatched = [&](const Transfer& transfer, Trouble trouble, uint32_t from, uint32_t to) {
    const auto peer = has_ended.find(transfer.peer);
    if (transfer.peer != none && peer == has_ended.end()) return;
    const bool is_whole = has_ended[traces[transfer.trace]->rank] && (transfer.peer == none || peer->second);
    const bool sends = trouble == Trouble::not_received;
    findings.add({.trouble = trouble,
                  .from = from,
                  .to = to,
                  .tag = transfer.tag,
                  .sent_bytes = sends ? transfer.bytes : 0,
                  .room_bytes = sends ? 0 : transfer.bytes,
                  .bytes = transfer.bytes,
                  .first_ns = began(transfer),
                  .doubt = !is_whole              ? Doubt::short_trace
                           : transfer.is_doubtful ? Doubt::untold
                                                  : Doubt::no});
  };
  for (const Transfer& transfer : matching.sends) {
    add_unmatched(transfer, Trouble::not_received, traces[transfer.trace]->rank, transfer.peer);
  }
  for (const Transfer& transfer : matching.receives)
    add_unmatched(transfer, Trouble::not_sent, transfer.peer, traces[transfer.trace]->rank);
  for (const RankTrace* const trace : traces) {
    Exchanges exchanges(*trace, findings);
    walk(*trace, exchanges);
    exchanges.end();
  }
  return findings.take();
}

}  // namespace spinloom::trace
