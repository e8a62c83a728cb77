// Collective calls that the NICs carry on: each rank has an engine (Endpoint), and teams of ranks start their
// schedules, once or again and again, several at a time and one rank ahead of others. Where limits are small, cached
// schedules leave the NICs for others, and calls that go beyond them are refused. When a rank dies, schedules that need
// it fail, at every rank that hears of it; the broadcast for such cases reaches all others. Where NICs keep few
// unexpected headers, every start ends well or with an error that names them.
#include <algorithm>
#include <limits>
#include <numeric>

#include "portals/collective/offloaded.hpp"
#include "torture/exchange.hpp"
#include "torture/team_call.hpp"

namespace spinloom::torture {
namespace {

using collective::Endpoint;
using collective::NicResources;
using collective::Offloaded;
using collective::VertexKind;

// One member's part of a schedule.
struct Share {
  Region send;
  Region receive;
  std::unique_ptr<Offloaded> offloaded;
  uint32_t started = 0;
  uint32_t ended = 0;
  bool under_way = false;
};

struct Schedule {
  TeamCall call;
  bool cached = false;
  bool beyond_limits = false;  // it goes beyond a member's limits, so no member starts it
  std::vector<TeamCall::Memory> initial_memory;  // one for each start: the memory of all members at the beginning
  std::vector<std::vector<Bytes>> results;  // one for each start and member: the memory at the end
  std::vector<Share> shares;  // one for each member
};

struct Group {
  Endpoint::Team team;
  std::vector<Endpoint::Team> teams;  // each member has a team object with counts of its own
  std::vector<Schedule> schedules;
  std::vector<uint32_t> order;  // the order in which all members start schedules
  std::vector<size_t> next;  // one for each member: the index in `order` of the schedule that it starts next
};

class Collective final : public Exchange {
 public:
  Collective(World& world, uint32_t id) : Exchange(world, id, Work::collective) {}

  Status begin() override {
    for (uint32_t rank = 0; rank < world_.config.ranks; ++rank) {
      if (!host(rank).dead) ranks_.push_back(rank);
    }
    engines_.resize(world_.config.ranks);
    options_ = any_options();
    draw_groups();
    SPL_TRY(open());
    if (world_.config.limited != 0) {  // again, with limits near what schedules need
      const NicResources largest_needs = largest();
      SPL_TRY(close_all());
      is_closed_ = false;
      const auto limit = [&](uint32_t needed) {
        if (random().chance(1, 3)) return std::numeric_limits<uint32_t>::max();
        const auto limited = static_cast<uint32_t>(needed + random().below(6));
        return random().chance(1, 3) ? limited / 2 : limited;
      };
      options_.limits = {limit(largest_needs.counters), limit(largest_needs.triggered), limit(largest_needs.entries)};
      SPL_TRY(open());
      SPL_TRY(refuse_what_is_beyond());
    }
    return {};
  }

  Status poll() override {
    if (random().chance(1, 2)) {
      const uint32_t rank = ranks_[random().below(ranks_.size())];
      if (!host(rank).dead) SPL_TRY(advance(rank));
    }
    if (++idle_polls_ < idle_polls_max && !all_ended()) return {};
    if (!all_ended()) {
      if (!world_.links->losses_told()) {
        idle_polls_ = 0;
        return {};
      }
      SPL_TRY(check_stuck());
    }
    done_ = true;
    // If a member has died, packets for failed schedules may still come: finish() closes the schedules then.
    return someone_died() ? Status{} : close_all();
  }
  bool done() const override { return done_; }

  Status finish() override {
    if (!is_closed_) SPL_TRY(close_all());
    for (Group& group : groups_) {
      for (Schedule& schedule : group.schedules) {
        for (uint32_t member = 0; member < schedule.shares.size(); ++member) {
          if (host(group.team.ranks[member]).dead) continue;
          SPL_TRY(
              schedule.shares[member].send.check(label(group, schedule, member) + ", what is sent, after it has left"));
          SPL_TRY(schedule.shares[member].receive.check(label(group, schedule, member) + ", after it has left"));
        }
      }
    }
    return {};
  }

  // The engines of dead ranks are still open, and closing one lets bytes land that are under way.
  void close_engines() override {
    for (Group& group : groups_) {
      for (Schedule& schedule : group.schedules) {
        for (Share& share : schedule.shares) share.offloaded.reset();
      }
    }
    engines_.clear();
  }

 private:
  // After so many polls without a start or an end, nothing more happens.
  static constexpr uint64_t idle_polls_max = 15'000;

  [[nodiscard]] std::string label(const Group& group, const Schedule& schedule, uint32_t member) const {
    return text("rank ", group.team.ranks[member], ", team ", group.team.id, ", ", schedule.call.name(),
                schedule.cached ? ", cached" : "", ", start ", schedule.shares[member].started);
  }

  collective::EndpointOptions any_options() {
    collective::EndpointOptions options;
    options.portal = nic::PortalIndex{World::engine_portal};
    options.eager_bytes = random().chance(1, 2) ? 64 : 1024;
    options.early_messages = 2 * static_cast<uint32_t>(1 + random().below(4));
    options.initiator = random().chance(1, 2) ? collective::Initiator::receiver : collective::Initiator::sender;
    options.by_cpu = random().chance(1, 5);
    options.ranks = world_.config.ranks;
    options.unexpected_headers = world_.config.unexpected_headers;
    options.atomic_bytes =
        random().chance(1, 2) ? world_.config.payload_bytes : 16 * static_cast<uint32_t>(1 + random().below(4));
    return options;
  }

  void draw_groups() {
    groups_.resize(1 + random().below(2));
    for (uint32_t number = 0; number < groups_.size(); ++number) {
      Group& group = groups_[number];
      group.team.id = id() % 1000 * 8 + number;
      group.team.ranks = ranks_;
      if (number > 0 || random().chance(1, 3)) {
        random().shuffle(group.team.ranks);
        group.team.ranks.resize(2 + random().below(ranks_.size() - 1));
      }
      const auto size = static_cast<uint32_t>(group.team.ranks.size());
      group.schedules.resize(1 + random().below(3));
      uint32_t starts_max = 0;
      std::vector<uint32_t> starts;
      for (Schedule& schedule : group.schedules) {
        schedule.call =
            TeamCall::random(size, {world_.config.size_max, world_.config.dead != 0 && !options_.by_cpu}, random());
        schedule.cached = !schedule.call.outlives_members() && random().chance(2, 3);
        starts.push_back(schedule.cached ? static_cast<uint32_t>(1 + random().below(4)) : 1);
        starts_max = std::max(starts_max, starts.back());
        for (uint32_t start = 0; start < starts.back(); ++start) {
          schedule.initial_memory.push_back(schedule.call.random_memory(random()));
          schedule.results.push_back(schedule.call.results_of(schedule.initial_memory.back()));
        }
        schedule.shares.resize(size);
      }
      for (uint32_t start = 0; start < starts_max; ++start) {
        for (uint32_t index = 0; index < group.schedules.size(); ++index) {
          if (start < starts[index]) group.order.push_back(index);
        }
      }
      group.next.assign(size, 0);
    }
  }

  // Opens the engines and makes all schedules.
  Status open() {
    options_.portal = nic::PortalIndex{World::engine_portal - world_.engines++ % World::engine_portals};
    for (const uint32_t rank : ranks_) {
      SPL_ASSIGN(engines_[rank], Endpoint::open(world_.interface(rank), options_));
    }
    for (Group& group : groups_) {
      group.teams.assign(group.team.ranks.size(), group.team);
      for (uint32_t member = 0; member < group.teams.size(); ++member) {
        Endpoint& engine = *engines_[group.team.ranks[member]];
        SPL_TRY(engine.join(group.team));
        for (Schedule& schedule : group.schedules) {
          Share& share = schedule.shares[member];
          share.send = Region(schedule.call.members[member].send_bytes);
          share.receive = Region(schedule.call.members[member].receive_bytes);
          const collective::Call call = schedule.call.call_of(member, share.send.data(), share.receive.data());
          SPL_ASSIGN(collective::CallGraph made, collective::make_call_graph(call, member, schedule.call.size()));
          SPL_ASSIGN(share.offloaded,
                     engine.make(group.teams[member], std::move(made.graph), schedule.cached, std::move(made.memory)));
        }
      }
    }
    return {};
  }

  // Returns the most that any member's schedule needs of each resource.
  [[nodiscard]] NicResources largest() const {
    NicResources largest_needs;
    for (const Group& group : groups_) {
      for (const Schedule& schedule : group.schedules) {
        for (const Share& share : schedule.shares) {
          const NicResources needed = share.offloaded->resources();
          largest_needs.counters = std::max(largest_needs.counters, needed.counters);
          largest_needs.triggered = std::max(largest_needs.triggered, needed.triggered);
          largest_needs.entries = std::max(largest_needs.entries, needed.entries);
        }
      }
    }
    return largest_needs;
  }

  Status refuse_what_is_beyond() {
    for (Group& group : groups_) {
      for (Schedule& schedule : group.schedules) {
        for (uint32_t member = 0; member < schedule.shares.size(); ++member) {
          const NicResources needed = schedule.shares[member].offloaded->resources();
          const auto& limits = options_.limits;
          const bool beyond = needed.counters > limits.counters || needed.triggered > limits.triggered ||
                              needed.entries > limits.entries;
          if (!beyond) continue;
          schedule.beyond_limits = true;
          const Status refused = schedule.shares[member].offloaded->post();
          if (refused || refused.error().code != Code::exhausted) {
            return trouble(label(group, schedule, member) + " goes beyond the limits, and is not refused");
          }
        }
      }
      std::erase_if(group.order, [&group](uint32_t schedule) { return group.schedules[schedule].beyond_limits; });
    }
    return {};
  }

  // Checks the rank's schedules that are under way, and at random starts one more.
  Status advance(uint32_t rank) {
    for (Group& group : groups_) {
      const auto position = std::ranges::find(group.team.ranks, rank);
      if (position == group.team.ranks.end()) continue;
      const auto member = static_cast<uint32_t>(position - group.team.ranks.begin());
      for (Schedule& schedule : group.schedules) {
        if (schedule.shares[member].under_way) SPL_TRY(check_progress(group, schedule, member));
      }
    }
    if (!random().chance(2, 3)) return {};
    // If engines have limits, all ranks start the schedules of all teams in one order.
    Group* chosen = nullptr;
    uint32_t chosen_member = 0;
    for (Group& group : groups_) {
      const auto position = std::ranges::find(group.team.ranks, rank);
      if (position == group.team.ranks.end()) continue;
      const auto member = static_cast<uint32_t>(position - group.team.ranks.begin());
      if (group.next[member] >= group.order.size()) continue;
      const bool is_first =
          chosen == nullptr ||
          (world_.config.limited != 0 ? group.next[member] < chosen->next[chosen_member] : random().chance(1, 2));
      if (!is_first) continue;
      chosen = &group;
      chosen_member = member;
    }
    return chosen == nullptr ? Status{} : start(*chosen, chosen_member);
  }

  Status start(Group& group, uint32_t member) {
    Schedule& schedule = group.schedules[group.order[group.next[member]]];
    Share& share = schedule.shares[member];
    if (share.under_way) return {};
    const TeamCall::Memory& initial_memory = schedule.initial_memory[share.started];
    fill(share.send, initial_memory.send[member]);
    fill(share.receive, initial_memory.receive[member]);
    const Status started = share.offloaded->start();
    if (!started && started.error().code == Code::exhausted && world_.config.limited != 0) return {};
    world_.note(text("start ", label(group, schedule, member)));
    idle_polls_ = 0;
    ++share.started;
    ++group.next[member];
    if (!started) return check_failure(group, schedule, member, started.error());
    share.under_way = true;
    for (const collective::Vertex& operation : share.offloaded->graph().operations) {
      world_.messages += operation.kind == VertexKind::send || operation.kind == VertexKind::fetch;
    }
    return {};
  }
  static void fill(Region& region, const Bytes& bytes) {
    if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), region.data());
    region.expect(0, bytes.data(), bytes.size());
  }

  Status check_progress(Group& group, Schedule& schedule, uint32_t member) {
    Share& share = schedule.shares[member];
    const Result<bool> ended = share.offloaded->test(random().chance(1, 8));
    if (!ended) {
      share.under_way = false;
      return check_failure(group, schedule, member, ended.error());
    }
    if (!*ended) return {};
    world_.note(text("end ", label(group, schedule, member)));
    idle_polls_ = 0;
    share.under_way = false;
    share.ended = share.started;
    if (schedule.call.call.operation == collective::Operation::barrier) {
      const auto is_late = [&share](const Share& other) { return other.started < share.started; };
      if (std::ranges::any_of(schedule.shares, is_late)) {
        return trouble(label(group, schedule, member) + " ends before all have come to it");
      }
    }
    for (const collective::Vertex& operation : share.offloaded->graph().operations) {
      const bool is_long =
          operation.kind == VertexKind::expose ||
          (operation.kind == VertexKind::send && !operation.early && !operation.name.is_signal && !operation.optional);
      if (is_long && schedule.shares[operation.peer].started < share.started) {
        return trouble(label(group, schedule, member) + " has sent a long message to a rank that has not started");
      }
    }
    const Bytes& wanted = schedule.results[share.started - 1][member];
    share.receive.expect(0, wanted.data(), wanted.size());
    return check_memory(group, schedule, member);
  }
  Status check_memory(const Group& group, const Schedule& schedule, uint32_t member) const {
    SPL_TRY(schedule.shares[member].send.check(label(group, schedule, member) + ", what is sent"));
    return schedule.shares[member].receive.check(label(group, schedule, member));
  }

  // Checks that the failure had to be expected; after it the member starts nothing more in this team.
  Status check_failure(Group& group, Schedule& schedule, uint32_t member, const Error& error) {
    idle_polls_ = 0;
    world_.note(text("failed ", label(group, schedule, member), ": ", error.message));
    const bool names_headers = error.message.find("unexpected headers") != std::string::npos;
    if (has_few_headers() && names_headers) {
      ++count_of(world_.faults, Fault::flow_control);
      world_.engine_overrun = true;
      group.next[member] = group.order.size();
      return {};
    }
    const bool has_dead = std::ranges::any_of(group.team.ranks, [this](uint32_t rank) { return host(rank).dead; });
    if (!has_dead) return trouble(text(label(group, schedule, member), ": ", error.message));
    if (schedule.call.outlives_members() && !host(group.team.ranks[schedule.call.call.root]).dead) {
      return trouble(text(label(group, schedule, member), ", which outlives others than its root: ", error.message));
    }
    group.next[member] = group.order.size();
    return {};
  }

  [[nodiscard]] bool has_few_headers() const { return world_.config.unexpected_headers < Config{}.unexpected_headers; }
  [[nodiscard]] bool someone_died() const {
    return std::ranges::any_of(ranks_, [this](uint32_t rank) { return world_.hosts[rank].dead; });
  }
  [[nodiscard]] bool all_ended() const {
    for (const Group& group : groups_) {
      for (uint32_t member = 0; member < group.next.size(); ++member) {
        if (world_.hosts[group.team.ranks[member]].dead) continue;
        if (group.next[member] < group.order.size()) return false;
        for (const Schedule& schedule : group.schedules) {
          if (schedule.shares[member].under_way) return false;
        }
      }
    }
    return true;
  }

  // Called when nothing has happened for long. A schedule may hang only if it waits for a living member that has given
  // up itself; the fault-tolerant broadcast, if its root has died or a living member has not started it.
  Status check_stuck() {
    for (Group& group : groups_) {
      for (Schedule& schedule : group.schedules) {
        for (uint32_t member = 0; member < schedule.shares.size(); ++member) {
          const Share& share = schedule.shares[member];
          if (host(group.team.ranks[member]).dead) continue;
          const bool is_next =
              group.next[member] < group.order.size() && &schedule == &group.schedules[group.order[group.next[member]]];
          if (is_next && !share.under_way) return trouble(text(label(group, schedule, member), " never begins"));
          if (!share.under_way) continue;
          if (has_few_headers() || !is_let_down(group, schedule, share) || must_know(group, schedule, share)) {
            return trouble(text(label(group, schedule, member), " never ends: ", state_of(share)));
          }
        }
      }
    }
    return {};
  }
  [[nodiscard]] bool is_let_down(const Group& group, const Schedule& schedule, const Share& share) const {
    if (schedule.call.outlives_members()) return !all_have_started(group, schedule);
    bool gave_up = false;
    for (uint32_t peer = 0; peer < schedule.shares.size(); ++peer) {
      const bool is_dead = world_.hosts[group.team.ranks[peer]].dead;
      gave_up =
          gave_up || (!is_dead && schedule.shares[peer].ended < share.started && !schedule.shares[peer].under_way);
      gave_up = gave_up || (!is_dead && group.next[peer] < group.order.size());
    }
    return gave_up;
  }
  [[nodiscard]] bool all_have_started(const Group& group, const Schedule& schedule) const {
    for (uint32_t peer = 0; peer < schedule.shares.size(); ++peer) {
      const bool is_dead = world_.hosts[group.team.ranks[peer]].dead;
      if (schedule.shares[peer].started == 0 && (!is_dead || peer == schedule.call.call.root)) return false;
      if (is_dead && peer == schedule.call.call.root) return false;  // it may have died before the first message
    }
    return true;
  }
  // True if the share has posted a receive for data that a dead member has never sent.
  [[nodiscard]] bool must_know(const Group& group, const Schedule& schedule, const Share& share) const {
    if (!share.under_way || schedule.call.outlives_members()) return false;
    const auto& operations = share.offloaded->graph().operations;
    for (uint32_t given = 0; given < share.offloaded->original_count(); ++given) {
      const collective::Vertex& operation = operations[share.offloaded->graph().number_of[given]];
      if (operation.kind != VertexKind::receive || share.offloaded->state(given) != Offloaded::State::active) continue;
      const bool is_dead = world_.hosts[group.team.ranks[operation.peer]].dead;
      if (is_dead && schedule.shares[operation.peer].started < share.started) return true;
    }
    return false;
  }
  static std::string state_of(const Share& share) {
    std::string states_text;
    for (uint32_t given = 0; given < share.offloaded->original_count(); ++given) {
      constexpr const char* states[] = {"created", "posted", "active", "executed"};
      const uint32_t number = share.offloaded->graph().number_of[given];
      states_text += text(" ", given, " (peer ", share.offloaded->graph().operations[number].peer, ") ",
                          states[static_cast<size_t>(share.offloaded->state(given))]);
    }
    return states_text;
  }

  // Frees all schedules and engines of living ranks. Their memory is the program's again.
  Status close_all() {
    is_closed_ = true;
    for (Group& group : groups_) {
      for (Schedule& schedule : group.schedules) {
        for (uint32_t member = 0; member < schedule.shares.size(); ++member) {
          Share& share = schedule.shares[member];
          if (host(group.team.ranks[member]).dead) continue;
          share.offloaded.reset();
          share.under_way = false;
          share.send.spoil();
          share.receive.spoil();
        }
      }
    }
    for (const uint32_t rank : ranks_) {
      if (host(rank).dead || engines_[rank] == nullptr) continue;
      const NicResources& in_use = engines_[rank]->resources_in_use();
      if (in_use.descriptors + in_use.entries + in_use.triggered + in_use.counters + in_use.memory_bytes > 0) {
        return trouble(text("rank ", rank, ": an engine without schedules has ", in_use.descriptors, " descriptors, ",
                            in_use.entries, " entries, ", in_use.triggered, " triggered operations and ",
                            in_use.counters, " counters in use"));
      }
      SPL_TRY(engines_[rank]->close());
      engines_[rank].reset();
    }
    return {};
  }

  std::vector<uint32_t> ranks_;
  collective::EndpointOptions options_;
  std::vector<std::unique_ptr<Endpoint>> engines_;  // one for each rank; they outlive the schedules
  std::vector<Group> groups_;
  uint64_t idle_polls_ = 0;
  bool done_ = false;
  bool is_closed_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_collective(World& world, uint32_t id) { return std::make_unique<Collective>(world, id); }

}  // namespace spinloom::torture
