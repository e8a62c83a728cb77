#include "predict/trace/summary.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "predict/trace/walk.hpp"

namespace spinloom::trace {
namespace {

int64_t bytes_of(const RankTrace& trace, const std::vector<Block>& blocks) {
  int64_t sum = 0;
  for (const Block& block : blocks) {
    int64_t bytes = 0;
    if (block.type == none || __builtin_mul_overflow(block.count, trace.types[block.type].size_bytes, &bytes)) continue;
    if (__builtin_add_overflow(sum, bytes, &sum)) return INT64_MAX;
  }
  return sum;
}

int64_t saturating_product(int64_t bytes, size_t peers) {
  int64_t all = 0;
  return __builtin_mul_overflow(bytes, static_cast<int64_t>(peers), &all) ? INT64_MAX : all;
}

// True if one block stands for one block of each peer.
bool sends_to_each(Call call) { return call == Call::Alltoall || call == Call::Scatter; }
bool receives_from_each(Call call) { return call == Call::Alltoall || call == Call::Allgather || call == Call::Gather; }

class CallCounter {
 public:
  explicit CallCounter(const RankTrace& trace) : trace_(trace) {}

  void started(uint32_t, const Signature& made, uint32_t) {
    const Traffic traffic_of_start = traffic_of(trace_, made);
    started_traffic_.sent_bytes += traffic_of_start.sent_bytes;
    started_traffic_.received_bytes += traffic_of_start.received_bytes;
  }
  void ended(uint32_t, const OpenSlot&, uint32_t) {}
  void event(uint32_t number, const Signature& signature) {
    const Event& event = trace_.events[number];
    CallSum& sum = sum_of(signature);
    (event.polls != 0 ? sum.polls : sum.count) += event.polls != 0 ? event.polls : 1;
    sum.errors += signature.error != 0 ? 1 : 0;
    sum.time_ns += event.end_ns - event.begin_ns;
    Traffic traffic = std::exchange(started_traffic_, {});
    const bool counts = signature.form != CallForm::persistent && signature.error == 0;
    if (counts && !(signature.sends.empty() && signature.receives.empty())) traffic = traffic_of(trace_, signature);
    sum.traffic.sent_bytes += traffic.sent_bytes;
    sum.traffic.received_bytes += traffic.received_bytes;
  }
  [[nodiscard]] std::vector<CallSum> take() { return std::move(sums_); }

 private:
  CallSum& sum_of(const Signature& signature) {
    const auto [index, is_new] = places_.try_emplace({signature.call, signature.form}, sums_.size());
    if (is_new) sums_.push_back({.call = signature.call, .form = signature.form, .traffic = {}});
    return sums_[index->second];
  }

  const RankTrace& trace_;
  Traffic started_traffic_;
  std::vector<CallSum> sums_;
  std::map<std::pair<Call, CallForm>, size_t> places_;
};

}  // namespace

std::string full_name(Call call, CallForm form) {
  std::string name(name_of(call));
  if (form == CallForm::blocking) return name;
  if (form == CallForm::persistent) return name + "_init";
  if (call == Call::Comm_make) return "Comm_idup";
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  const bool is_access = call >= Call::Put && call <= Call::Compare_and_swap;
  return (is_access ? "R" : "I") + name;
}

Traffic traffic_of(const RankTrace& trace, const Signature& signature) {
  Traffic traffic{bytes_of(trace, signature.sends), bytes_of(trace, signature.receives)};
  if (signature.comm == none) return traffic;
  const CommEntry& comm = trace.comms[signature.comm];
  const size_t peers = comm.remote_ranks.empty() ? comm.world_ranks.size() : comm.remote_ranks.size();
  if (sends_to_each(signature.call)) traffic.sent_bytes = saturating_product(traffic.sent_bytes, peers);
  if (receives_from_each(signature.call)) traffic.received_bytes = saturating_product(traffic.received_bytes, peers);
  return traffic;
}

std::vector<CallSum> calls_of(const RankTrace& trace) {
  CallCounter counter(trace);
  walk(trace, counter);
  return counter.take();
}

}  // namespace spinloom::trace
