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

using collective::Does;
using collective::Endpoint;
using collective::Offloaded;
using collective::Taken;

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
  std::vector<TeamCall::Memory> begins;  // by start: the memory of all members at the beginning
  std::vector<std::vector<Bytes>> ends;  // by start and member: the memory at the end
  std::vector<Share> shares;  // by member
};

struct Group {
  Endpoint::Team team;
  std::vector<Endpoint::Team> teams;  // by member: each has a team object with counts of its own
  std::vector<Schedule> schedules;
  std::vector<uint32_t> order;  // the order in which all members start schedules
  std::vector<size_t> next;  // by member: the index in `order` of the schedule that it starts next
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
    draw();
    SPL_TRY(open());
    if (world_.config.limited != 0) {  // again, with limits near what schedules need
      const Taken most = largest();
      SPL_TRY(close_all());
      is_closed_ = false;
      const auto limit = [&](uint32_t needed) {
        if (random().chance(1, 3)) return std::numeric_limits<uint32_t>::max();
        const auto limited = static_cast<uint32_t>(needed + random().below(6));
        return random().chance(1, 3) ? limited / 2 : limited;
      };
      options_.limits = {limit(most.counters), limit(most.triggered), limit(most.entries)};
      SPL_TRY(open());
      SPL_TRY(refuse_what_is_beyond());
    }
    return {};
  }

  Status poll() override {
    if (random().chance(1, 2)) {
      const uint32_t rank = ranks_[random().below(ranks_.size())];
      if (!host(rank).dead) SPL_TRY(go_on(rank));
    }
    if (++looks_ < looks_max && !all_ended()) return {};
    if (!all_ended()) {
      if (!world_.links->losses_told()) {
        looks_ = 0;
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
      for (Schedule& one : group.schedules) {
        for (uint32_t member = 0; member < one.shares.size(); ++member) {
          if (host(group.team.ranks[member]).dead) continue;
          SPL_TRY(one.shares[member].send.check(label(group, one, member) + ", what is sent, after it has left"));
          SPL_TRY(one.shares[member].receive.check(label(group, one, member) + ", after it has left"));
        }
      }
    }
    return {};
  }

  // The engines of dead ranks are still open, and closing one lets bytes land that are under way.
  void leave() override {
    for (Group& group : groups_) {
      for (Schedule& one : group.schedules) {
        for (Share& share : one.shares) share.offloaded.reset();
      }
    }
    engines_.clear();
  }

 private:
  static constexpr uint64_t looks_max = 15'000;  // after so many looks without a start or an end, nothing more happens

  [[nodiscard]] std::string label(const Group& group, const Schedule& one, uint32_t member) const {
    return text("rank ", group.team.ranks[member], ", team ", group.team.id, ", ", one.call.name(),
                one.cached ? ", cached" : "", ", start ", one.shares[member].started);
  }

  collective::EndpointOptions any_options() {
    collective::EndpointOptions made;
    made.portal = nic::PortalIndex{World::engine_portal};
    made.eager_bytes = random().chance(1, 2) ? 64 : 1024;
    made.early_messages = 2 * static_cast<uint32_t>(1 + random().below(4));
    made.initiator = random().chance(1, 2) ? collective::Initiator::receiver : collective::Initiator::sender;
    made.by_cpu = random().chance(1, 5);
    made.ranks = world_.config.ranks;
    made.unexpected_headers = world_.config.unexpected_headers;
    made.atomic_bytes =
        random().chance(1, 2) ? world_.config.payload_bytes : 16 * static_cast<uint32_t>(1 + random().below(4));
    return made;
  }

  void draw() {
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
      uint32_t starts_most = 0;
      std::vector<uint32_t> starts;
      for (Schedule& one : group.schedules) {
        one.call =
            TeamCall::random(size, {world_.config.size_max, world_.config.dead != 0 && !options_.by_cpu}, random());
        one.cached = !one.call.outlives_members() && random().chance(2, 3);
        starts.push_back(one.cached ? static_cast<uint32_t>(1 + random().below(4)) : 1);
        starts_most = std::max(starts_most, starts.back());
        for (uint32_t start = 0; start < starts.back(); ++start) {
          one.begins.push_back(one.call.random_memory(random()));
          one.ends.push_back(one.call.played(one.begins.back()));
        }
        one.shares.resize(size);
      }
      for (uint32_t start = 0; start < starts_most; ++start) {
        for (uint32_t one = 0; one < group.schedules.size(); ++one) {
          if (start < starts[one]) group.order.push_back(one);
        }
      }
      group.next.assign(size, 0);
    }
  }

  // Opens the engines and makes all schedules.
  Status open() {
    options_.portal = nic::PortalIndex{World::engine_portal - world_.engines++ % World::engine_portals};
    for (const uint32_t rank : ranks_) {
      SPL_ASSIGN(engines_[rank], Endpoint::open(world_.at(rank), options_));
    }
    for (Group& group : groups_) {
      group.teams.assign(group.team.ranks.size(), group.team);
      for (uint32_t member = 0; member < group.teams.size(); ++member) {
        Endpoint& engine = *engines_[group.team.ranks[member]];
        SPL_TRY(engine.join(group.team));
        for (Schedule& one : group.schedules) {
          Share& share = one.shares[member];
          share.send = Region(one.call.members[member].send_bytes);
          share.receive = Region(one.call.members[member].receive_bytes);
          const collective::Call call = one.call.of(member, share.send.data(), share.receive.data());
          SPL_ASSIGN(collective::Made made, collective::make(call, member, one.call.size()));
          SPL_ASSIGN(share.offloaded,
                     engine.make(group.teams[member], std::move(made.graph), one.cached, std::move(made.memory)));
        }
      }
    }
    return {};
  }

  // Returns the most that any member's schedule needs of each resource.
  [[nodiscard]] Taken largest() const {
    Taken most;
    for (const Group& group : groups_) {
      for (const Schedule& one : group.schedules) {
        for (const Share& share : one.shares) {
          const Taken needed = share.offloaded->taken();
          most.counters = std::max(most.counters, needed.counters);
          most.triggered = std::max(most.triggered, needed.triggered);
          most.entries = std::max(most.entries, needed.entries);
        }
      }
    }
    return most;
  }

  Status refuse_what_is_beyond() {
    for (Group& group : groups_) {
      for (Schedule& one : group.schedules) {
        for (uint32_t member = 0; member < one.shares.size(); ++member) {
          const Taken needed = one.shares[member].offloaded->taken();
          const auto& limits = options_.limits;
          const bool beyond = needed.counters > limits.counters || needed.triggered > limits.triggered ||
                              needed.entries > limits.entries;
          if (!beyond) continue;
          one.beyond_limits = true;
          const Status refused = one.shares[member].offloaded->post();
          if (refused || refused.error().code != Code::exhausted) {
            return trouble(label(group, one, member) + " goes beyond the limits, and is not refused");
          }
        }
      }
      std::erase_if(group.order, [&group](uint32_t one) { return group.schedules[one].beyond_limits; });
    }
    return {};
  }

  // Checks the rank's schedules that are under way, and at random starts one more.
  Status go_on(uint32_t rank) {
    for (Group& group : groups_) {
      const auto found = std::ranges::find(group.team.ranks, rank);
      if (found == group.team.ranks.end()) continue;
      const auto member = static_cast<uint32_t>(found - group.team.ranks.begin());
      for (Schedule& one : group.schedules) {
        if (one.shares[member].under_way) SPL_TRY(look(group, one, member));
      }
    }
    if (!random().chance(2, 3)) return {};
    // If engines have limits, all ranks start the schedules of all teams in one order.
    Group* chosen = nullptr;
    uint32_t chosen_member = 0;
    for (Group& group : groups_) {
      const auto found = std::ranges::find(group.team.ranks, rank);
      if (found == group.team.ranks.end()) continue;
      const auto member = static_cast<uint32_t>(found - group.team.ranks.begin());
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
    Schedule& one = group.schedules[group.order[group.next[member]]];
    Share& share = one.shares[member];
    if (share.under_way) return {};
    const TeamCall::Memory& begins = one.begins[share.started];
    fill(share.send, begins.send[member]);
    fill(share.receive, begins.receive[member]);
    const Status started = share.offloaded->start();
    if (!started && started.error().code == Code::exhausted && world_.config.limited != 0) return {};
    world_.note(text("start ", label(group, one, member)));
    looks_ = 0;
    ++share.started;
    ++group.next[member];
    if (!started) return failed(group, one, member, started.error());
    share.under_way = true;
    for (const collective::Vertex& operation : share.offloaded->graph().operations) {
      world_.messages += operation.what == Does::send || operation.what == Does::fetch;
    }
    return {};
  }
  static void fill(Region& region, const Bytes& with) {
    if (!with.empty()) std::copy(with.begin(), with.end(), region.data());
    region.expect(0, with.data(), with.size());
  }

  Status look(Group& group, Schedule& one, uint32_t member) {
    Share& share = one.shares[member];
    const Result<bool> ended = share.offloaded->test(random().chance(1, 8));
    if (!ended) {
      share.under_way = false;
      return failed(group, one, member, ended.error());
    }
    if (!*ended) return {};
    world_.note(text("end ", label(group, one, member)));
    looks_ = 0;
    share.under_way = false;
    share.ended = share.started;
    if (one.call.call.operation == collective::Operation::barrier) {
      const auto is_late = [&share](const Share& other) { return other.started < share.started; };
      if (std::ranges::any_of(one.shares, is_late)) {
        return trouble(label(group, one, member) + " ends before all have come to it");
      }
    }
    for (const collective::Vertex& operation : share.offloaded->graph().operations) {
      const bool is_long = operation.what == Does::expose || (operation.what == Does::send && !operation.early &&
                                                              !operation.name.signal && !operation.optional);
      if (is_long && one.shares[operation.peer].started < share.started) {
        return trouble(label(group, one, member) + " has sent a long message to a rank that has not started");
      }
    }
    const Bytes& wanted = one.ends[share.started - 1][member];
    share.receive.expect(0, wanted.data(), wanted.size());
    return whole(group, one, member);
  }
  Status whole(const Group& group, const Schedule& one, uint32_t member) const {
    SPL_TRY(one.shares[member].send.check(label(group, one, member) + ", what is sent"));
    return one.shares[member].receive.check(label(group, one, member));
  }

  // Checks that the failure had to be expected; after it the member starts nothing more in this team.
  Status failed(Group& group, Schedule& one, uint32_t member, const Error& error) {
    looks_ = 0;
    world_.note(text("failed ", label(group, one, member), ": ", error.message));
    const bool names_headers = error.message.find("unexpected headers") != std::string::npos;
    if (has_few_headers() && names_headers) {
      ++of(world_.faults, Fault::flow_control);
      world_.engine_overrun = true;
      group.next[member] = group.order.size();
      return {};
    }
    const bool has_dead = std::ranges::any_of(group.team.ranks, [this](uint32_t rank) { return host(rank).dead; });
    if (!has_dead) return trouble(text(label(group, one, member), ": ", error.message));
    if (one.call.outlives_members() && !host(group.team.ranks[one.call.call.root]).dead) {
      return trouble(text(label(group, one, member), ", which outlives others than its root: ", error.message));
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
        for (const Schedule& one : group.schedules) {
          if (one.shares[member].under_way) return false;
        }
      }
    }
    return true;
  }

  // Called when nothing has happened for long. A schedule may hang only if it waits for a living member that has given
  // up itself; the fault-tolerant broadcast, if its root has died or a living member has not started it.
  Status check_stuck() {
    for (Group& group : groups_) {
      for (Schedule& one : group.schedules) {
        for (uint32_t member = 0; member < one.shares.size(); ++member) {
          const Share& share = one.shares[member];
          if (host(group.team.ranks[member]).dead) continue;
          const bool is_next =
              group.next[member] < group.order.size() && &one == &group.schedules[group.order[group.next[member]]];
          if (is_next && !share.under_way) return trouble(text(label(group, one, member), " never begins"));
          if (!share.under_way) continue;
          if (has_few_headers() || !is_let_down(group, one, share) || must_know(group, one, share)) {
            return trouble(text(label(group, one, member), " never ends: ", state_of(share)));
          }
        }
      }
    }
    return {};
  }
  [[nodiscard]] bool is_let_down(const Group& group, const Schedule& one, const Share& share) const {
    if (one.call.outlives_members()) return !all_have_started(group, one);
    bool gave_up = false;
    for (uint32_t peer = 0; peer < one.shares.size(); ++peer) {
      const bool is_dead = world_.hosts[group.team.ranks[peer]].dead;
      gave_up = gave_up || (!is_dead && one.shares[peer].ended < share.started && !one.shares[peer].under_way);
      gave_up = gave_up || (!is_dead && group.next[peer] < group.order.size());
    }
    return gave_up;
  }
  [[nodiscard]] bool all_have_started(const Group& group, const Schedule& one) const {
    for (uint32_t peer = 0; peer < one.shares.size(); ++peer) {
      const bool is_dead = world_.hosts[group.team.ranks[peer]].dead;
      if (one.shares[peer].started == 0 && (!is_dead || peer == one.call.call.root)) return false;
      if (is_dead && peer == one.call.call.root) return false;  // it may have died before the first message
    }
    return true;
  }
  // True if the share has posted a receive for data that a dead member has never sent.
  [[nodiscard]] bool must_know(const Group& group, const Schedule& one, const Share& share) const {
    if (!share.under_way || one.call.outlives_members()) return false;
    const auto& operations = share.offloaded->graph().operations;
    for (uint32_t given = 0; given < share.offloaded->given(); ++given) {
      const collective::Vertex& operation = operations[share.offloaded->graph().number_of[given]];
      if (operation.what != Does::receive || share.offloaded->state(given) != Offloaded::State::active) continue;
      const bool is_dead = world_.hosts[group.team.ranks[operation.peer]].dead;
      if (is_dead && one.shares[operation.peer].started < share.started) return true;
    }
    return false;
  }
  static std::string state_of(const Share& share) {
    std::string said;
    for (uint32_t given = 0; given < share.offloaded->given(); ++given) {
      constexpr const char* states[] = {"created", "posted", "active", "executed"};
      const uint32_t number = share.offloaded->graph().number_of[given];
      said += text(" ", given, " (peer ", share.offloaded->graph().operations[number].peer, ") ",
                   states[static_cast<size_t>(share.offloaded->state(given))]);
    }
    return said;
  }

  // Frees all schedules and engines of living ranks. Their memory is the program's again.
  Status close_all() {
    is_closed_ = true;
    for (Group& group : groups_) {
      for (Schedule& one : group.schedules) {
        for (uint32_t member = 0; member < one.shares.size(); ++member) {
          Share& share = one.shares[member];
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
      const Taken& left = engines_[rank]->taken();
      if (left.descriptors + left.entries + left.triggered + left.counters + left.memory_bytes > 0) {
        return trouble(text("rank ", rank, ": an engine without schedules has ", left.descriptors, " descriptors, ",
                            left.entries, " entries, ", left.triggered, " triggered operations and ", left.counters,
                            " counters in use"));
      }
      SPL_TRY(engines_[rank]->close());
      engines_[rank].reset();
    }
    return {};
  }

  std::vector<uint32_t> ranks_;
  collective::EndpointOptions options_;
  std::vector<std::unique_ptr<Endpoint>> engines_;  // by rank; they outlive the schedules
  std::vector<Group> groups_;
  uint64_t looks_ = 0;
  bool done_ = false;
  bool is_closed_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_collective(World& world, uint32_t id) { return std::make_unique<Collective>(world, id); }

}  // namespace spinloom::torture
