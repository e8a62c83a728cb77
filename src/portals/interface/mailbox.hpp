// Mailbox - what a driver has brought to its host: events by queue, values of counters, answers by token.
//
// Contract: the driver adds; the port's take_event(), counter() and take_answer() read. changes() grows with every
//   addition, so that a waiting caller knows whether to look again; note_change() counts other changes.
// Invariants: (1) events of one queue come out in the order in which they went in; (2) an answer is taken once; (3) a
//   queue or a counter is a place found by the index of its id; the generation is ignored. A new object with an old
//   index finds what the old one left there, until the NIC has overwritten it; (4) every look-up is by index, except
//   that of an answer.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/ids.hpp"
#include "nic/spin/fifo.hpp"

namespace spinloom::portals {

class Mailbox {
 public:
  void add(nic::QueueId queue, const nic::Event& event) {
    grown_to(queues_, queue.value).push(event);
    ++changes_;
  }
  void set(nic::CounterId counter, nic::CounterValue value) {
    grown_to(counters_, counter.value) = value;
    ++changes_;
  }
  void answer(uint64_t token, Result<uint64_t> result) {
    answers_.insert_or_assign(token, std::move(result));
    ++changes_;
  }
  void note_change() { ++changes_; }

  [[nodiscard]] std::optional<nic::Event> take_event(nic::QueueId queue) {
    if (queue.value >= queues_.size() || queues_[queue.value].empty()) return std::nullopt;
    return queues_[queue.value].pop();
  }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const {
    return counter.value < counters_.size() ? counters_[counter.value] : nic::CounterValue{};
  }
  [[nodiscard]] std::optional<Result<uint64_t>> take_answer(uint64_t token) {
    const auto found = answers_.find(token);
    if (found == answers_.end()) return std::nullopt;
    std::optional<Result<uint64_t>> answer = std::move(found->second);
    answers_.erase(found);
    return answer;
  }
  [[nodiscard]] uint64_t changes() const { return changes_; }

 private:
  template <class T>
  static T& grown_to(std::vector<T>& list, size_t index) {
    if (index >= list.size()) list.resize(index + 1);
    return list[index];
  }

  std::vector<nic::Fifo<nic::Event>> queues_;
  std::vector<nic::CounterValue> counters_;
  std::unordered_map<uint64_t, Result<uint64_t>> answers_;
  uint64_t changes_ = 0;
};

}  // namespace spinloom::portals
