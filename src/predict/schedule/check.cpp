#include "predict/schedule/check.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace spinloom::schedule {
namespace {

constexpr size_t cycle_shown_max = 8;  // operations of a cycle that the sentence names

// The operations of a Program that can never begin, because they wait for each other. One any-of edge is enough, so
// that operations may wait for each other if another one leads them on.
class Cycle {
 public:
  explicit Cycle(const Program& program) : program_(program), pending_(program.dependency_counts()) {}

  // Returns an empty list if there is none.
  [[nodiscard]] std::vector<uint32_t> find() {
    if (!remove_unblocked()) return {};
    find_predecessors();
    return shortest_through(find_in_cycle());
  }

 private:
  // Removes the operations that can begin. Returns false if none is left; what is left waits for others that are left.
  bool remove_unblocked() {
    std::vector<uint32_t> ready;
    for (uint32_t number = 0; number < program_.size(); ++number) {
      if (pending_[number] == 0) ready.push_back(number);
    }
    size_t removed = 0;
    for (; !ready.empty(); ++removed) {
      const uint32_t number = ready.back();
      ready.pop_back();
      program_.for_each_edge(number, [&](Edge edge) {
        if (!is_waited_for(edge)) return;
        if (edge.join() == Join::first) {
          is_any_met_.resize(program_.size());
          is_any_met_[edge.to()] = true;
        }
        if (--pending_[edge.to()] == 0) ready.push_back(edge.to());
      });
    }
    return removed < program_.size();
  }

  [[nodiscard]] bool is_pending(uint32_t number) const { return pending_[number] > 0; }
  // True for an all-of edge, and for an any-of edge if no other one of its operation has come.
  [[nodiscard]] bool is_waited_for(const Edge& edge) const {
    return edge.join() == Join::all || is_any_met_.empty() || !is_any_met_[edge.to()];
  }

  // Finds, for each operation that is left, one that it waits for.
  void find_predecessors() {
    predecessor_.assign(program_.size(), 0);
    for (uint32_t number = program_.size(); number-- > 0;) {
      if (!is_pending(number)) continue;
      program_.for_each_edge(number, [&](Edge edge) {
        if (is_waited_for(edge)) predecessor_[edge.to()] = number;
      });
    }
  }

  [[nodiscard]] uint32_t find_in_cycle() const {
    uint32_t number = 0;
    while (!is_pending(number)) ++number;
    std::vector<bool> seen(program_.size());
    for (; !seen[number]; number = predecessor_[number]) seen[number] = true;
    return number;
  }

  // Breadth first from `first` until an edge leads back to it; in the order in which they wait for one another.
  [[nodiscard]] std::vector<uint32_t> shortest_through(uint32_t first) {
    std::vector<bool> seen(program_.size());
    std::queue<uint32_t> next;
    next.push(first);
    seen[first] = true;
    while (true) {
      const uint32_t number = next.front();
      next.pop();
      bool leads_back = false;
      program_.for_each_edge(number, [&](Edge edge) {
        if (!is_waited_for(edge)) return;
        leads_back = leads_back || edge.to() == first;
        if (seen[edge.to()] || !is_pending(edge.to())) return;
        seen[edge.to()] = true;
        predecessor_[edge.to()] = number;
        next.push(edge.to());
      });
      if (leads_back) return path(first, number);
    }
  }

  [[nodiscard]] std::vector<uint32_t> path(uint32_t first, uint32_t last) const {
    std::vector<uint32_t> cycle{last};
    while (cycle.back() != first) cycle.push_back(predecessor_[cycle.back()]);
    std::ranges::reverse(cycle);
    return cycle;
  }

  const Program& program_;
  std::vector<uint32_t> pending_;  // the number of each operation's dependencies that have not come
  std::vector<bool> is_any_met_;  // one for each operation: one of its any-of edges has come; empty: none has
  std::vector<uint32_t> predecessor_;  // an operation for which each operation waits
};

Status check_cycles(const Schedule& schedule, uint32_t rank) {
  const Program& program = schedule.program(rank);
  if (program.is_forward()) return {};
  const std::vector<uint32_t> cycle = Cycle(program).find();
  if (cycle.empty()) return {};
  const auto describe = [&](uint32_t number) {
    return text(number, " (", schedule.describe(rank, program.operation(number)), ")");
  };
  if (cycle.size() == 1)
    return fail(Code::invalid, "rank ", rank, ": operation ", describe(cycle[0]), " waits for itself");
  std::string chain;
  for (size_t i = 0; i < std::min(cycle.size(), cycle_shown_max); ++i) chain += describe(cycle[i]) + " -> ";
  if (cycle.size() > cycle_shown_max) chain += "... -> ";
  return fail(Code::invalid, "rank ", rank, ": ", cycle.size(), " operations wait for each other: ", chain, cycle[0]);
}

Status check_layouts(const Schedule& schedule, uint32_t rank, uint32_t number) {
  const Operation& operation = schedule.program(rank).operations[number];
  const Shape& shape = schedule.shape(operation);
  const TransferLayouts layouts = schedule.transfer_layouts(operation);
  const std::string place = text("rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation), ")");
  if (layouts.local != contiguous && !has_peer(shape.kind)) {
    return fail(Code::invalid, place, " has a layout, but moves no bytes");
  }
  if (layouts.remote != contiguous && !is_one_sided(shape.kind)) {
    return fail(Code::invalid, place, " has a layout at its peer: only one-sided operations have one there");
  }
  for (const uint32_t layout : {layouts.local, layouts.remote}) {
    if (layout == contiguous) continue;
    if (layout >= schedule.layouts().size()) {
      return fail(Code::invalid, place, " has layout ", layout, ", but there are ", schedule.layouts().size());
    }
    const uint64_t bytes = schedule.layouts()[layout].bytes;
    if (bytes != shape.size) {
      return fail(Code::invalid, place, " has layout ", layout, ", which holds ", bytes, " B");
    }
  }
  return {};
}

// Checks the peers of a rank's operations, the tags of their counters, and their layouts. Relative peers are always
// ranks.
Status check_peers(const Schedule& schedule, uint32_t rank) {
  const Program& program = schedule.program(rank);
  for (uint32_t number = 0; number < program.operations.size(); ++number) {
    const Operation& operation = program.operations[number];
    const Shape& shape = schedule.shape(operation);
    if (shape.kind > Kind::compute && shape.tag == any) {
      return fail(Code::invalid, "rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation),
                  "): a counter has a tag of its own, not any");
    }
    if (!schedule.all_transfer_layouts().empty()) SPL_TRY(check_layouts(schedule, rank, number));
    if (!has_peer(shape.kind)) continue;
    const uint32_t peer = schedule.peer(rank, operation);
    if (peer < schedule.ranks() || (peer == any && shape.kind == Kind::receive)) continue;
    const std::string problem =
        peer == any ? text("a ", name_of(shape.kind), " needs a ", shape.kind == Kind::send ? "receiver" : "target")
                    : text("there is no rank ", peer, ": the schedule has ", schedule.ranks());
    return fail(Code::invalid, "rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation),
                "): ", problem);
  }
  return {};
}

std::string count_text(uint64_t number, const char* what) { return text(number, " ", what, number == 1 ? "" : "s"); }

// A send to `receiver`, or a receive there. Sorted by receiver, source and tag; `any` is the largest of the last two.
struct MessageEnd {
  uint32_t receiver;
  uint32_t source;
  uint32_t tag;
  Kind kind;
  bool operator<(const MessageEnd& other) const {
    return std::tie(receiver, source, tag) < std::tie(other.receiver, other.source, other.tag);
  }
};

struct Tally {
  uint64_t sends = 0;
  uint64_t receives = 0;
};

template <class Belongs>
Tally tally(std::span<const MessageEnd> ends, Belongs&& belongs) {
  Tally sums;
  for (const MessageEnd& end : ends) {
    if (belongs(end)) ++(end.kind == Kind::send ? sums.sends : sums.receives);
  }
  return sums;
}

Tally tally(std::span<const MessageEnd> ends) {
  return tally(ends, [](const MessageEnd&) { return true; });
}

// Cuts a range sorted by `key` into parts of one key each; `check` gives a Status.
template <class Key, class Check>
Status for_each_group(std::span<const MessageEnd> ends, Key key, Check&& check) {
  while (!ends.empty()) {
    const uint32_t first = ends.front().*key;
    const auto end = std::ranges::find_if(ends, [&](const MessageEnd& one) { return one.*key != first; });
    const auto length = static_cast<size_t>(end - ends.begin());
    SPL_TRY(check(ends.first(length)));
    ends = ends.subspan(length);
  }
  return {};
}

// All sends to one receiver, and its receives.
class Receiver {
 public:
  explicit Receiver(std::span<const MessageEnd> all) : all_(all), rank_(all.front().receiver) {
    const auto first_of_any = std::ranges::lower_bound(all, any, {}, &MessageEnd::source);
    any_source_ = all.subspan(static_cast<size_t>(first_of_any - all.begin()));
    any_source_any_tag_ = tally(any_source_, is_any_tag).receives;
  }

  Status check() const {
    SPL_TRY(for_each_group(all_, &MessageEnd::source, [this](auto group) { return check_source(group); }));
    if (!any_source_.empty()) SPL_TRY(check_tags());
    const Tally all = tally(all_);
    if (all.sends == all.receives) return {};
    return fail(Code::invalid, "rank ", rank_, " has ", count_text(all.receives, "receive"), ", but ",
                count_text(all.sends, "message"), all.sends == 1 ? " is" : " are", " sent to it");
  }

 private:
  static bool is_any_tag(const MessageEnd& end) { return end.tag == any; }

  // Checks the messages of same_tag source, tag by tag and altogether.
  Status check_source(std::span<const MessageEnd> group) const {
    const uint32_t source = group.front().source;
    if (source == any) return {};
    const Tally any_tag = tally(group, is_any_tag);
    SPL_TRY(for_each_group(group, &MessageEnd::tag, [&](std::span<const MessageEnd> same_tag) -> Status {
      const uint32_t tag = same_tag.front().tag;
      if (tag == any) return {};
      const Tally of_tag = tally(same_tag);
      if (of_tag.receives > of_tag.sends + any_tag.sends) {
        return fail(Code::invalid, "rank ", rank_, " has ", count_text(of_tag.receives, "receive"), " from rank ",
                    source, " with tag ", tag, ", but rank ", source, " sends it ",
                    count_text(of_tag.sends + any_tag.sends, "message"), " that they can take");
      }
      const auto [first, last] = std::ranges::equal_range(any_source_, tag, {}, &MessageEnd::tag);
      const uint64_t takers =
          of_tag.receives + any_tag.receives + static_cast<uint64_t>(last - first) + any_source_any_tag_;
      if (of_tag.sends > takers) {
        return fail(Code::invalid, "rank ", source, " sends rank ", rank_, " ", count_text(of_tag.sends, "message"),
                    " with tag ", tag, ", but rank ", rank_, " has ", count_text(takers, "receive"),
                    " that can take them");
      }
      return {};
    }));
    const Tally sums = tally(group);
    if (sums.receives > sums.sends) {
      return fail(Code::invalid, "rank ", rank_, " has ", count_text(sums.receives, "receive"), " from rank ", source,
                  ", but rank ", source, " sends it ", count_text(sums.sends, "message"));
    }
    if (sums.sends > sums.receives + any_source_.size()) {
      return fail(Code::invalid, "rank ", source, " sends rank ", rank_, " ", count_text(sums.sends, "message"),
                  ", but rank ", rank_, " has ", count_text(sums.receives + any_source_.size(), "receive"),
                  " that can take them");
    }
    return {};
  }

  // Checks the messages of all sources together, tag by tag.
  Status check_tags() const {
    const uint64_t any_tag_sends = tally(all_, is_any_tag).sends;
    std::vector<MessageEnd> by_tag(all_.begin(), all_.end());
    std::ranges::sort(by_tag, {}, &MessageEnd::tag);
    return for_each_group(by_tag, &MessageEnd::tag, [&](std::span<const MessageEnd> same_tag) -> Status {
      const Tally of_tag = tally(same_tag);
      if (same_tag.front().tag == any || of_tag.receives <= of_tag.sends + any_tag_sends) return {};
      return fail(Code::invalid, "rank ", rank_, " has ", count_text(of_tag.receives, "receive"), " with tag ",
                  same_tag.front().tag, ", but ", count_text(of_tag.sends + any_tag_sends, "message"),
                  " that they can take ", of_tag.sends + any_tag_sends == 1 ? "is" : "are", " sent to it");
    });
  }

  std::span<const MessageEnd> all_;
  uint32_t rank_;
  std::span<const MessageEnd> any_source_;  // the receives of any source
  uint64_t any_source_any_tag_ = 0;  // the number of receives of any source that are of any tag
};

// The sends and receives of all ranks. Most schedules need one pass: for each receiver, the sum of hashes of the sends
// less that of the receives is 0 if both are the same in sources, tags and numbers. The other receivers are examined in
// passes, which keep the operations of one receiver, or of several with no more than `ends_max` together.
class MessageCheck {
 public:
  MessageCheck(const Schedule& schedule, Progress& progress)
      : schedule_(schedule), progress_(progress), receivers_(schedule.ranks()) {}

  Status check() {
    SPL_TRY(each([this](const MessageEnd& end, uint32_t times) {
      Balance& balance = receivers_[end.receiver];
      balance.sum += times * (end.kind == Kind::send ? hash_of(end) : -hash_of(end));
      balance.ends += times;
    }));
    for (uint32_t first = 0; first < schedule_.ranks();) {
      const uint32_t last = last_of_pass(first);
      SPL_TRY(pass(first, last));
      first = last;
    }
    return {};
  }

 private:
  struct Balance {
    uint64_t sum = 0;
    uint64_t ends = 0;
  };
  static constexpr uint64_t ends_max = uint64_t{1} << 22;

  static uint64_t hash_of(const MessageEnd& end) {
    uint64_t hash = (uint64_t{end.source} << 32 | end.tag) + 0x9e37'79b9'7f4a'7c15;
    hash = (hash ^ hash >> 30) * 0xbf58'476d'1ce4'e5b9;
    hash = (hash ^ hash >> 27) * 0x94d0'49bb'1331'11eb;
    return hash ^ hash >> 31;
  }

  // Calls `visit` for each send and receive of a pass, with the number of passes.
  template <class Take>
  Status each(Take&& visit) const {
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      const Program& program = schedule_.program(rank);
      SPL_TRY(progress_.advance(program.operations.size()));
      for (const Operation& operation : program.operations) {
        const Shape& shape = schedule_.shape(operation);
        if (shape.kind != Kind::send && shape.kind != Kind::receive) continue;
        const uint32_t peer = schedule_.peer(rank, operation);
        const bool is_send = shape.kind == Kind::send;
        visit(MessageEnd{is_send ? peer : rank, is_send ? rank : peer, shape.tag, shape.kind}, program.passes);
      }
    }
    return {};
  }

  [[nodiscard]] uint32_t last_of_pass(uint32_t first) const {
    uint64_t sum = 0;
    uint32_t last = first;
    for (; last < schedule_.ranks(); ++last) {
      if (receivers_[last].sum == 0) continue;
      if (sum > 0 && sum + receivers_[last].ends > ends_max) break;
      sum += receivers_[last].ends;
    }
    return last;
  }

  Status pass(uint32_t first, uint32_t last) const {
    const auto is_looked_at = [](const Balance& balance) { return balance.sum != 0; };
    if (std::none_of(receivers_.begin() + first, receivers_.begin() + last, is_looked_at)) return {};
    std::vector<MessageEnd> ends;
    SPL_TRY(each([&](const MessageEnd& end, uint32_t times) {
      if (end.receiver < first || end.receiver >= last || receivers_[end.receiver].sum == 0) return;
      ends.insert(ends.end(), times, end);
    }));
    std::sort(ends.begin(), ends.end());
    return for_each_group(ends, &MessageEnd::receiver, [](auto group) { return Receiver(group).check(); });
  }

  const Schedule& schedule_;
  Progress& progress_;
  std::vector<Balance> receivers_;
};

// Checks the counts of `arrived`s: for each rank and tag, the largest count that one waits for, and how many come.
class Arrivals {
 public:
  explicit Arrivals(const Schedule& schedule) : schedule_(schedule) {}

  Status check() {
    if (std::ranges::none_of(schedule_.shapes(), [](const Shape& one) { return one.kind == Kind::arrived; })) return {};
    each([](Kind kind) { return kind == Kind::arrived; },
         [this](uint32_t rank, uint32_t, uint32_t number) {
           const Operation& operation = schedule_.program(rank).operations[number];
           const Shape& shape = schedule_.shape(operation);
           Counter& counter = counters_[{rank, shape.tag}];
           if (shape.size > counter.threshold) counter = {shape.size, 0, number};
         });
    each(is_one_sided, [this](uint32_t rank, uint32_t peer, uint32_t number) {
      const Program& program = schedule_.program(rank);
      const auto counter = counters_.find({peer, schedule_.shape(program.operations[number]).tag});
      if (counter != counters_.end()) counter->second.arrivals += program.passes;
    });
    for (const auto& [key, counter] : counters_) {
      if (counter.arrivals >= counter.threshold) continue;
      return fail(Code::invalid, "rank ", key.first, ": operation ", counter.number, " (",
                  schedule_.describe(key.first, schedule_.program(key.first).operations[counter.number]),
                  ") waits for ", counter.threshold, ", but ", counter.arrivals, " one-sided operations have rank ",
                  key.first, " and tag ", key.second, " as their target");
    }
    return {};
  }

 private:
  struct Counter {
    uint64_t threshold = 0;
    uint64_t arrivals = 0;
    uint32_t number = 0;  // the operation that wants the most
  };

  template <class Chosen, class Take>
  void each(Chosen&& is_chosen, Take&& visit) const {
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      const Program& program = schedule_.program(rank);
      for (uint32_t number = 0; number < program.operations.size(); ++number) {
        const Operation& operation = program.operations[number];
        if (is_chosen(schedule_.shape(operation).kind)) visit(rank, schedule_.peer(rank, operation), number);
      }
    }
  }

  const Schedule& schedule_;
  std::map<std::pair<uint32_t, uint32_t>, Counter> counters_;  // the key is rank and tag
};

}  // namespace

Status check(const Schedule& schedule, const Watch& watch) {
  Progress progress(watch, "the check of the schedule");
  std::vector<bool> seen(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const uint32_t program = schedule.number_of_program(rank);
    if (seen[program]) continue;
    seen[program] = true;
    SPL_TRY(progress.advance(schedule.program(rank).operations.size()));
    SPL_TRY(check_cycles(schedule, rank));
    SPL_TRY(check_peers(schedule, rank));
  }
  SPL_TRY(MessageCheck(schedule, progress).check());
  return Arrivals(schedule).check();
}

Count count(const Schedule& schedule, const Watch& watch) {
  Progress progress(watch, "the count");
  std::vector<uint64_t> users(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) ++users[schedule.number_of_program(rank)];
  Count sums;
  std::vector<bool> is_used(schedule.shapes().size());
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i] == 0) continue;
    const Program& program = schedule.programs()[i];
    if (!progress.advance(program.operations.size())) break;
    const auto to_next = [&](Edge edge) { return edge.to() >= program.operations.size(); };
    sums.edges += users[i] * program.passes * program.edges.size();
    if (program.passes > 1)
      sums.edges -= users[i] * static_cast<uint64_t>(std::ranges::count_if(program.edges, to_next));
    users[i] *= program.passes;
    for (const Operation& operation : program.operations) {
      const Shape& shape = schedule.shape(operation);
      is_used[operation.shape] = true;
      switch (shape.kind) {
        case Kind::send:
          sums.sends += users[i];
          sums.sent_bytes += users[i] * shape.size;
          break;
        case Kind::receive: sums.receives += users[i]; break;
        case Kind::compute: sums.computations += users[i]; break;
        case Kind::put: sums.puts += users[i]; break;
        case Kind::get: sums.gets += users[i]; break;
        case Kind::atomic:
        case Kind::fetch: sums.atomics += users[i]; break;
        case Kind::arrived: sums.arrivals += users[i]; break;
      }
      if (is_one_sided(shape.kind)) sums.one_sided_bytes += users[i] * shape.size;
      const TransferLayouts layouts = schedule.transfer_layouts(operation);
      sums.layout_ends += users[i] * ((layouts.local != contiguous) + (layouts.remote != contiguous));
    }
  }
  std::set<uint32_t> cpus;
  std::set<uint32_t> nics;
  for (size_t shape = 0; shape < is_used.size(); ++shape) {
    if (!is_used[shape]) continue;
    cpus.insert(schedule.shapes()[shape].cpu);
    nics.insert(schedule.shapes()[shape].nic);
  }
  sums.cpus = static_cast<uint32_t>(cpus.size());
  sums.nics = static_cast<uint32_t>(nics.size());
  if (!cpus.empty()) sums.cpu_largest = *cpus.rbegin();
  if (!nics.empty()) sums.nic_largest = *nics.rbegin();
  return sums;
}

}  // namespace spinloom::schedule
