#include "portals/collective/play.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace spinloom::collective {
namespace {

struct Event {
  uint64_t at;
  bool arrives;  // the first byte is at the receiver's NIC; else an operation may begin
  uint32_t rank;
  uint32_t operation;
  auto operator<=>(const Event&) const = default;
};

struct Rank {
  std::vector<std::vector<uint32_t>> next;  // by operation: the operations that wait for it
  std::vector<uint32_t> waits;  // by operation: the number of ends for which it still waits
  std::vector<uint64_t> ready;  // by operation: the latest of these ends so far
  std::vector<uint32_t> partner;  // by operation: for a send, the number of the receive
  uint64_t sends_at = 0;     // the time from which its NIC is free to send
  uint64_t receives_at = 0;  // ... to receive
  uint64_t computes_at = 0;  // ... to combine and copy
};

class Play {
 public:
  Play(std::span<const Graph> ranks, const Model& model, std::vector<Sent>* sent)
      : graphs_(ranks), model_(model), sent_(sent), ranks_(ranks.size()) {}

  Result<uint64_t> run() {
    SPL_TRY(prepare());
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.arrives) {
        arrive(event);
      } else {
        begin(event);
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& waits = ranks_[rank].waits;
      const auto stuck = std::ranges::find_if(waits, [](uint32_t left) { return left != 0; });
      if (stuck == waits.end()) continue;
      return fail(Code::stalled, "operation ", stuck - waits.begin(), " of rank ", rank, " never begins");
    }
    return last_ + model_.o_ps;
  }

 private:
  Status prepare() {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> receives;  // by source, target and name
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& operations = graphs_[rank].operations;
      Rank& made = ranks_[rank];
      made.next.resize(operations.size());
      made.ready.assign(operations.size(), model_.o_ps);
      made.partner.resize(operations.size());
      for (uint32_t number = 0; number < operations.size(); ++number) {
        const Vertex& one = operations[number];
        for (const uint32_t before : one.all) made.next[before].push_back(number);
        // A receive ends when its message has come.
        made.waits.push_back(static_cast<uint32_t>(one.all.size()) + (one.what == Does::receive ? 1 : 0));
        if (one.what == Does::receive) receives[{one.peer, rank, one.name.message}] = number;
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& operations = graphs_[rank].operations;
      for (uint32_t number = 0; number < operations.size(); ++number) {
        const Vertex& one = operations[number];
        if (one.what == Does::send) {
          const auto found = receives.find({rank, one.peer, one.name.message});
          if (found == receives.end()) {
            return fail(Code::stalled, "rank ", one.peer, " receives no message ", one.name.message, " of rank ", rank);
          }
          ranks_[rank].partner[number] = found->second;
        }
        if (ranks_[rank].waits[number] == 0) events_.push({model_.o_ps, false, rank, number});
      }
    }
    return {};
  }

  void begin(const Event& event) {
    const Vertex& one = graphs_[event.rank].operations[event.operation];
    Rank& rank = ranks_[event.rank];
    if (one.what == Does::send) {
      const uint64_t bytes = bytes_of(one.from);
      const uint64_t leaves = std::max(event.at, rank.sends_at);
      rank.sends_at = leaves + static_cast<uint64_t>(model_.gap(bytes));
      events_.push({leaves + model_.L_ps, true, one.peer, rank.partner[event.operation]});
      end(event, leaves + static_cast<uint64_t>(model_.G.ps_up(bytes)));
      return;
    }
    if (one.what == Does::receive) return;
    const uint64_t begins = std::max(event.at, rank.computes_at);
    const uint64_t bytes = bytes_of(one.to);
    const bool copies = one.what == Does::copy;
    rank.computes_at = begins + static_cast<uint64_t>((copies ? model_.G : model_.A).ps_up(bytes));
    end(event, rank.computes_at + (copies ? model_.L_ps + model_.match(bytes) : model_.a_ps));
  }

  void arrive(const Event& event) {
    Rank& rank = ranks_[event.rank];
    const uint64_t bytes = bytes_of(graphs_[event.rank].operations[event.operation].to);
    const uint64_t taken = std::max(event.at, rank.receives_at);
    rank.receives_at = taken + static_cast<uint64_t>(model_.take(bytes));
    --rank.waits[event.operation];
    if (sent_ != nullptr) {
      const uint32_t from = graphs_[event.rank].operations[event.operation].peer;
      sent_->push_back(
          {from, event.rank, bytes, event.at - model_.L_ps, taken + static_cast<uint64_t>(model_.G.ps_up(bytes))});
    }
    end(event, taken + static_cast<uint64_t>(model_.G.ps_up(bytes)) + model_.match(bytes));
  }

  void end(const Event& event, uint64_t at) {
    last_ = std::max(last_, at);
    Rank& rank = ranks_[event.rank];
    for (const uint32_t next : rank.next[event.operation]) {
      rank.ready[next] = std::max(rank.ready[next], at);
      if (--rank.waits[next] == 0) events_.push({rank.ready[next], false, event.rank, next});
    }
  }

  std::span<const Graph> graphs_;
  const Model& model_;
  std::vector<Sent>* sent_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t last_ = 0;
};

}  // namespace

Result<uint64_t> play(std::span<const Graph> ranks, const Model& model, std::vector<Sent>* sent) {
  return Play(ranks, model, sent).run();
}

}  // namespace spinloom::collective
