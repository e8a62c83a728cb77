// Naive - the rules of run_loggopsim() as plainly as they can be written, for tests: one queue, to which an element
// goes back whenever it finds its resources busy, and lists that are walked.
//
// Threads: pure. Time: modelled.
#pragma once

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "predict/goal/loggopsim/loggopsim.hpp"

namespace spinloom::goal::test {

class Naive {
 public:
  Naive(const schedule::Schedule& schedule, const LogGopSimParameters& parameters)
      : schedule_(schedule), is_(parameters), hosts_(schedule.ranks()) {
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      hosts_[rank].waits = schedule.program(rank).dependency_counts();
      left += hosts_[rank].waits.size();
    }
  }

  void run() {
    std::map<uint32_t, std::vector<uint32_t>> roots;
    for (uint32_t rank = 0; rank < hosts_.size(); ++rank) {
      for (uint32_t one = 0; one < hosts_[rank].waits.size(); ++one) {
        if (hosts_[rank].waits[one] == 0) roots[rank].push_back(one);
      }
    }
    free(roots);
    while (!queue_.empty()) {
      Element element = *queue_.begin();
      queue_.erase(queue_.begin());
      const uint64_t ready = ready_at(element);
      if (ready > element.time) {
        element.time = ready;
        queue_.insert(element);
        continue;
      }
      ++outcome.events;
      freed_.clear();
      perform(element);
      free(freed_);
    }
    for (const Host& host : hosts_) {
      uint64_t last = 0;
      for (const auto& [cpu, time] : host.cpu) last = std::max(last, time);
      outcome.host_times.push_back(last);
      outcome.makespan = std::max(outcome.makespan, last);
      unmatched += host.posted.size() + host.arrived.size();
    }
  }

  LogGopSimOutcome outcome;
  uint64_t left = 0;  // operations that have not begun
  uint64_t unmatched = 0;  // receives and messages

 private:
  struct Element {
    uint64_t time = 0;
    uint64_t number = 0;
    uint32_t rank = 0;
    uint32_t operation = 0;
    bool is_message = false;
    uint32_t source = 0;  // the rank whose operation a message is
    bool operator<(const Element& other) const { return std::tie(time, number) < std::tie(other.time, other.number); }
  };
  struct Host {
    std::vector<uint32_t> waits;
    std::map<uint32_t, uint64_t> cpu, sending, receiving;
    std::list<Element> posted, arrived;
  };

  [[nodiscard]] const schedule::Operation& operation_of(const Element& element) const {
    return schedule_.program(element.is_message ? element.source : element.rank).operations[element.operation];
  }
  [[nodiscard]] const schedule::Shape& shape_of(const Element& element) const {
    return schedule_.shape(operation_of(element));
  }

  uint64_t ready_at(const Element& element) {
    Host& host = hosts_[element.rank];
    const schedule::Shape& shape = shape_of(element);
    if (element.is_message) return std::max(host.cpu[shape.cpu], host.receiving[shape.nic]);
    if (shape.kind == schedule::Kind::send) return std::max(host.cpu[shape.cpu], host.sending[shape.nic]);
    return shape.kind == schedule::Kind::compute ? host.cpu[shape.cpu] : 0;
  }

  void perform(const Element& element) {
    Host& host = hosts_[element.rank];
    const schedule::Shape& shape = shape_of(element);
    const uint64_t time = element.time;
    const uint64_t more = shape.size - 1;
    if (element.is_message) {
      host.cpu[shape.cpu] = time + is_.o + std::max(more * is_.O, more * is_.G);
      host.receiving[shape.nic] = time + is_.g + more * is_.G;
      const auto found = std::ranges::find_if(host.posted, [&](const Element& one) { return meet(one, element); });
      if (found == host.posted.end()) {
        host.arrived.push_back(element);
        return;
      }
      decrement(element.rank, found->operation, schedule::Awaits::end);
      host.posted.erase(found);
      if (shape.size > is_.S) end_sender(element, shape, time);
      return;
    }
    --left;
    decrement(element.rank, element.operation, schedule::Awaits::start);
    if (shape.kind == schedule::Kind::compute) {
      host.cpu[shape.cpu] = time + shape.size;
      decrement(element.rank, element.operation, schedule::Awaits::end);
    } else if (shape.kind == schedule::Kind::send) {
      host.cpu[shape.cpu] = time + is_.o + more * is_.O;
      host.sending[shape.nic] = time + is_.g + more * is_.G;
      const uint32_t peer = schedule_.peer(element.rank, operation_of(element));
      queue_.insert({time + is_.o + is_.L, numbers_++, peer, element.operation, true, element.rank});
      if (shape.size <= is_.S) decrement(element.rank, element.operation, schedule::Awaits::end);
    } else {
      const auto found = std::ranges::find_if(host.arrived, [&](const Element& one) { return meet(element, one); });
      if (found == host.arrived.end()) {
        host.posted.push_back(element);
        return;
      }
      const Element message = *found;
      host.arrived.erase(found);
      decrement(element.rank, element.operation, schedule::Awaits::end);
      if (shape.size > is_.S) end_sender(message, shape, time);
    }
  }

  // `shape` is that of the operation that found the other one.
  void end_sender(const Element& message, const schedule::Shape& shape, uint64_t time) {
    decrement(message.source, message.operation, schedule::Awaits::end);
    uint64_t& cpu = hosts_[message.source].cpu[shape.cpu];
    uint64_t& sending = hosts_[message.source].sending[shape.nic];
    if (cpu < time) cpu = time;
    if (sending < time) sending = time;
  }

  [[nodiscard]] bool meet(const Element& receive, const Element& message) const {
    const uint32_t source = schedule_.peer(receive.rank, operation_of(receive));
    const uint32_t wanted = shape_of(receive).tag;
    const uint32_t tag = shape_of(message).tag;
    return (source == schedule::any || source == message.source) &&
           (wanted == tag || (wanted == schedule::any && !is_.tags_apart.has(tag)) ||
            (tag == schedule::any && !is_.tags_apart.has(wanted)));
  }

  void decrement(uint32_t rank, uint32_t operation, schedule::Awaits awaits) {
    for (const schedule::Edge& edge : schedule_.program(rank).edges_of(operation)) {
      if (edge.awaits() == awaits && --hosts_[rank].waits[edge.to()] == 0) freed_[rank].push_back(edge.to());
    }
  }

  void free(std::map<uint32_t, std::vector<uint32_t>>& freed) {
    for (auto& [rank, operations] : freed) {
      const auto& all = schedule_.program(rank).operations;
      const auto kind_of = [&](uint32_t one) { return schedule_.shape(all[one]).kind; };
      std::vector<uint32_t> sorted;
      for (const auto kind : {schedule::Kind::send, schedule::Kind::receive, schedule::Kind::compute}) {
        std::ranges::copy_if(operations, std::back_inserter(sorted),
                             [&](uint32_t one) { return kind_of(one) == kind; });
      }
      for (const uint32_t one : sorted) {
        const schedule::Shape& shape = schedule_.shape(all[one]);
        uint64_t time = hosts_[rank].cpu[shape.cpu];
        if (shape.kind == schedule::Kind::send) time = std::max(time, hosts_[rank].sending[shape.nic]);
        queue_.insert({time, numbers_++, rank, one, false, 0});
      }
    }
  }

  const schedule::Schedule& schedule_;
  const LogGopSimParameters is_;
  std::vector<Host> hosts_;
  std::set<Element> queue_;
  std::map<uint32_t, std::vector<uint32_t>> freed_;
  uint64_t numbers_ = 0;
};

}  // namespace spinloom::goal::test
