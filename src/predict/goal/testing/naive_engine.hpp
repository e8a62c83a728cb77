// NaiveEngine - the rules of model.hpp as plainly as they can be written, for tests: one ordered set of what is to
// happen, to which an element goes back while its CPU is busy, times of operations in maps, and lists that are walked.
//
// Threads: pure. Time: modelled.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "predict/goal/model/model.hpp"
#include "simulated/network/network.hpp"

namespace spinloom::goal::test {

class NaiveEngine {
 public:
  NaiveEngine(const schedule::Schedule& schedule, const Model& model)
      : schedule_(schedule), model_(model), hosts_(schedule.ranks()) {
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      Host& host = hosts_[rank];
      host.waits = schedule.program(rank).dependency_counts();
      host.ready.resize(host.waits.size());
      left += host.waits.size();
    }
  }

  void run() {
    phases_.resize(schedule_.ranks());
    if (model_.noise.has_value() && !model_.noise->is_synchronised) {
      Random random(model_.noise->seed, "goal.noise");
      for (uint64_t& phase : phases_) phase = random.below(model_.noise->period_ps);
    }
    if (model_.network.has_value()) {
      uint32_t planes = 1;
      for (const schedule::Shape& shape : schedule_.shapes()) planes = std::max(planes, shape.nic + 1U);
      network_ = *network::Network::make(*model_.network, model_.G, schedule_.ranks(), planes);
    }
    for (uint32_t rank = 0; rank < hosts_.size(); ++rank) {
      for (uint32_t one = 0; one < hosts_[rank].waits.size(); ++one) {
        if (hosts_[rank].waits[one] == 0) free(rank, one);
      }
    }
    while (!queue_.empty()) {
      const Element element = *queue_.begin();
      queue_.erase(queue_.begin());
      perform(element);
    }
    for (const Host& host : hosts_) {
      outcome.finish_ps.push_back(host.finish);
      outcome.compute_ps.push_back(host.compute);
      outcome.overhead_ps.push_back(host.overhead);
      outcome.makespan_ps = std::max(outcome.makespan_ps, host.finish);
      unmatched += host.posted.size() + host.arrived.size() + host.awaited.size();
    }
  }

  Outcome outcome;
  uint64_t left = 0;  // operations that have not begun
  uint64_t unmatched = 0;  // receives and messages

 private:
  // Elements that are ready at one moment begin in this order.
  enum class What { enters, travels, leaves, arrives, is_there, served, first, arrived, send, receive, compute };
  enum class Kind { message, request, answer, data, put, ask, reply };
  struct Name {
    uint32_t rank = 0;
    uint32_t operation = 0;
  };
  static constexpr uint64_t at_once = UINT64_MAX;
  struct Element {
    uint64_t time = 0;
    uint64_t waits = at_once;  // the number in the order in which elements began to wait for a CPU
    What what = What::compute;
    uint64_t number = 0;
    Name send{};  // the send, or the operation itself
    Name receive{};
    Kind kind = Kind::message;
    // A packet has these: where it is, where it is heading, and its bytes.
    uint32_t at = 0, heading = 0;
    uint64_t first = 0, end = 0, bytes = 0;
    uint64_t message = 0;
    bool operator<(const Element& other) const {
      return std::tie(time, waits, what, number) < std::tie(other.time, other.waits, other.what, other.number);
    }
  };
  struct Host {
    std::vector<uint32_t> waits;
    std::vector<uint64_t> ready;
    std::map<uint32_t, uint64_t> cpu, sending, receiving;
    std::list<Element> posted, arrived;
    std::map<uint32_t, uint64_t> there;  // one-sided operations that have been done here, by tag
    std::vector<uint32_t> awaited;
    std::set<uint32_t> has_first;  // operations of whose any-of edges one has come
    uint64_t finish = 0, compute = 0, overhead = 0;
  };

  [[nodiscard]] const schedule::Operation& operation_of(Name name) const {
    return schedule_.program(name.rank).operations[name.operation];
  }
  [[nodiscard]] const schedule::Shape& shape_of(Name name) const { return schedule_.shape(operation_of(name)); }
  [[nodiscard]] uint64_t bytes_of(Name send) const { return std::max<uint64_t>(shape_of(send).size, 1) - 1; }
  [[nodiscard]] static uint64_t up(const Rate& rate, uint64_t bytes) {
    return (bytes * rate.ps_numerator() + rate.denominator() - 1) / rate.denominator();
  }
  [[nodiscard]] uint64_t overhead_of(Name send) const { return model_.o_ps + up(model_.O, bytes_of(send)); }

  [[nodiscard]] uint64_t layout_of(Name name) const {
    const bool has_one = schedule_.transfer_layouts(operation_of(name)).local != schedule::contiguous;
    return has_one && model_.layout.has_value() ? up(*model_.layout, shape_of(name).size) : 0;
  }

  // Goes through the periods one by one.
  [[nodiscard]] uint64_t lasting(uint32_t rank, uint64_t now, uint64_t work) const {
    if (!model_.noise.has_value()) return work;
    const uint64_t period = model_.noise->period_ps;
    const uint64_t length = model_.noise->length_ps;
    uint64_t time = now + phases_[rank];
    while (work > 0) {
      const uint64_t in_period = time % period;
      if (in_period < length) {
        time += length - in_period;
        continue;
      }
      const uint64_t some = std::min(work, period - in_period);
      work -= some;
      time += some;
    }
    return time - phases_[rank] - now;
  }

  void add(uint64_t time, What what, Element element) {
    element.time = time;
    element.waits = at_once;
    element.what = what;
    element.number = numbers_++;
    queue_.insert(element);
  }

  // Returns false if the element waits for its CPU; it is then queued again.
  bool has_cpu(Element element, Name name) {
    const uint64_t until = hosts_[name.rank].cpu[shape_of(name).cpu];
    if (until <= element.time) return true;
    element.time = until;
    if (element.waits == at_once) element.waits = waits_++;
    queue_.insert(element);
    return false;
  }

  void perform(const Element& element) {
    Host& host = hosts_[element.send.rank];
    const uint64_t now = element.time;
    switch (element.what) {
      case What::compute: {
        if (!has_cpu(element, element.send)) return;
        const uint64_t lasts = lasting(element.send.rank, now, shape_of(element.send).size * model_.unit_ps);
        host.cpu[shape_of(element.send).cpu] = now + lasts;
        host.compute += lasts;
        begins(now, element.send);
        ends(now + lasts, element.send);
        return;
      }
      case What::send: {
        if (!has_cpu(element, element.send)) return;
        const bool asks = kind_of(element.send) == schedule::Kind::get;
        const uint64_t lasts =
            lasting(element.send.rank, now, asks ? model_.o_ps : overhead_of(element.send) + layout_of(element.send));
        host.cpu[shape_of(element.send).cpu] = now + lasts;
        host.overhead += lasts;
        Element message = element;
        message.receive.rank = schedule_.peer(element.send.rank, operation_of(element.send));
        message.kind = shape_of(element.send).size > model_.S_bytes ? Kind::request : Kind::message;
        if (schedule::is_one_sided(kind_of(element.send))) {
          message.kind = kind_of(element.send) == schedule::Kind::get ? Kind::ask : Kind::put;
        }
        add(now + lasts, What::leaves, message);
        begins(now, element.send);
        if (message.kind == Kind::message) ends(now + lasts, element.send);
        return;
      }
      case What::receive: {
        if (!has_cpu(element, element.receive)) return;
        begins(now, element.receive);
        std::list<Element>& arrived = hosts_[element.receive.rank].arrived;
        const auto found =
            std::ranges::find_if(arrived, [&](const Element& message) { return meet(element.receive, message.send); });
        if (found == arrived.end()) {
          hosts_[element.receive.rank].posted.push_back(element);
          return;
        }
        Element message = *found;
        arrived.erase(found);
        message.receive = element.receive;
        message.time = now;
        meets(message);
        return;
      }
      case What::enters:
        if (element.end < element.bytes) {
          Element next = element;
          next.first = element.end;
          send_packet(now + up(model_.G, element.end) - up(model_.G, element.first), next);
        }
        set_out(element);
        return;
      case What::travels: travel(element); return;
      case What::leaves:
      case What::arrives: pass(element); return;
      case What::is_there: is_there(element); return;
      case What::served: counts(now, element.receive.rank, shape_of(element.send).tag); return;
      case What::arrived:
        begins(now, element.send);
        host.awaited.push_back(element.send.operation);
        end_awaited(now, element.send.rank);
        return;
      case What::first:
        if (host.has_first.insert(element.send.operation).second) came(now, element.send);
        return;
    }
  }

  [[nodiscard]] schedule::Kind kind_of(Name name) const { return shape_of(name).kind; }
  [[nodiscard]] static bool is_back(const Element& element) {
    return element.kind == Kind::answer || element.kind == Kind::reply;
  }
  [[nodiscard]] static bool is_long(const Element& element) {
    return element.kind != Kind::request && element.kind != Kind::answer && element.kind != Kind::ask;
  }

  // Counts a one-sided operation that has been done at a rank, by its tag.
  void counts(uint64_t now, uint32_t rank, uint32_t tag) {
    ++hosts_[rank].there[tag];
    end_awaited(now, rank);
  }

  void end_awaited(uint64_t now, uint32_t rank) {
    std::vector<uint32_t> awaited = std::exchange(hosts_[rank].awaited, {});
    std::vector<uint32_t> done;
    for (const uint32_t one : awaited) {
      const schedule::Shape& shape = shape_of({rank, one});
      (hosts_[rank].there[shape.tag] >= shape.size ? done : hosts_[rank].awaited).push_back(one);
    }
    for (const uint32_t one : done) ends(now, {rank, one});
  }

  // Takes an element through a NIC.
  void pass(const Element& element) {
    const bool is_back = NaiveEngine::is_back(element);
    const bool leaves = element.what == What::leaves;
    Host& host = hosts_[leaves == is_back ? element.receive.rank : element.send.rank];
    uint64_t& nic = (leaves ? host.sending : host.receiving)[shape_of(element.send).nic];
    const uint64_t bytes = is_long(element) ? up(model_.G, bytes_of(element.send)) : 0;
    const uint64_t begin = std::max(element.time, nic);
    nic = begin + model_.g_ps + bytes;
    const schedule::Kind kind = kind_of(element.send);
    if (leaves) {
      if (network_.has_value()) {
        send_packets(begin, element);
      } else {
        add(begin + model_.L_ps, What::arrives, element);
      }
      const bool is_put = element.kind == Kind::put && kind != schedule::Kind::fetch;
      if (element.kind == Kind::data || is_put) ends(begin + bytes, element.send);
      if (element.kind == Kind::reply && kind == schedule::Kind::get) add(begin + bytes, What::served, element);
    } else {
      add(begin + bytes, What::is_there, element);
    }
  }

  [[nodiscard]] static uint32_t source_of(const Element& element) {
    return is_back(element) ? element.receive.rank : element.send.rank;
  }
  [[nodiscard]] static uint32_t destination_of(const Element& element) {
    return is_back(element) ? element.send.rank : element.receive.rank;
  }

  void send_packets(uint64_t begin, Element element) {
    element.bytes = is_long(element) ? bytes_of(element.send) + 1 : 1;
    element.message = messages_++;
    element.at = network_->switch_of(source_of(element));
    element.first = 0;
    if (is_ordered(element)) order_[{source_of(element), destination_of(element)}].push_back(element.message);
    send_packet(begin + model_.L_ps, element);
  }

  void send_packet(uint64_t time, Element packet) {
    const uint64_t each = model_.network->packet_bytes == 0
                              ? packet.bytes
                              : std::max(model_.network->packet_bytes, packet.bytes / network::packets_max + 1);
    packet.end = std::min(packet.first + each, packet.bytes);
    add(time, What::enters, packet);
  }

  void set_out(Element packet) {
    packet.heading = destination_of(packet);
    if (packet.at != network_->switch_of(packet.heading)) {
      packet.heading = network_->heading(packet.time, packet.at, packet.heading, shape_of(packet.send).nic);
    }
    travel(packet);
  }

  void travel(Element packet) {
    const uint32_t destination = destination_of(packet);
    const uint32_t plane = shape_of(packet.send).nic;
    if (network_->turns(packet.at, packet.heading)) packet.heading = destination;
    if (packet.heading != destination || packet.at != network_->switch_of(destination)) {
      const auto move = network_->move(packet.time, packet.at, packet.heading, packet.end - packet.first, plane);
      packet.at = move.to;
      add(move.at_ps, What::travels, packet);
      return;
    }
    uint64_t& nic = hosts_[destination].receiving[plane];
    const uint64_t begin = std::max(packet.time, nic);
    const bool is_last = packet.end == packet.bytes;
    nic = begin + (is_last ? up(model_.G, packet.bytes - 1) - up(model_.G, packet.first)
                           : (packet.end - packet.first) * model_.G.ps_numerator() / model_.G.denominator());
    const uint64_t there = nic;
    if (is_last) nic += model_.g_ps;
    if ((came_[packet.message] += packet.end - packet.first) < packet.bytes) return;
    if (!is_ordered(packet)) {
      add(there, What::is_there, packet);
      return;
    }
    // Messages before this one in the order come first.
    complete_.emplace(packet.message, std::pair(there, packet));
    std::list<uint64_t>& order = order_[{source_of(packet), destination}];
    uint64_t last = 0;
    while (!order.empty() && complete_.contains(order.front())) {
      last = std::max(last, complete_.at(order.front()).first);
      add(last, What::is_there, complete_.at(order.front()).second);
      order.pop_front();
    }
  }

  [[nodiscard]] bool is_ordered(const Element& element) const {
    return model_.network->routing != network::Routing::fixed &&
           (element.kind == Kind::message || element.kind == Kind::request);
  }

  void is_there(Element element) {
    if (element.waits == at_once) {
      ++outcome.events;
      if (element.kind == Kind::reply) {
        ends(element.time, element.send);
        return;
      }
      if (element.kind == Kind::ask || element.kind == Kind::put) {
        const schedule::Kind kind = kind_of(element.send);
        if (element.kind == Kind::put) counts(element.time, element.receive.rank, shape_of(element.send).tag);
        element.kind = Kind::reply;
        if (kind == schedule::Kind::get || kind == schedule::Kind::fetch) add(element.time, What::leaves, element);
        return;
      }
      if (element.kind == Kind::answer) {
        element.kind = Kind::data;
        add(element.time, What::leaves, element);
        return;
      }
      if (element.kind != Kind::data) {
        Host& host = hosts_[element.receive.rank];
        const auto found =
            std::ranges::find_if(host.posted, [&](const Element& one) { return meet(one.receive, element.send); });
        if (found == host.posted.end()) {
          host.arrived.push_back(element);
          return;
        }
        element.receive = found->receive;
        host.posted.erase(found);
      }
    }
    meets(element);
  }

  void meets(Element element) {
    if (element.kind == Kind::request) {
      element.kind = Kind::answer;
      add(element.time, What::leaves, element);
      return;
    }
    if (!has_cpu(element, element.receive)) return;
    const uint64_t lasts =
        lasting(element.receive.rank, element.time, overhead_of(element.send) + layout_of(element.receive));
    Host& host = hosts_[element.receive.rank];
    host.cpu[shape_of(element.receive).cpu] = element.time + lasts;
    host.overhead += lasts;
    ends(element.time + lasts, element.receive);
  }

  [[nodiscard]] bool meet(Name receive, Name send) const {
    const uint32_t source = schedule_.peer(receive.rank, operation_of(receive));
    const uint32_t wanted = shape_of(receive).tag;
    const uint32_t tag = shape_of(send).tag;
    return (source == schedule::any || source == send.rank) &&
           (wanted == tag || (wanted == schedule::any && !model_.tags_apart.has(tag)) ||
            (tag == schedule::any && !model_.tags_apart.has(wanted)));
  }

  void begins(uint64_t now, Name name) {
    ++outcome.events;
    --left;
    count(now, name, schedule::Awaits::start);
  }

  void ends(uint64_t time, Name name) {
    hosts_[name.rank].finish = std::max(hosts_[name.rank].finish, time);
    count(time, name, schedule::Awaits::end);
  }

  void count(uint64_t time, Name name, schedule::Awaits awaits) {
    for (const schedule::Edge& edge : schedule_.program(name.rank).edges_of(name.operation)) {
      if (edge.awaits() != awaits) continue;
      const Name waiting{name.rank, edge.to()};
      if (edge.join() == schedule::Join::all) {
        came(time, waiting);
        continue;
      }
      Element first;
      first.send = waiting;
      add(time, What::first, first);
    }
  }

  void came(uint64_t time, Name waiting) {
    Host& host = hosts_[waiting.rank];
    host.ready[waiting.operation] = std::max(host.ready[waiting.operation], time);
    if (--host.waits[waiting.operation] == 0) free(waiting.rank, waiting.operation);
  }

  void free(uint32_t rank, uint32_t operation) {
    const Name name{rank, operation};
    const schedule::Kind kind = shape_of(name).kind;
    Element element;
    element.send = element.receive = name;
    add(hosts_[rank].ready[operation],
        kind == schedule::Kind::compute   ? What::compute
        : kind == schedule::Kind::receive ? What::receive
        : kind == schedule::Kind::arrived ? What::arrived
                                          : What::send,
        element);
  }

  const schedule::Schedule& schedule_;
  const Model model_;
  std::vector<Host> hosts_;
  std::set<Element> queue_;
  std::optional<network::Network> network_;
  std::map<uint64_t, uint64_t> came_;  // bytes, of messages
  std::vector<uint64_t> phases_;
  uint64_t messages_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, std::list<uint64_t>> order_;
  std::map<uint64_t, std::pair<uint64_t, Element>> complete_;
  uint64_t numbers_ = 0;
  uint64_t waits_ = 0;
};

}  // namespace spinloom::goal::test
