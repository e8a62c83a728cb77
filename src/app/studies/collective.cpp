#include "app/studies/collective.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "app/studies/collective_run.hpp"
#include "simulated/node/host_model.hpp"

namespace spinloom::app {
namespace {

constexpr uint64_t element_bytes = sizeof(int32_t);

// Sums wrap around, as the handler's do.
void add(std::vector<uint8_t>& sum, const std::vector<uint8_t>& addend) {
  for (size_t at = 0; at < sum.size(); at += element_bytes) {
    uint32_t left = 0;
    uint32_t right = 0;
    std::memcpy(&left, sum.data() + at, sizeof left);
    std::memcpy(&right, addend.data() + at, sizeof right);
    left += right;
    std::memcpy(sum.data() + at, &left, sizeof left);
  }
}

// The work of an addition: reads two arrays and writes one of them.
portals::HostWork addition(uint64_t bytes) {
  portals::HostWork work;
  work.bytes = bytes;
  work.touches = [bytes](const portals::HostWork::Touch& touch) {
    constexpr uint64_t word = 8;
    for (uint64_t at = 0; at < bytes; at += word) {
      touch(at, std::min(word, bytes - at), false);
      touch(bytes + 4096 + at, std::min(word, bytes - at), true);
    }
  };
  return work;
}

}  // namespace

CollectiveRun::CollectiveRun(const StudyConfig& config, const std::vector<uint32_t>& members,
                             const LoadedImages& loaded, simulated::World& world)
    : config_(config), loaded_(loaded), world_(world), members_(members.size()), member_of_rank_(config.ranks) {
  for (uint32_t member = 0; member < members.size(); ++member) {
    members_[member].rank = members[member];
    member_of_rank_[members[member]] = member;
  }
  const auto top = config.experiment == Experiment::allreduce ? SwitchTree::Top::centre : SwitchTree::Top::first_member;
  tree_ = SwitchTree::over(*world.network().switches(), members, top);
}

// Returns the members to which this one is parent. The root of a linear tree has all others; in a binomial tree the
// child with the largest subtree comes first.
std::vector<uint32_t> CollectiveRun::children_of(uint32_t member) const {
  const auto count = static_cast<uint32_t>(members_.size());
  std::vector<uint32_t> children;
  if (config_.way == StudyWay::linear) {
    for (uint32_t other = 1; member == 0 && other < count; ++other) children.push_back(other);
    return children;
  }
  uint32_t distance = 1;
  while (distance < count) distance *= 2;
  for (distance /= 2; distance != 0; distance /= 2) {
    if (member % (distance * 2) == 0 && member + distance < count) children.push_back(member + distance);
  }
  return children;
}

uint32_t CollectiveRun::parent_of(uint32_t member) const {
  return config_.way == StudyWay::linear ? 0 : member & (member - 1);
}

Result<StudyResult> CollectiveRun::run() {
  expected_.resize(config_.bytes);
  for (uint32_t member = 0; member < members_.size(); ++member) {
    Member& here = members_[member];
    here.contribution = random_bytes(config_.ordering.seed, text("app.collective.", member), config_.bytes);
    if (is_reduction()) add(expected_, here.contribution);
  }
  if (!is_reduction()) expected_ = members_[0].contribution;
  for (uint32_t member = 0; member < members_.size(); ++member) SPL_TRY(prepare(member));
  if (uses_switches()) {
    SPL_TRY(install_switch_handlers());
  } else if (is_reduction()) {
    add_time_ = simulated::host_cost(config_.profile, addition(config_.bytes)).total();
  }
  StudyResult result;
  for (round_ = 1; round_ <= config_.rounds; ++round_) {
    SPL_ASSIGN(result, measure());
  }
  SPL_ASSIGN(const Time bound, collective_bound(config_, tree_));
  result.bound_ps = bound.ps;
  result.switches = static_cast<uint32_t>(switches_.size());
  return result;
}

Status CollectiveRun::prepare(uint32_t member) {
  Member& here = members_[member];
  SPL_ASSIGN(here.side, Side::make(world_.node(here.rank)));
  here.result.resize(config_.bytes);
  nic::Entry result = here.side.entry(here.result, down_bits);
  if (config_.way == StudyWay::stream) {
    const std::vector<uint32_t> constants = {member, static_cast<uint32_t>(members_.size()),
                                             static_cast<uint32_t>(down_bits), 0, config_.payload_bytes};
    constexpr uint64_t state_bytes = 64;
    SPL_ASSIGN(result.context, here.side.context(loaded_, "broadcast", constants, state_bytes));
  }
  SPL_ASSIGN(std::ignore, here.side.interface->me_append(here.side.portal, result));
  if (!uses_switches()) {
    here.child_members = children_of(member);
    if (is_reduction()) here.landing_buffers.resize(here.child_members.size());
  }
  for (uint32_t child = 0; child < here.landing_buffers.size(); ++child) {
    here.landing_buffers[child].resize(config_.bytes);
    nic::Entry entry = here.side.entry(here.landing_buffers[child], landing_bits + here.child_members[child]);
    SPL_ASSIGN(entry.counter, here.side.interface->ct_alloc());
    here.child_sums.push_back({entry.counter});
    SPL_ASSIGN(std::ignore, here.side.interface->me_append(here.side.portal, entry));
  }
  world_.node(here.rank).watch([this, member] { on_counters(member); });
  return {};
}

Result<StudyResult> CollectiveRun::measure() {
  world_.drain();
  for (Member& member : members_) {
    member.sum = member.contribution;
    member.added_sums = 0;
    member.posted_puts = 0;
    std::fill(member.result.begin(), member.result.end(), uint8_t{0});
  }
  members_missing_ = !tells_all_members() ? 1 : static_cast<uint32_t>(members_.size()) - (is_reduction() ? 0 : 1);
  const simulated::HandlerStatistics before = handlers();
  const uint64_t bytes_before = link_bytes();
  const Time start_time = world_.events().now();
  SPL_TRY(start());
  while (members_missing_ > 0 && trouble_.ok()) {
    if (!world_.events().step()) return stall_error();
  }
  SPL_TRY(trouble_);
  StudyResult result;
  result.time_ps = (last_result_ - start_time).ps;
  world_.drain();
  SPL_TRY(compare());
  result.handlers = handlers().handlers - before.handlers;
  result.handler_cycles = handlers().cycles - before.cycles;
  result.link_bytes = link_bytes() - bytes_before;
  return result;
}

Status CollectiveRun::start() {
  if (!is_reduction()) {
    members_[0].result_round = round_;
    members_[0].result = members_[0].contribution;
    if (uses_switches()) {
      put(0, 1, members_[0].contribution, down_bits);
    } else {
      on_event(post_put, 0);
    }
    return trouble_;
  }
  for (uint32_t member = 0; member < members_.size(); ++member) {
    if (uses_switches()) {
      put(member, 0, members_[member].contribution, up_bits, uint64_t{number_at_switch_[member]} << shift());
    } else {
      pass_sum_on(member);
    }
  }
  return trouble_;
}

void CollectiveRun::put(uint32_t from, uint32_t to, const std::vector<uint8_t>& bytes, uint64_t match_bits,
                        uint64_t offset) {
  const Side& side = members_[from].side;
  portals::PutArguments arguments = side.put(bytes, members_[to].side, match_bits);
  arguments.remote_offset = offset;
  const Status posted = side.interface->put(arguments);
  if (!posted.ok() && trouble_.ok()) trouble_ = posted;
}

// Called when something has become readable for this member's host.
void CollectiveRun::on_counters(uint32_t member) {
  Member& here = members_[member];
  if (round_ == 0) return;
  for (uint32_t child = 0; child < here.child_sums.size(); ++child) {
    ChildSum& from = here.child_sums[child];
    const uint64_t due = static_cast<uint64_t>(round_) * config_.bytes;
    if (from.added_round == round_ || here.side.interface->ct_get(from.landed).success < due) continue;
    from.added_round = round_;
    const Time duration = config_.profile.host.memory_latency + add_time_;
    world_.events().at(here.processor.serve(world_.events().now(), duration).end, *this, sum_added,
                       uint64_t{member} << 32 | child);
  }
  const bool gets_result = member == 0 ? uses_switches() && is_reduction() : tells_all_members();
  if (!gets_result || here.result_round == round_) return;
  const uint64_t rounds = here.side.interface->ct_get(here.side.counter).success / config_.bytes;
  if (rounds < static_cast<uint64_t>(round_)) return;
  note_result(member);
}

// Notes that this member's host has the result.
void CollectiveRun::note_result(uint32_t member) {
  Member& here = members_[member];
  here.result_round = round_;
  last_result_ = world_.events().now();
  if (tells_all_members() || member == 0) --members_missing_;
  if (uses_switches() || config_.way == StudyWay::stream || !tells_all_members() || here.child_members.empty()) return;
  const Time duration = config_.profile.host.memory_latency + config_.profile.host.call;
  world_.events().at(here.processor.serve(last_result_, duration).end, *this, post_put, member);
}

// Called at the start and when the last child's sum is added. A member that has added what all its children sent passes
// the sum to its parent; the root has the result.
void CollectiveRun::pass_sum_on(uint32_t member) {
  Member& here = members_[member];
  if (here.added_sums < here.child_sums.size()) return;
  if (member != 0) return put(member, parent_of(member), here.sum, landing_bits + member);
  here.result = here.sum;
  note_result(0);
}

void CollectiveRun::on_event(uint32_t code, uint64_t argument) {
  if (code == sum_added) {
    const auto member = static_cast<uint32_t>(argument >> 32);
    Member& here = members_[member];
    add(here.sum, here.landing_buffers[static_cast<uint32_t>(argument)]);
    ++here.added_sums;
    if (here.added_sums < here.child_sums.size()) return;
    return pass_sum_on(member);
  }
  const auto member = static_cast<uint32_t>(argument);
  Member& here = members_[member];
  put(member, here.child_members[here.posted_puts++], here.result, down_bits);
  if (here.posted_puts < here.child_members.size()) {
    const Time free = here.processor.serve(world_.events().now(), config_.profile.host.call).end;
    world_.events().at(free, *this, post_put, member);
  }
}

Status CollectiveRun::compare() const {
  for (uint32_t member = 0; member < members_.size(); ++member) {
    if (member != 0 && !tells_all_members()) continue;
    const std::vector<uint8_t>& result = members_[member].result;
    const auto differs = std::ranges::mismatch(result, expected_);
    if (differs.in1 == result.end()) continue;
    return fail(Code::mismatch, "byte ", differs.in1 - result.begin(), " of ", result.size(), " at rank ",
                members_[member].rank, " is ", int{*differs.in1}, ", not ", int{*differs.in2});
  }
  return {};
}

Error CollectiveRun::stall_error() {
  for (size_t i = 0; i < switches_.size(); ++i) {
    if (const std::string& trouble = switches_[i]->handler_trouble(); !trouble.empty()) {
      return fail(Code::fault, "a handler of switch ", tree_.switches[i].number, " ", trouble);
    }
    if (const auto event = switch_sides_[i].interface->eq_get(switch_sides_[i].queue)) {
      return fail(Code::fault, "switch ", tree_.switches[i].number, " refused a message of rank ",
                  event->initiator.value, ": ", nic::name_of(event->fail));
    }
  }
  return fail(Code::stalled, members_missing_, " of ", members_.size(),
              " members wait for a result, and nothing can happen any more");
}

simulated::HandlerStatistics CollectiveRun::handlers() const {
  simulated::HandlerStatistics sum;
  const auto add_node = [&](const simulated::Node& node) {
    const auto& statistics = node.hpus().statistics(nic::HandlerKind::payload);
    sum.handlers += statistics.handlers;
    sum.cycles += statistics.cycles;
  };
  for (const Member& member : members_) add_node(*member.side.node);
  for (const simulated::Node* node : switches_) add_node(*node);
  return sum;
}

uint64_t CollectiveRun::link_bytes() const {
  const std::vector<uint64_t>& links = world_.network().carried_bytes();
  return std::accumulate(links.begin(), links.end(), world_.network().delivered_bytes());
}

Result<StudyResult> run_collective(const StudyConfig& config, const LoadedImages& loaded) {
  std::vector<uint32_t> members = config.members;
  if (members.empty()) {
    members.resize(config.ranks);
    std::iota(members.begin(), members.end(), 0u);
  }
  if (!config.network.has_value()) {
    return fail(Code::invalid, "a group needs a network with switches, such as fat-tree:radix=8");
  }
  if (config.rounds < 1) return fail(Code::invalid, "a group has at least one round");
  if (members.size() < 2) return fail(Code::invalid, "a group has at least 2 members, not ", members.size());
  if (config.ranks > limits::rank_count_max) {
    return fail(Code::invalid, "there are at most ", limits::rank_count_max, " ranks, not ", config.ranks);
  }
  if (const auto largest = *std::ranges::max_element(members); largest >= config.ranks) {
    return fail(Code::invalid, "rank ", largest, " is no member: there are ", config.ranks, " ranks");
  }
  if (std::set<uint32_t>(members.begin(), members.end()).size() != members.size()) {
    return fail(Code::invalid, "a rank is a member of the group twice");
  }
  const bool is_reduction = config.experiment != Experiment::multicast;
  if (is_reduction && config.bytes % element_bytes != 0) {
    return fail(Code::invalid, "sums are of whole int32_t of ", element_bytes, " B, ", config.bytes, " B were given");
  }
  if (config.way == StudyWay::store || config.way == StudyWay::portals4 ||
      (config.way == StudyWay::stream && is_reduction)) {
    return fail(Code::unsupported,
                "a multicast goes by linear, rdma, stream or switch; sums by linear, rdma or switch");
  }
  simulated::Profile profile = config.profile;
  if (config.way != StudyWay::switches) {  // a rank needs a handler's constants and little other memory of its NIC
    profile.memory.state_bytes = std::min<int64_t>(profile.memory.state_bytes, int64_t{64} << 10);
  }
  simulated::WorldOptions options = world_options(config);
  options.ranks = config.ranks;
  options.network = config.network;
  SPL_ASSIGN(const auto world, simulated::World::create(profile, loaded.images, options));
  return CollectiveRun(config, members, loaded, *world).run();
}

}  // namespace spinloom::app
