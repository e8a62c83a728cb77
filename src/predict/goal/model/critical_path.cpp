#include "predict/goal/model/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Edge;
using schedule::Join;
using schedule::Kind;
using schedule::Program;
using schedule::Schedule;

namespace {

class Walk {
 public:
  Walk(const Schedule& schedule, const Model& model, const Record& record)
      : schedule_(schedule), model_(model), record_(record) {}

  std::vector<Step> path() {
    uint64_t latest = 0;
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      for (uint32_t operation = 0; operation < schedule_.program(rank).size(); ++operation) {
        if (record_.of(rank, operation).end_ps <= latest) continue;
        latest = record_.of(rank, operation).end_ps;
        rank_ = rank;
        operation_ = operation;
      }
    }
    now_ = latest;
    if (latest > 0) walk_from_end(false);
    while (now_ > 0) walk_from_begin();
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

  // Returns what the CPU of the operation waited for from `idle_ps` until the operation began; the last comes first.
  const std::vector<Step>& wait_steps(uint32_t rank, uint32_t operation, uint64_t idle_ps) {
    steps_.clear();
    move_to(rank, operation);
    is_at_post_ = false;
    now_ = times().begin_ps;
    while (now_ > idle_ps && steps_.size() < wait_steps_max) walk_from_begin();
    for (Step& each : steps_) each.begin_ps = std::max(each.begin_ps, idle_ps);
    std::erase_if(steps_, [](const Step& each) { return each.begin_ps >= each.end_ps; });
    return steps_;
  }

 private:
  struct Dependency {
    uint32_t before;
    Awaits awaits;
    Join join;
  };

  [[nodiscard]] const OperationTimes& times() const { return record_.of(rank_, operation_); }
  [[nodiscard]] const schedule::Shape& shape() const {
    return schedule_.shape(schedule_.program(rank_).operation(operation_));
  }

  void step(uint64_t begin_ps, StepKind kind) {
    SPL_ASSERT(begin_ps <= now_, "a critical path goes from ", now_, " to ", begin_ps);
    if (begin_ps < now_) steps_.push_back({begin_ps, now_, rank_, operation_, kind});
    now_ = begin_ps;
  }
  void move_to(uint32_t rank, uint32_t operation) {
    rank_ = rank;
    operation_ = operation;
  }

  // Goes back from the end of the operation, or of its CPU's work for before_times (`by_cpu`), to its begin.
  void walk_from_end(bool by_cpu) {
    is_at_post_ = false;
    if (shape().kind > Kind::compute) {
      walk_from_one_sided_end(by_cpu);
    } else if (shape().kind == Kind::compute) {
      step(times().begin_ps, StepKind::compute);
    } else if (shape().kind == Kind::send) {
      if (!by_cpu && shape().size > model_.S_bytes) {
        step(times().departed_ps, StepKind::bytes);
        walk_from_data();
      } else {
        step(times().begin_ps, StepKind::send);
      }
    } else {
      step(times().begin_ps, StepKind::receive);
    }
  }

  // Data of a rendezvous leave now: back to the receive or to the request, whichever was later.
  void walk_from_data() {
    const auto [send_rank, send] = std::pair(rank_, operation_);
    const uint32_t receive_number = times().partner;
    const uint32_t receiver = times().partner_rank;
    const OperationTimes& receive = record_.of(receiver, receive_number);
    walk_over_message(receive.matched_ps, 0);
    if (receive.is_late) {
      move_to(receiver, receive_number);
      is_at_post_ = true;
      return;
    }
    move_to(send_rank, send);
    walk_over_message(times().cpu_end_ps, 0);
    step(times().begin_ps, StepKind::send);
  }

  void walk_from_one_sided_end(bool by_cpu) {
    const OperationTimes& here = times();
    if (shape().kind == Kind::arrived) {
      if (here.partner == none) return;  // before_times had come before
      move_to(here.partner_rank, here.partner);
      walk_over_message(times().cpu_end_ps, bytes_ps());
    } else if (!by_cpu && (shape().kind == Kind::put || shape().kind == Kind::atomic)) {
      step(here.departed_ps, StepKind::bytes);
      step(here.cpu_end_ps, StepKind::queue);
    } else if (!by_cpu) {
      walk_over_message(here.cpu_end_ps, (shape().kind == Kind::fetch ? 2 : 1) * bytes_ps(), 2);
    }
    step(times().begin_ps, StepKind::send);
  }
  [[nodiscard]] uint64_t bytes_ps() const { return time_ps(model_.G, std::max<uint64_t>(shape().size, 1) - 1); }

  // Steps back over a message's time on a wire, to `begin_ps`: bytes, latency and the rest.
  void walk_over_message(uint64_t begin_ps, uint64_t bytes_ps, uint64_t latencies = 1) {
    step(std::max(begin_ps, now_ - std::min(now_, bytes_ps)), StepKind::bytes);
    step(std::max(begin_ps, now_ - std::min(now_, latencies * model_.L_ps)), StepKind::latency);
    step(begin_ps, StepKind::queue);
  }

  // The operation begins now, or is posted: goes one step back.
  void walk_from_begin() {
    const OperationTimes& here = times();
    const Kind kind = shape().kind;
    if (kind == Kind::receive && !is_at_post_) {
      if (now_ > std::max(here.arrived_ps, here.posted_ps)) {
        move_to(rank_, here.previous_on_cpu);
        walk_from_end(true);
      } else if (here.arrived_ps < here.posted_ps || (here.is_late && !is_rendezvous(here))) {
        is_at_post_ = true;
      } else {
        walk_from_message();
      }
      return;
    }
    if (now_ > here.ready_ps) {
      move_to(rank_, kind == Kind::receive ? here.previous_at_post : here.previous_on_cpu);
      walk_from_end(true);
      return;
    }
    const Dependency last = last_dependency_of(here.ready_ps);
    move_to(rank_, last.before);
    if (last.awaits == Awaits::end) {
      walk_from_end(false);
    } else {
      is_at_post_ = shape().kind == Kind::receive;
    }
  }

  [[nodiscard]] const schedule::Shape& sent(const OperationTimes& receive) const {
    return schedule_.shape(schedule_.program(receive.partner_rank).operation(receive.partner));
  }
  [[nodiscard]] bool is_rendezvous(const OperationTimes& receive) const { return sent(receive).size > model_.S_bytes; }

  void walk_from_message() {
    const OperationTimes& receive = times();
    const uint64_t size = sent(receive).size;
    const bool is_long = is_rendezvous(receive);
    move_to(receive.partner_rank, receive.partner);
    walk_over_message(times().departed_ps, time_ps(model_.G, std::max<uint64_t>(size, 1) - 1));
    if (is_long) {
      walk_from_data();
      return;
    }
    step(times().cpu_end_ps, StepKind::queue);
    step(times().begin_ps, StepKind::send);
  }

  // Returns the dependency that came last and freed the operation at `ready_ps`.
  Dependency last_dependency_of(uint64_t ready_ps) {
    const uint32_t number = schedule_.number_of_program(rank_);
    auto [entry, is_new] = dependencies_.try_emplace(number);
    if (is_new) {
      const Program& program = schedule_.program(rank_);
      for (uint32_t before = 0; before < program.size(); ++before) {
        program.for_each_edge(before, [&](Edge edge) {
          entry->second.emplace(edge.to(), Dependency{before, edge.awaits(), edge.join()});
        });
      }
    }
    const auto [first, last] = entry->second.equal_range(operation_);
    for (auto dependency = first; dependency != last; ++dependency) {
      const auto [before, awaits, join] = dependency->second;
      if (join == Join::first && before != record_.of(rank_, operation_).first_came) continue;
      const OperationTimes& before_times = record_.of(rank_, before);
      const bool is_receive = schedule_.shape(schedule_.program(rank_).operation(before)).kind == Kind::receive;
      const uint64_t at_ps = awaits == Awaits::end ? before_times.end_ps
                             : is_receive          ? before_times.posted_ps
                                                   : before_times.begin_ps;
      if (at_ps == ready_ps) return dependency->second;
    }
    SPL_ASSERT(false, "nothing that operation ", operation_, " of rank ", rank_, " waits for comes at ", ready_ps);
    return {};
  }

  const Schedule& schedule_;
  const Model& model_;
  const Record& record_;
  uint32_t rank_ = 0;
  uint32_t operation_ = 0;
  bool is_at_post_ = false;  // the walk is where the receive was posted, not where before_times ended
  uint64_t now_ = 0;
  std::vector<Step> steps_;
  // The dependencies of the operations of a Program, by the number of the Program.
  std::unordered_map<uint32_t, std::unordered_multimap<uint32_t, Dependency>> dependencies_;
};

}  // namespace

std::vector<Step> critical_path(const Schedule& schedule, const Model& model, const Record& record) {
  return Walk(schedule, model, record).path();
}

namespace {

Wait wait_of(uint32_t rank, uint32_t operation, const std::vector<Step>& steps) {
  Wait wait{steps.back().begin_ps, steps.front().end_ps, rank, operation, rank, StepKind::queue, rank, 0};
  std::map<std::pair<StepKind, uint32_t>, uint64_t> sums;
  for (const Step& step : steps) {
    if (wait.waited_for == rank) wait.waited_for = step.rank;
    const uint64_t sum = sums[{step.kind, step.rank}] += step.end_ps - step.begin_ps;
    if (sum <= wait.cause_ps) continue;
    wait.cause = step.kind;
    wait.cause_rank = step.rank;
    wait.cause_ps = sum;
  }
  return wait;
}

}  // namespace

std::vector<Wait> waits(const Schedule& schedule, const Model& model, const Record& record) {
  Walk walk(schedule, model, record);
  std::vector<Wait> found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Program& program = schedule.program(rank);
    const auto cpu_of = [&](uint32_t number) { return schedule.shape(program.operation(number)).cpu; };
    std::vector<uint32_t> worked;
    for (uint32_t number = 0; number < program.size(); ++number) {
      if (schedule.shape(program.operation(number)).kind != Kind::arrived) worked.push_back(number);
    }
    std::ranges::stable_sort(worked, {}, [&](uint32_t number) {
      return std::tuple(cpu_of(number), record.of(rank, number).begin_ps, record.of(rank, number).cpu_end_ps);
    });
    uint64_t idle_ps = 0;
    for (size_t place = 0; place < worked.size(); ++place) {
      if (place == 0 || cpu_of(worked[place]) != cpu_of(worked[place - 1])) idle_ps = 0;
      const OperationTimes& times = record.of(rank, worked[place]);
      if (times.begin_ps > idle_ps) {
        const std::vector<Step>& steps = walk.wait_steps(rank, worked[place], idle_ps);
        if (!steps.empty()) found.push_back(wait_of(rank, worked[place], steps));
      }
      idle_ps = std::max(idle_ps, times.cpu_end_ps);
    }
  }
  return found;
}

}  // namespace spinloom::goal
