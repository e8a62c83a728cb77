// The abstract machine on NICs of the loopback driver: random schedules of users against a plain reference, teams side
// by side, ranks that run ahead, limits so small that cached schedules replace each other.
#include "portals/collective/testing/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/testing/seeds.hpp"
#include "portals/collective/offloaded.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

using test::Cell;
using test::Elements;
using test::Script;
using test::ScriptOperation;

constexpr uint64_t window_bytes = test::window_elements * sizeof(int32_t);

int32_t input_of(uint64_t start, uint32_t rank, size_t cell, size_t element) {
  return static_cast<int32_t>(start * 1'000'003 + rank * 10'007 + cell * 101 + element + 1);
}

struct Scripted {
  Script script;
  bool cached = false;
  uint64_t starts = 1;
};

struct Group {
  uint32_t id = 0;
  std::vector<uint32_t> ranks;
  std::vector<Scripted> schedules;
  // Schedules in the order in which each member starts them.
  [[nodiscard]] std::vector<uint32_t> order() const {
    std::vector<uint32_t> made;
    uint64_t most = 0;
    for (const Scripted& one : schedules) most = std::max(most, one.starts);
    for (uint64_t start = 0; start < most; ++start) {
      for (uint32_t one = 0; one < schedules.size(); ++one) {
        if (start < schedules[one].starts) made.push_back(one);
      }
    }
    return made;
  }
};

// A schedule at a rank.
struct Played {
  const Scripted* of = nullptr;
  uint32_t member = 0;
  std::vector<Cell> cells;
  Elements windows;
  Elements sums;
  nic::EntryId window_entry;
  nic::EntryId sum_entry;
  std::vector<uint32_t> dependent;  // operations that wait for enable(), by number
  std::vector<size_t> written;  // the cell that each operation alone writes, or none
  std::vector<bool> enabled;
  std::unique_ptr<Offloaded> offloaded;
  uint64_t started = 0;
  bool under_way = false;
};
constexpr size_t no_cell = SIZE_MAX;

struct Mate {
  Endpoint::Team team;
  std::vector<std::unique_ptr<Played>> parts;
  std::vector<uint32_t> order;
  size_t at = 0;  // a place in the order
};

struct Machine {
  std::unique_ptr<portals::Interface> interface;
  std::unique_ptr<Endpoint> endpoint;
  nic::QueueId queue;
  nic::PortalIndex windows;
  std::map<uint32_t, Mate> members;  // the key is the group
};

uint64_t bits_of(uint32_t group, uint32_t schedule, bool sums) {
  return uint64_t{group} << 32 | schedule << 1 | (sums ? 1 : 0);
}

class Machines {
 public:
  Machines(uint32_t ranks, const std::vector<Group>& groups, const EndpointOptions& options, uint64_t seed)
      : groups_(groups), random_(seed, "machines") {
    testbed::LoopbackOptions driver;
    driver.ranks = ranks;
    driver.racy_seed = seed;
    driver.headers_in_order = true;
    auto made = testbed::Loopback::create(driver);
    EXPECT_TRUE(made.ok());
    loopback_ = std::move(*made);
    hosts_.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) open(rank, options);
  }
  ~Machines() {
    for (Machine& host : hosts_) host.members.clear();
    for (Machine& host : hosts_) {
      const Status closed = host.endpoint->close();
      EXPECT_TRUE(closed.ok()) << closed.error().message;
      EXPECT_EQ(host.endpoint->resources_in_use().triggered, 0u);
      EXPECT_TRUE(host.interface->pt_alloc(host.queue, {.index = EndpointOptions{}.portal}).ok())
          << "is not free again";
    }
  }

  // Returns the largest number of each resource that a schedule of a rank takes.
  [[nodiscard]] NicResources largest() const {
    NicResources most;
    for (const Machine& host : hosts_) {
      for (const auto& [group, member] : host.members) {
        for (const auto& part : member.parts) {
          const NicResources one = part->offloaded->resources();
          most.counters = std::max(most.counters, one.counters);
          most.triggered = std::max(most.triggered, one.triggered);
          most.entries = std::max(most.entries, one.entries);
        }
      }
    }
    return most;
  }
  [[nodiscard]] uint64_t early() const {
    uint64_t sum = 0;
    for (const Machine& host : hosts_) sum += host.endpoint->copied_messages();
    return sum;
  }
  [[nodiscard]] uint64_t replaced() const {
    uint64_t sum = 0;
    for (const Machine& host : hosts_) sum += host.endpoint->replaced_schedules();
    return sum;
  }

  // `in_one_order`: all ranks start the schedules of all teams in one order, as they must where limits are small.
  void play(bool in_one_order) {
    in_one_order_ = in_one_order;
    // Some ranks are slow, so that others run ahead.
    std::vector<uint64_t> pace(hosts_.size());
    for (uint64_t& one : pace) one = random_.chance(1, 3) ? 1 : 4;
    for (uint64_t rounds = 0; !all_done(); ++rounds) {
      ASSERT_LT(rounds, 60'000u) << "never ends: " << open();
      for (uint32_t rank = 0; rank < hosts_.size(); ++rank) {
        if (!random_.chance(pace[rank], 4)) continue;
        go_on(rank);
        if (testing::Test::HasFatalFailure()) return;
      }
      for (uint64_t steps = random_.below(30); steps > 0; --steps) loopback_->step();
    }
    ASSERT_TRUE(loopback_->run().ok());
    for (Machine& host : hosts_) check_places(host);
  }

 private:
  // Lists the schedules and operations that have not ended, for reports.
  [[nodiscard]] std::string open() const {
    std::string said;
    for (uint32_t rank = 0; rank < hosts_.size(); ++rank) {
      for (const auto& [group, member] : hosts_[rank].members) {
        said += text("\nrank ", rank, " team ", group, ": ", member.at, " of ", member.order.size(), " starts;");
        for (const auto& part : member.parts) {
          if (!part->under_way) continue;
          said += text(" under way: start ", part->started, (part->of->cached ? " cached" : ""), ", in it:");
          for (uint32_t one = 0; one < part->offloaded->original_count(); ++one) {
            if (part->offloaded->state(one) != Offloaded::State::executed) said += text(" ", one);
          }
        }
      }
      said += text(" ", loopback_->nic(rank).describe_waiting());
    }
    return said;
  }

  void open(uint32_t rank, const EndpointOptions& options) {
    Machine& host = hosts_[rank];
    host.interface = std::make_unique<portals::Interface>(loopback_->port(rank));
    auto endpoint = Endpoint::open(*host.interface, options);
    ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
    host.endpoint = std::move(*endpoint);
    auto queue = host.interface->eq_alloc(64);
    ASSERT_TRUE(queue.ok());
    host.queue = *queue;
    auto windows = host.interface->pt_alloc(*queue, {.index = {7}});
    ASSERT_TRUE(windows.ok());
    host.windows = *windows;
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      const auto found = std::ranges::find(groups_[group].ranks, rank);
      if (found == groups_[group].ranks.end()) continue;
      Mate& member = host.members[group];
      member.team.id = groups_[group].id;
      member.team.ranks = groups_[group].ranks;
      member.order = groups_[group].order();
      for (uint32_t one = 0; one < groups_[group].schedules.size(); ++one) {
        member.parts.push_back(
            played_of(host, group, one, static_cast<uint32_t>(found - groups_[group].ranks.begin())));
      }
    }
  }

  nic::EntryId append(Machine& host, Elements& memory, uint64_t bits) {
    nic::Entry entry;
    entry.start = reinterpret_cast<uint8_t*>(memory.data());
    entry.length = memory.size() * sizeof(int32_t);
    entry.match_bits = bits;
    entry.options.op_get = true;
    entry.options.event_comm_disable = true;
    auto appended = host.interface->me_append(host.windows, entry);
    EXPECT_TRUE(appended.ok());
    return *appended;
  }

  std::unique_ptr<Played> played_of(Machine& host, uint32_t group, uint32_t schedule, uint32_t member) {
    auto part = std::make_unique<Played>();
    const Scripted& of = groups_[group].schedules[schedule];
    part->of = &of;
    part->member = member;
    for (const size_t count : of.script.cells[member]) part->cells.emplace_back(count, 1 + random_.below(3), random_);
    part->windows.assign(of.script.windows[member] * test::window_elements + 1, 0);
    part->sums.assign(of.script.sums[member] * test::window_elements + 1, 0);
    part->window_entry = append(host, part->windows, bits_of(group, schedule, false));
    part->sum_entry = append(host, part->sums, bits_of(group, schedule, true));
    Graph graph;
    std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t> numbers;
    for (const ScriptOperation& one : of.script.operations) {
      if (one.rank == member) graph.operations.push_back(vertex_of(one, *part, group, schedule, numbers));
    }
    auto made = host.endpoint->make(host.members[group].team, std::move(graph), of.cached);
    EXPECT_TRUE(made.ok()) << made.error().message;
    part->offloaded = std::move(*made);
    return part;
  }

  Vertex vertex_of(const ScriptOperation& one, Played& part, uint32_t group, uint32_t schedule,
                   std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t>& numbers) {
    Vertex made{.kind = one.kind, .peer = one.peer};
    const bool is_message = one.kind == VertexKind::send || one.kind == VertexKind::receive;
    const bool reads = one.kind != VertexKind::receive && one.kind != VertexKind::get;
    const bool writes = one.kind != VertexKind::send && one.kind != VertexKind::put && one.kind != VertexKind::atomic;
    if (is_message) {
      uint32_t& number = numbers[{one.peer, one.tag, one.kind == VertexKind::send}];
      made.name.message = one.tag * MessageName::number_count + number++;
    }
    if (reads && one.any_from.empty()) made.from = part.cells[one.from].pieces();
    for (const size_t cell : one.any_from) {
      for (const nic::IovecElement& piece : part.cells[cell].pieces()) made.from.push_back(piece);
    }
    if (writes) made.to = part.cells[one.to].pieces();
    made.op = nic::AtomicOperation::sum;
    made.type = nic::Datatype::int32;
    made.target = {hosts_[0].windows, bits_of(group, schedule, one.kind == VertexKind::atomic),
                   one.window * window_bytes};
    made.cpu_dependent = one.cpu_dependent;
    made.all = one.all;
    made.any = one.any;
    if (one.cpu_dependent) part.dependent.push_back(one.number);
    const bool alone = writes && one.kind != VertexKind::combine && part.cells[one.to].count() > 0;
    part.written.push_back(alone ? one.to : no_cell);
    return made;
  }

  [[nodiscard]] bool all_done() const {
    for (const Machine& host : hosts_) {
      for (const auto& [group, member] : host.members) {
        if (member.at < member.order.size()) return false;
        for (const auto& part : member.parts) {
          if (part->under_way) return false;
        }
      }
    }
    return true;
  }

  void go_on(uint32_t rank) {
    Machine& host = hosts_[rank];
    for (auto& [group, member] : host.members) {
      for (const auto& part : member.parts) {
        if (!part->under_way) continue;
        if (random_.chance(1, 2)) toggle(*part);
        if (testing::Test::HasFatalFailure()) return;
        const auto ended = part->offloaded->test();
        ASSERT_TRUE(ended.ok()) << "rank " << rank << ": " << ended.error().message;
        if (*ended) check(*part);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    // The team that is farthest behind, or any.
    std::vector<Mate*> all;
    for (auto& [group, member] : host.members) {
      if (member.at < member.order.size()) all.push_back(&member);
    }
    if (all.empty()) return;
    Mate* chosen = all[random_.below(all.size())];
    if (in_one_order_) {
      for (Mate* one : all) {
        if (one->at < chosen->at) chosen = one;
      }
      // The first group of those that are as far.
      chosen = *std::ranges::find_if(all, [&](const Mate* one) { return one->at == chosen->at; });
    }
    begin(*chosen);
  }

  void begin(Mate& member) {
    Played& part = *member.parts[member.order[member.at]];
    if (part.under_way) return;
    const Script& script = part.of->script;
    for (size_t cell = 0; cell < part.cells.size(); ++cell) {
      part.cells[cell].spoil();
      if (cell >= script.inputs[part.member]) continue;
      Elements with(part.cells[cell].count());
      for (size_t i = 0; i < with.size(); ++i) with[i] = input_of(part.started, part.member, cell, i);
      part.cells[cell].fill(with);
    }
    if (part.started == 0) {
      for (uint32_t one = 0; one < part.offloaded->original_count(); ++one) {
        ASSERT_LE(part.offloaded->state(one), Offloaded::State::posted);
      }
    }
    if (random_.chance(1, 3)) {
      const Status posted = part.offloaded->post();
      if (!posted && posted.error().code == Code::exhausted) return;
      ASSERT_TRUE(posted.ok()) << posted.error().message;
    }
    const Status started = part.offloaded->start();
    if (!started && started.error().code == Code::exhausted && in_one_order_) return;  // again, when others have ended
    ASSERT_TRUE(started.ok()) << started.error().message;
    part.under_way = true;
    part.enabled.assign(part.offloaded->original_count(), false);
    ++part.started;
    ++member.at;
  }

  // Lets a CPU-dependent operation go, or holds it back.
  void toggle(Played& part) {
    if (part.dependent.empty()) return;
    const uint32_t number = part.dependent[random_.below(part.dependent.size())];
    if (!part.enabled[number]) {
      ASSERT_NE(part.offloaded->state(number), Offloaded::State::executed) << "operation " << number << " is held";
      if (const size_t cell = part.written[number]; cell != no_cell) {
        ASSERT_EQ(part.cells[cell].read(), Elements(part.cells[cell].count(), test::garbage)) << "has begun";
      }
      const Status enabled = part.offloaded->enable(number);
      ASSERT_TRUE(enabled.ok()) << enabled.error().message;
      part.enabled[number] = true;
    } else if (random_.chance(1, 3)) {
      const auto held = part.offloaded->disable(number);
      ASSERT_TRUE(held.ok()) << held.error().message;
      if (*held) part.enabled[number] = false;
    }
  }

  void check(Played& part) {
    part.under_way = false;
    const Script& script = part.of->script;
    for (const uint32_t number : part.dependent)
      ASSERT_TRUE(part.enabled[number]) << "ended without operation " << number;
    const std::vector<Elements> wanted = script.play(part.started - 1, input_of)[part.member];
    for (size_t cell = 0; cell < part.cells.size(); ++cell) {
      ASSERT_TRUE(part.cells[cell].guards_are_whole()) << "cell " << cell;
    }
    std::vector<bool> certain(part.cells.size(), true);
    for (const ScriptOperation& one : script.operations) {
      if (one.rank != part.member || one.any_from.empty()) continue;
      certain[one.to] = false;
      const Elements found = part.cells[one.to].read();
      size_t at = 0;
      bool one_is_there = false;
      for (const size_t cell : one.any_from) {
        const size_t count = part.cells[cell].count();
        one_is_there = one_is_there || std::equal(found.begin() + static_cast<ptrdiff_t>(at),
                                                  found.begin() + static_cast<ptrdiff_t>(at + count),
                                                  wanted[one.to].begin() + static_cast<ptrdiff_t>(at));
        at += count;
      }
      ASSERT_TRUE(one_is_there) << "operation " << one.number << " began before any of those that it waits for";
    }
    for (size_t cell = 0; cell < part.cells.size(); ++cell) {
      if (!certain[cell]) continue;
      ASSERT_EQ(part.cells[cell].read(), wanted[cell]) << "member " << part.member << ", cell " << cell;
    }
    for (uint32_t one = 0; one < part.offloaded->original_count(); ++one) {
      ASSERT_EQ(part.offloaded->state(one), Offloaded::State::executed);
    }
  }

  // Checks the values that puts and atomics have brought, after the end of all schedules.
  void check_places(Machine& host) {
    for (auto& [group, member] : host.members) {
      for (const auto& part : member.parts) {
        const Script& script = part->of->script;
        Elements windows(part->windows.size(), 0);
        Elements sums(part->sums.size(), 0);
        for (uint64_t start = 0; start < part->of->starts; ++start) {
          const auto played = script.play_places(start, input_of, part->member);
          for (const auto& [at, value] : played.windows) windows[at] = value;
          for (const auto& [at, value] : played.sums) sums[at] += value;
        }
        ASSERT_EQ(part->windows, windows);
        ASSERT_EQ(part->sums, sums);
      }
    }
  }

  const std::vector<Group>& groups_;
  Random random_;
  std::unique_ptr<testbed::Loopback> loopback_;
  std::vector<Machine> hosts_;
  bool in_one_order_ = false;
};

std::vector<Group> any_groups(uint32_t ranks, uint32_t operations, size_t elements_max, Random& random) {
  std::vector<Group> groups(1 + random.below(3));
  for (uint32_t number = 0; number < groups.size(); ++number) {
    Group& group = groups[number];
    group.id = number * 7 + 1;
    group.ranks.resize(ranks);
    std::iota(group.ranks.begin(), group.ranks.end(), 0);
    random.shuffle(group.ranks);
    group.ranks.resize(1 + random.below(ranks));
    for (uint64_t schedules = 1 + random.below(3); schedules > 0; --schedules) {
      Scripted one;
      const auto count = static_cast<uint32_t>(1 + random.below(operations));
      one.script = Script::random(static_cast<uint32_t>(group.ranks.size()), count, elements_max, random);
      one.cached = random.chance(2, 3);
      if (one.cached) one.starts = 1 + random.below(5);
      group.schedules.push_back(std::move(one));
    }
  }
  return groups;
}

EndpointOptions any_options(Random& random) {
  EndpointOptions options;
  options.eager_bytes = random.chance(1, 2) ? 64 : 1024;
  options.early_messages = 2 * static_cast<uint32_t>(1 + random.below(4));
  options.initiator = random.chance(1, 2) ? Initiator::receiver : Initiator::sender;
  options.by_cpu = random.chance(1, 4);
  options.atomic_bytes = random.chance(1, 2) ? 2048 : 4 + 4 * static_cast<uint32_t>(random.below(8));
  return options;
}

TEST(Machine, RandomSchedulesDoWhatTheReferenceDoes) {
  uint64_t early = 0;
  for_seeds(300, [&](Random& random) {
    const auto ranks = static_cast<uint32_t>(1 + random.below(5));
    const std::vector<Group> groups = any_groups(ranks, 60, 700, random);
    Machines machines(ranks, groups, any_options(random), random.next());
    if (!testing::Test::HasFatalFailure()) machines.play(random.chance(1, 4));
    early += machines.early();
  });
  EXPECT_TRUE(std::getenv("SPINLOOM_TEST_SEED") != nullptr || early > 100) << early << " messages came early";
}

TEST(Machine, CachedSchedulesLeaveForOthersWhereLimitsAreSmall) {
  uint64_t replaced = 0;
  for_seeds(200, [&](Random& random) {
    const auto ranks = static_cast<uint32_t>(1 + random.below(4));
    std::vector<Group> groups = any_groups(ranks, 30, 100, random);
    EndpointOptions options = any_options(random);
    const uint64_t seed = random.next();
    const NicResources most = Machines(ranks, groups, options, seed).largest();
    const auto limit = [&](uint32_t least) {
      return random.chance(1, 3) ? UINT32_MAX : least + static_cast<uint32_t>(random.below(5));
    };
    options.limits = {limit(most.counters), limit(most.triggered), limit(most.entries)};
    Machines machines(ranks, groups, options, seed);
    if (!testing::Test::HasFatalFailure()) machines.play(true);
    replaced += machines.replaced();
  });
  EXPECT_TRUE(std::getenv("SPINLOOM_TEST_SEED") != nullptr || replaced > 100) << replaced << " schedules left";
}

}  // namespace
}  // namespace spinloom::collective
