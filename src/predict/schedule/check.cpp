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

// The operations of a Program that can never begin, because they wait for each other.
class Cycle {
 public:
  explicit Cycle(const Program& program) : program_(program), waits_(program.waits()) {}
  // One any-of edge is enough, so that operations may wait for each other if another one leads them on.

  // Returns an empty list if there is none.
  [[nodiscard]] std::vector<uint32_t> find() {
    if (!remove_what_can_begin()) return {};
    predecessors();
    return shortest_through(one_of_a_cycle());
  }

 private:
  // Removes the operations that can begin. Returns false if none is left; what is left waits for others that are left.
  bool remove_what_can_begin() {
    std::vector<uint32_t> free;
    for (uint32_t number = 0; number < program_.size(); ++number) {
      if (waits_[number] == 0) free.push_back(number);
    }
    size_t removed = 0;
    for (; !free.empty(); ++removed) {
      const uint32_t number = free.back();
      free.pop_back();
      program_.each_edge(number, [&](Edge edge) {
        if (!is_waited_for(edge)) return;
        if (edge.join() == Join::first) {
          has_one_.resize(program_.size());
          has_one_[edge.to()] = true;
        }
        if (--waits_[edge.to()] == 0) free.push_back(edge.to());
      });
    }
    return removed < program_.size();
  }

  [[nodiscard]] bool is_left(uint32_t number) const { return waits_[number] > 0; }
  // Another any-of edge has not come yet.
  [[nodiscard]] bool is_waited_for(const Edge& edge) const {
    return edge.join() == Join::all || has_one_.empty() || !has_one_[edge.to()];
  }

  // Finds, for each operation that is left, one that it waits for.
  void predecessors() {
    before_.assign(program_.size(), 0);
    for (uint32_t number = program_.size(); number-- > 0;) {
      if (!is_left(number)) continue;
      program_.each_edge(number, [&](Edge edge) {
        if (is_waited_for(edge)) before_[edge.to()] = number;
      });
    }
  }

  [[nodiscard]] uint32_t one_of_a_cycle() const {
    uint32_t number = 0;
    while (!is_left(number)) ++number;
    std::vector<bool> seen(program_.size());
    for (; !seen[number]; number = before_[number]) seen[number] = true;
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
      program_.each_edge(number, [&](Edge edge) {
        if (!is_waited_for(edge)) return;
        leads_back = leads_back || edge.to() == first;
        if (seen[edge.to()] || !is_left(edge.to())) return;
        seen[edge.to()] = true;
        before_[edge.to()] = number;
        next.push(edge.to());
      });
      if (leads_back) return path(first, number);
    }
  }

  [[nodiscard]] std::vector<uint32_t> path(uint32_t first, uint32_t last) const {
    std::vector<uint32_t> found{last};
    while (found.back() != first) found.push_back(before_[found.back()]);
    std::ranges::reverse(found);
    return found;
  }

  const Program& program_;
  std::vector<uint32_t> waits_;
  std::vector<bool> has_one_;  // operations of whose any-of edges one has come; empty: none
  std::vector<uint32_t> before_;
};

Status without_cycle(const Schedule& schedule, uint32_t rank) {
  const Program& program = schedule.program(rank);
  if (program.is_forward()) return {};
  const std::vector<uint32_t> cycle = Cycle(program).find();
  if (cycle.empty()) return {};
  const auto one = [&](uint32_t number) {
    return text(number, " (", schedule.describe(rank, program.operation(number)), ")");
  };
  if (cycle.size() == 1) return fail(Code::invalid, "rank ", rank, ": operation ", one(cycle[0]), " waits for itself");
  std::string chain;
  for (size_t i = 0; i < std::min(cycle.size(), cycle_shown_max); ++i) chain += one(cycle[i]) + " -> ";
  if (cycle.size() > cycle_shown_max) chain += "... -> ";
  return fail(Code::invalid, "rank ", rank, ": ", cycle.size(), " operations wait for each other: ", chain, cycle[0]);
}

Status layouts_fit(const Schedule& schedule, uint32_t rank, uint32_t number) {
  const Operation& operation = schedule.program(rank).operations[number];
  const Shape& shape = schedule.shape(operation);
  const Ends ends = schedule.ends(operation);
  const std::string place = text("rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation), ")");
  if (ends.local != contiguous && !has_peer(shape.kind)) {
    return fail(Code::invalid, place, " has a layout, but moves no bytes");
  }
  if (ends.remote != contiguous && !is_one_sided(shape.kind)) {
    return fail(Code::invalid, place, " has a layout at its peer: only one-sided operations have one there");
  }
  for (const uint32_t layout : {ends.local, ends.remote}) {
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

// Relative peers are always ranks.
Status peers_are_ranks(const Schedule& schedule, uint32_t rank) {
  const Program& program = schedule.program(rank);
  for (uint32_t number = 0; number < program.operations.size(); ++number) {
    const Operation& operation = program.operations[number];
    const Shape& shape = schedule.shape(operation);
    if (shape.kind > Kind::compute && shape.tag == any) {
      return fail(Code::invalid, "rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation),
                  "): a counter has a tag of its own, not any");
    }
    if (!schedule.all_ends().empty()) SPL_TRY(layouts_fit(schedule, rank, number));
    if (!has_peer(shape.kind)) continue;
    const uint32_t peer = schedule.peer(rank, operation);
    if (peer < schedule.ranks() || (peer == any && shape.kind == Kind::receive)) continue;
    const std::string said =
        peer == any ? text("a ", name_of(shape.kind), " needs a ", shape.kind == Kind::send ? "receiver" : "target")
                    : text("there is no rank ", peer, ": the schedule has ", schedule.ranks());
    return fail(Code::invalid, "rank ", rank, ": operation ", number, " (", schedule.describe(rank, operation),
                "): ", said);
  }
  return {};
}

std::string counted(uint64_t number, const char* what) { return text(number, " ", what, number == 1 ? "" : "s"); }

// A send to `receiver`, or a receive there. Sorted by source and tag; `any` is the largest of both.
struct Meeting {
  uint32_t receiver;
  uint32_t source;
  uint32_t tag;
  Kind kind;
  bool operator<(const Meeting& other) const {
    return std::tie(receiver, source, tag) < std::tie(other.receiver, other.source, other.tag);
  }
};

struct Tally {
  uint64_t sends = 0;
  uint64_t receives = 0;
};

template <class Belongs>
Tally tally(std::span<const Meeting> meetings, Belongs&& belongs) {
  Tally found;
  for (const Meeting& one : meetings) {
    if (belongs(one)) ++(one.kind == Kind::send ? found.sends : found.receives);
  }
  return found;
}

Tally tally(std::span<const Meeting> meetings) {
  return tally(meetings, [](const Meeting&) { return true; });
}

// Cuts a range sorted by `key` into parts of one key each; `look` gives a Status.
template <class Key, class Look>
Status each_part(std::span<const Meeting> meetings, Key key, Look&& look) {
  while (!meetings.empty()) {
    const uint32_t first = meetings.front().*key;
    const auto end = std::ranges::find_if(meetings, [&](const Meeting& one) { return one.*key != first; });
    const auto length = static_cast<size_t>(end - meetings.begin());
    SPL_TRY(look(meetings.first(length)));
    meetings = meetings.subspan(length);
  }
  return {};
}

// All sends to one receiver, and its receives.
class Receiver {
 public:
  explicit Receiver(std::span<const Meeting> all) : all_(all), rank_(all.front().receiver) {
    const auto of_any = std::ranges::lower_bound(all, any, {}, &Meeting::source);
    from_any_ = all.subspan(static_cast<size_t>(of_any - all.begin()));
    any_of_any_ = tally(from_any_, is_any_tag).receives;
  }

  Status meets() const {
    SPL_TRY(each_part(all_, &Meeting::source, [this](auto part) { return meets_source(part); }));
    if (!from_any_.empty()) SPL_TRY(meets_tags());
    const Tally all = tally(all_);
    if (all.sends == all.receives) return {};
    return fail(Code::invalid, "rank ", rank_, " has ", counted(all.receives, "receive"), ", but ",
                counted(all.sends, "message"), all.sends == 1 ? " is" : " are", " sent to it");
  }

 private:
  static bool is_any_tag(const Meeting& one) { return one.tag == any; }

  // Checks the messages of one source, tag by tag and altogether.
  Status meets_source(std::span<const Meeting> part) const {
    const uint32_t source = part.front().source;
    if (source == any) return {};
    const Tally any_tag = tally(part, is_any_tag);
    SPL_TRY(each_part(part, &Meeting::tag, [&](std::span<const Meeting> one) -> Status {
      const uint32_t tag = one.front().tag;
      if (tag == any) return {};
      const Tally found = tally(one);
      if (found.receives > found.sends + any_tag.sends) {
        return fail(Code::invalid, "rank ", rank_, " has ", counted(found.receives, "receive"), " from rank ", source,
                    " with tag ", tag, ", but rank ", source, " sends it ",
                    counted(found.sends + any_tag.sends, "message"), " that they can take");
      }
      const auto [first, last] = std::ranges::equal_range(from_any_, tag, {}, &Meeting::tag);
      const uint64_t takers = found.receives + any_tag.receives + static_cast<uint64_t>(last - first) + any_of_any_;
      if (found.sends > takers) {
        return fail(Code::invalid, "rank ", source, " sends rank ", rank_, " ", counted(found.sends, "message"),
                    " with tag ", tag, ", but rank ", rank_, " has ", counted(takers, "receive"),
                    " that can take them");
      }
      return {};
    }));
    const Tally whole = tally(part);
    if (whole.receives > whole.sends) {
      return fail(Code::invalid, "rank ", rank_, " has ", counted(whole.receives, "receive"), " from rank ", source,
                  ", but rank ", source, " sends it ", counted(whole.sends, "message"));
    }
    if (whole.sends > whole.receives + from_any_.size()) {
      return fail(Code::invalid, "rank ", source, " sends rank ", rank_, " ", counted(whole.sends, "message"),
                  ", but rank ", rank_, " has ", counted(whole.receives + from_any_.size(), "receive"),
                  " that can take them");
    }
    return {};
  }

  // Checks the messages of all sources together, tag by tag.
  Status meets_tags() const {
    const uint64_t any_tag_sends = tally(all_, is_any_tag).sends;
    std::vector<Meeting> by_tag(all_.begin(), all_.end());
    std::ranges::sort(by_tag, {}, &Meeting::tag);
    return each_part(by_tag, &Meeting::tag, [&](std::span<const Meeting> one) -> Status {
      const Tally found = tally(one);
      if (one.front().tag == any || found.receives <= found.sends + any_tag_sends) return {};
      return fail(Code::invalid, "rank ", rank_, " has ", counted(found.receives, "receive"), " with tag ",
                  one.front().tag, ", but ", counted(found.sends + any_tag_sends, "message"), " that they can take ",
                  found.sends + any_tag_sends == 1 ? "is" : "are", " sent to it");
    });
  }

  std::span<const Meeting> all_;
  uint32_t rank_;
  std::span<const Meeting> from_any_;  // receives
  uint64_t any_of_any_ = 0;  // receives with any tag among them
};

// The sends and receives of all ranks. Most schedules need one pass: for each receiver, the sum of hashes of the sends
// less that of the receives is 0 if both are the same in sources, tags and numbers. The other receivers are examined in
// passes that keep no more than `kept` of their operations.
class Matching {
 public:
  Matching(const Schedule& schedule, Looks& looks) : schedule_(schedule), looks_(looks), receivers_(schedule.ranks()) {}

  Status meets() {
    SPL_TRY(each([this](const Meeting& one, uint32_t times) {
      Balance& balance = receivers_[one.receiver];
      balance.sum += times * (one.kind == Kind::send ? hash_of(one) : -hash_of(one));
      balance.meetings += times;
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
    uint64_t meetings = 0;
  };
  static constexpr uint64_t kept = uint64_t{1} << 22;

  static uint64_t hash_of(const Meeting& one) {
    uint64_t hash = (uint64_t{one.source} << 32 | one.tag) + 0x9e37'79b9'7f4a'7c15;
    hash = (hash ^ hash >> 30) * 0xbf58'476d'1ce4'e5b9;
    hash = (hash ^ hash >> 27) * 0x94d0'49bb'1331'11eb;
    return hash ^ hash >> 31;
  }

  // Calls `take` for each operation of a pass, with the number of passes.
  template <class Take>
  Status each(Take&& take) const {
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      const Program& program = schedule_.program(rank);
      SPL_TRY(looks_.did(program.operations.size()));
      for (const Operation& operation : program.operations) {
        const Shape& shape = schedule_.shape(operation);
        if (shape.kind != Kind::send && shape.kind != Kind::receive) continue;
        const uint32_t peer = schedule_.peer(rank, operation);
        const bool is_send = shape.kind == Kind::send;
        take(Meeting{is_send ? peer : rank, is_send ? rank : peer, shape.tag, shape.kind}, program.times);
      }
    }
    return {};
  }

  [[nodiscard]] uint32_t last_of_pass(uint32_t first) const {
    uint64_t sum = 0;
    uint32_t last = first;
    for (; last < schedule_.ranks(); ++last) {
      if (receivers_[last].sum == 0) continue;
      if (sum > 0 && sum + receivers_[last].meetings > kept) break;
      sum += receivers_[last].meetings;
    }
    return last;
  }

  Status pass(uint32_t first, uint32_t last) const {
    const auto is_looked_at = [](const Balance& balance) { return balance.sum != 0; };
    if (std::none_of(receivers_.begin() + first, receivers_.begin() + last, is_looked_at)) return {};
    std::vector<Meeting> found;
    SPL_TRY(each([&](const Meeting& one, uint32_t times) {
      if (one.receiver < first || one.receiver >= last || receivers_[one.receiver].sum == 0) return;
      found.insert(found.end(), times, one);
    }));
    std::sort(found.begin(), found.end());
    return each_part(found, &Meeting::receiver, [](auto part) { return Receiver(part).meets(); });
  }

  const Schedule& schedule_;
  Looks& looks_;
  std::vector<Balance> receivers_;
};

// Checks the counts of `arrived`s: for each rank and tag, the largest count that one waits for, and how many come.
class Arrivals {
 public:
  explicit Arrivals(const Schedule& schedule) : schedule_(schedule) {}

  Status are_enough() {
    if (std::ranges::none_of(schedule_.shapes(), [](const Shape& one) { return one.kind == Kind::arrived; })) return {};
    each([](Kind kind) { return kind == Kind::arrived; },
         [this](uint32_t rank, uint32_t, uint32_t number) {
           const Operation& operation = schedule_.program(rank).operations[number];
           const Shape& shape = schedule_.shape(operation);
           Counter& counter = counters_[{rank, shape.tag}];
           if (shape.size > counter.wanted) counter = {shape.size, 0, number};
         });
    each(is_one_sided, [this](uint32_t rank, uint32_t peer, uint32_t number) {
      const Program& program = schedule_.program(rank);
      const auto found = counters_.find({peer, schedule_.shape(program.operations[number]).tag});
      if (found != counters_.end()) found->second.there += program.times;
    });
    for (const auto& [key, counter] : counters_) {
      if (counter.there >= counter.wanted) continue;
      return fail(Code::invalid, "rank ", key.first, ": operation ", counter.number, " (",
                  schedule_.describe(key.first, schedule_.program(key.first).operations[counter.number]),
                  ") waits for ", counter.wanted, ", but ", counter.there, " one-sided operations have rank ",
                  key.first, " and tag ", key.second, " as their target");
    }
    return {};
  }

 private:
  struct Counter {
    uint64_t wanted = 0;
    uint64_t there = 0;
    uint32_t number = 0;  // the operation that wants the most
  };

  template <class Chosen, class Take>
  void each(Chosen&& is_chosen, Take&& take) const {
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      const Program& program = schedule_.program(rank);
      for (uint32_t number = 0; number < program.operations.size(); ++number) {
        const Operation& operation = program.operations[number];
        if (is_chosen(schedule_.shape(operation).kind)) take(rank, schedule_.peer(rank, operation), number);
      }
    }
  }

  const Schedule& schedule_;
  std::map<std::pair<uint32_t, uint32_t>, Counter> counters_;  // by rank and tag
};

}  // namespace

Status check(const Schedule& schedule, const Watch& watch) {
  Looks looks(watch, "the check of the schedule");
  std::vector<bool> seen(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const uint32_t program = schedule.number_of_program(rank);
    if (seen[program]) continue;
    seen[program] = true;
    SPL_TRY(looks.did(schedule.program(rank).operations.size()));
    SPL_TRY(without_cycle(schedule, rank));
    SPL_TRY(peers_are_ranks(schedule, rank));
  }
  SPL_TRY(Matching(schedule, looks).meets());
  return Arrivals(schedule).are_enough();
}

Count count(const Schedule& schedule, const Watch& watch) {
  Looks looks(watch, "the count");
  std::vector<uint64_t> users(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) ++users[schedule.number_of_program(rank)];
  Count found;
  std::vector<bool> is_used(schedule.shapes().size());
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i] == 0) continue;
    const Program& program = schedule.programs()[i];
    if (!looks.did(program.operations.size())) break;
    const auto to_next = [&](Edge edge) { return edge.to() >= program.operations.size(); };
    found.edges += users[i] * program.times * program.edges.size();
    if (program.times > 1)
      found.edges -= users[i] * static_cast<uint64_t>(std::ranges::count_if(program.edges, to_next));
    users[i] *= program.times;
    for (const Operation& operation : program.operations) {
      const Shape& shape = schedule.shape(operation);
      is_used[operation.shape] = true;
      switch (shape.kind) {
        case Kind::send:
          found.sends += users[i];
          found.sent_bytes += users[i] * shape.size;
          break;
        case Kind::receive: found.receives += users[i]; break;
        case Kind::compute: found.computations += users[i]; break;
        case Kind::put: found.puts += users[i]; break;
        case Kind::get: found.gets += users[i]; break;
        case Kind::atomic:
        case Kind::fetch: found.atomics += users[i]; break;
        case Kind::arrived: found.arrivals += users[i]; break;
      }
      if (is_one_sided(shape.kind)) found.one_sided_bytes += users[i] * shape.size;
      const Ends ends = schedule.ends(operation);
      found.layout_ends += users[i] * ((ends.local != contiguous) + (ends.remote != contiguous));
    }
  }
  std::set<uint32_t> cpus;
  std::set<uint32_t> nics;
  for (size_t shape = 0; shape < is_used.size(); ++shape) {
    if (!is_used[shape]) continue;
    cpus.insert(schedule.shapes()[shape].cpu);
    nics.insert(schedule.shapes()[shape].nic);
  }
  found.cpus = static_cast<uint32_t>(cpus.size());
  found.nics = static_cast<uint32_t>(nics.size());
  if (!cpus.empty()) found.cpu_largest = *cpus.rbegin();
  if (!nics.empty()) found.nic_largest = *nics.rbegin();
  return found;
}

}  // namespace spinloom::schedule
