#include "predict/trace/views.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "memory/layout/blob.hpp"
#include "memory/layout/block_statistics.hpp"
#include "predict/trace/walk.hpp"

namespace spinloom::trace {
namespace {

// Visits each transfer when it begins: at persistent requests' starts, not where they are made.
template <class Begin>
class AtBeginning {
 public:
  explicit AtBeginning(Begin begin) : begin_(std::move(begin)) {}
  void started(uint32_t, const Signature& made, uint32_t) { begin_(made); }
  void ended(uint32_t, const OpenSlot&, uint32_t) {}
  void event(uint32_t, const Signature& signature) {
    if (signature.error == 0 && signature.form != CallForm::persistent) begin_(signature);
  }

 private:
  Begin begin_;
};
template <class Begin>
void visit_beginnings(const RankTrace& trace, Begin begin) {
  walk(trace, AtBeginning<Begin>(std::move(begin)));
}

int64_t bytes_of(const RankTrace& trace, const Block& block) {
  int64_t bytes = 0;
  if (block.type == none || __builtin_mul_overflow(block.count, trace.types[block.type].size_bytes, &bytes)) return 0;
  return bytes;
}

class TrafficMatrix {
 public:
  explicit TrafficMatrix(std::map<std::pair<uint32_t, uint32_t>, PairTraffic>& traffic) : traffic_(traffic) {}
  void add(const RankTrace& trace, const Signature& signature) {
    if (signature.comm == none || signature.sends.empty()) return;
    const CommEntry& comm = trace.comms[signature.comm];
    const auto& ranks = comm.remote_ranks.empty() ? comm.world_ranks : comm.remote_ranks;
    const auto count_message = [&](int32_t peer, const Block& block) {
      if (peer < 0 || static_cast<size_t>(peer) >= ranks.size() || ranks[static_cast<size_t>(peer)] == none) return;
      const uint32_t to = ranks[static_cast<size_t>(peer)];
      PairTraffic& pair_traffic = traffic_.try_emplace({trace.rank, to}, PairTraffic{trace.rank, to}).first->second;
      ++pair_traffic.messages;
      pair_traffic.bytes += bytes_of(trace, block);
    };
    switch (signature.call) {
      case Call::Send:
      case Call::Ssend:
      case Call::Rsend:
      case Call::Bsend:
      case Call::Sendrecv:
      case Call::Sendrecv_replace: count_message(signature.peer, signature.sends[0]); break;
      case Call::Neighbor_allgather:
      case Call::Neighbor_allgatherv:
      case Call::Neighbor_alltoall:
      case Call::Neighbor_alltoallv:
      case Call::Neighbor_alltoallw:
        for (size_t i = 0; i < std::min(signature.sends.size(), comm.destinations.size()); ++i) {
          count_message(comm.destinations[i], signature.sends[i]);
        }
        break;
      case Call::Alltoall:
        for (size_t i = 0; i < ranks.size(); ++i) count_message(static_cast<int32_t>(i), signature.sends[0]);
        break;
      case Call::Alltoallv:
      case Call::Alltoallw:
        for (size_t i = 0; i < signature.sends.size(); ++i) {
          if (signature.sends[i].count > 0) count_message(static_cast<int32_t>(i), signature.sends[i]);
        }
        break;
      default: break;
    }
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, PairTraffic>& traffic_;
};

void describe(TypeUse& use) {
  if (use.type.blob.empty()) {
    use.is_contiguous = use.type.size_bytes == use.type.extent_bytes;
    use.blocks = use.is_contiguous ? 1 : 0;
    return;
  }
  const auto blob = layout::Blob::validate(use.type.blob);
  const auto statistics = blob ? layout::block_statistics(*blob, 1) : blob.error();
  if (!statistics) return;
  use.blocks = statistics->blocks;
  use.is_contiguous = use.blocks <= 1 && blob->extent() == blob->size();
}

}  // namespace

bool tells_buffers(const RankTrace& trace) {
  const auto is_told = [](const Block& block) { return block.address != nowhere; };
  return std::ranges::all_of(trace.signatures, [&](const Signature& one) {
    return std::ranges::all_of(one.sends, is_told) && std::ranges::all_of(one.receives, is_told);
  });
}

std::vector<PairTraffic> matrix(std::span<const RankTrace* const> traces) {
  std::map<std::pair<uint32_t, uint32_t>, PairTraffic> by_pair;
  for (const RankTrace* const trace : traces) {
    visit_beginnings(*trace,
                     [&, traffic = TrafficMatrix(by_pair)](const Signature& one) mutable { traffic.add(*trace, one); });
  }
  std::vector<PairTraffic> traffic;
  for (const auto& [pair, pair_traffic] : by_pair) traffic.push_back(pair_traffic);
  return traffic;
}

std::vector<TypeUse> types(std::span<const RankTrace* const> traces) {
  using Key = std::tuple<std::string, int64_t, int64_t, std::vector<std::byte>, uint64_t>;
  std::map<Key, size_t> use_numbers;
  std::vector<TypeUse> uses;
  for (const RankTrace* const trace : traces) {
    std::vector<size_t> use_of_type;
    for (const TypeEntry& type : trace->types) {
      const auto [place, is_new] = use_numbers.try_emplace(
          {type.name, type.size_bytes, type.extent_bytes, type.blob, type.signature_hash}, uses.size());
      if (is_new) {
        uses.emplace_back().type = type;
        describe(uses.back());
      }
      use_of_type.push_back(place->second);
    }
    const auto count = [&](const Block& block, uint64_t TypeUse::* which) {
      if (block.type == none) return;
      TypeUse& use = uses[use_of_type[block.type]];
      const bool is_first = use.sends + use.receives == 0;
      ++(use.*which);
      use.elements += block.count;
      use.bytes += bytes_of(*trace, block);
      use.count_min = is_first ? block.count : std::min(use.count_min, block.count);
      use.count_max = std::max(use.count_max, block.count);
    };
    visit_beginnings(*trace, [&](const Signature& one) {
      for (const Block& block : one.sends) count(block, &TypeUse::sends);
      for (const Block& block : one.receives) count(block, &TypeUse::receives);
    });
  }
  std::erase_if(uses, [](const TypeUse& use) { return use.sends + use.receives == 0; });
  std::ranges::sort(uses, {}, [](const TypeUse& use) {
    return std::tuple(-use.bytes, use.type.name, use.type.text, use.type.size_bytes, use.type.extent_bytes,
                      use.type.signature_hash);
  });
  return uses;
}

}  // namespace spinloom::trace
