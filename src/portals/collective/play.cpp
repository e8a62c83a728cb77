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
  uint64_t at_ps;
  bool is_arrival;  // the first byte is at the receiver's NIC; else an operation may begin
  uint32_t rank;
  uint32_t operation;
  auto operator<=>(const Event&) const = default;
};

struct Rank {
  std::vector<std::vector<uint32_t>> dependents;  // the operations that wait for each operation
  std::vector<uint32_t> unmet;  // the number of ends for which each operation still waits
  std::vector<uint64_t> ready_ps;  // the latest end so far of those for which each operation waits
  std::vector<uint32_t> partner;  // the number of each send's receive
  uint64_t send_free_ps = 0;     // the time from which its NIC is free to send
  uint64_t receive_free_ps = 0;  // the time from which it is free to receive
  uint64_t compute_free_ps = 0;  // the time from which it is free to combine and copy
};

class Play {
 public:
  Play(std::span<const Graph> ranks, const Model& model, std::vector<PlayedMessage>* messages)
      : graphs_(ranks), model_(model), messages_(messages), ranks_(ranks.size()) {}

  Result<uint64_t> run() {
    SPL_TRY(prepare());
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.is_arrival) {
        arrive(event);
      } else {
        begin(event);
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& unmet = ranks_[rank].unmet;
      const auto stuck = std::ranges::find_if(unmet, [](uint32_t left) { return left != 0; });
      if (stuck == unmet.end()) continue;
      return fail(Code::stalled, "operation ", stuck - unmet.begin(), " of rank ", rank, " never begins");
    }
    return last_end_ps_ + model_.o_ps;
  }

 private:
  Status prepare() {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> receives;  // the key is source, target and name
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& operations = graphs_[rank].operations;
      Rank& played = ranks_[rank];
      played.dependents.resize(operations.size());
      played.ready_ps.assign(operations.size(), model_.o_ps);
      played.partner.resize(operations.size());
      for (uint32_t number = 0; number < operations.size(); ++number) {
        const Vertex& operation = operations[number];
        for (const uint32_t before : operation.all) played.dependents[before].push_back(number);
        // A receive ends when its message has come.
        played.unmet.push_back(static_cast<uint32_t>(operation.all.size()) +
                               (operation.kind == VertexKind::receive ? 1 : 0));
        if (operation.kind == VertexKind::receive) receives[{operation.peer, rank, operation.name.message}] = number;
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& operations = graphs_[rank].operations;
      for (uint32_t number = 0; number < operations.size(); ++number) {
        const Vertex& operation = operations[number];
        if (operation.kind == VertexKind::send) {
          const auto found = receives.find({rank, operation.peer, operation.name.message});
          if (found == receives.end()) {
            return fail(Code::stalled, "rank ", operation.peer, " receives no message ", operation.name.message,
                        " of rank ", rank);
          }
          ranks_[rank].partner[number] = found->second;
        }
        if (ranks_[rank].unmet[number] == 0) events_.push({model_.o_ps, false, rank, number});
      }
    }
    return {};
  }

  void begin(const Event& event) {
    const Vertex& operation = graphs_[event.rank].operations[event.operation];
    Rank& rank = ranks_[event.rank];
    if (operation.kind == VertexKind::send) {
      const uint64_t bytes = bytes_of(operation.from);
      const uint64_t leaves = std::max(event.at_ps, rank.send_free_ps);
      rank.send_free_ps = leaves + static_cast<uint64_t>(model_.gap(bytes));
      events_.push({leaves + model_.L_ps, true, operation.peer, rank.partner[event.operation]});
      end(event, leaves + static_cast<uint64_t>(model_.G.ps_up(bytes)));
      return;
    }
    if (operation.kind == VertexKind::receive) return;
    const uint64_t begins = std::max(event.at_ps, rank.compute_free_ps);
    const uint64_t bytes = bytes_of(operation.to);
    const bool copies = operation.kind == VertexKind::copy;
    rank.compute_free_ps = begins + static_cast<uint64_t>((copies ? model_.G : model_.A).ps_up(bytes));
    end(event, rank.compute_free_ps + (copies ? model_.L_ps + model_.match(bytes) : model_.a_ps));
  }

  void arrive(const Event& event) {
    Rank& rank = ranks_[event.rank];
    const uint64_t bytes = bytes_of(graphs_[event.rank].operations[event.operation].to);
    const uint64_t taken = std::max(event.at_ps, rank.receive_free_ps);
    rank.receive_free_ps = taken + static_cast<uint64_t>(model_.take(bytes));
    --rank.unmet[event.operation];
    if (messages_ != nullptr) {
      const uint32_t from = graphs_[event.rank].operations[event.operation].peer;
      messages_->push_back(
          {from, event.rank, bytes, event.at_ps - model_.L_ps, taken + static_cast<uint64_t>(model_.G.ps_up(bytes))});
    }
    end(event, taken + static_cast<uint64_t>(model_.G.ps_up(bytes)) + model_.match(bytes));
  }

  void end(const Event& event, uint64_t at_ps) {
    last_end_ps_ = std::max(last_end_ps_, at_ps);
    Rank& rank = ranks_[event.rank];
    for (const uint32_t next : rank.dependents[event.operation]) {
      rank.ready_ps[next] = std::max(rank.ready_ps[next], at_ps);
      if (--rank.unmet[next] == 0) events_.push({rank.ready_ps[next], false, event.rank, next});
    }
  }

  std::span<const Graph> graphs_;
  const Model& model_;
  std::vector<PlayedMessage>* messages_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t last_end_ps_ = 0;
};

}  // namespace

Result<uint64_t> play(std::span<const Graph> ranks, const Model& model, std::vector<PlayedMessage>* messages) {
  return Play(ranks, model, messages).run();
}

}  // namespace spinloom::collective
