#include "predict/goal/model/critical_path.hpp"

#include <algorithm>
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

  std::vector<Step> run() {
    uint64_t latest = 0;
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      for (uint32_t one = 0; one < schedule_.program(rank).size(); ++one) {
        if (record_.of(rank, one).end_ps <= latest) continue;
        latest = record_.of(rank, one).end_ps;
        rank_ = rank;
        operation_ = one;
      }
    }
    now_ = latest;
    if (latest > 0) ended(false);
    while (now_ > 0) before_begin();
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

 private:
  struct Wait {
    uint32_t before;
    Awaits awaits;
    Join join;
  };

  [[nodiscard]] const Trace& trace() const { return record_.of(rank_, operation_); }
  [[nodiscard]] const schedule::Shape& shape() const {
    return schedule_.shape(schedule_.program(rank_).operation(operation_));
  }

  void step(uint64_t begin_ps, StepKind kind) {
    SPL_ASSERT(begin_ps <= now_, "a critical path goes from ", now_, " to ", begin_ps);
    if (begin_ps < now_) steps_.push_back({begin_ps, now_, rank_, operation_, kind});
    now_ = begin_ps;
  }
  void go(uint32_t rank, uint32_t operation) {
    rank_ = rank;
    operation_ = operation;
  }

  // Goes back from the end of the operation, or of its CPU's work for it (`by_cpu`), to its begin.
  void ended(bool by_cpu) {
    posts_ = false;
    if (shape().kind > Kind::compute) {
      one_sided_ended(by_cpu);
    } else if (shape().kind == Kind::compute) {
      step(trace().begin_ps, StepKind::compute);
    } else if (shape().kind == Kind::send) {
      if (!by_cpu && shape().size > model_.S_bytes) {
        step(trace().left_ps, StepKind::bytes);
        data_left();
      } else {
        step(trace().begin_ps, StepKind::send);
      }
    } else {
      step(trace().begin_ps, StepKind::receive);
    }
  }

  // Data of a rendezvous leave now: back to the receive or to the request, whichever was later.
  void data_left() {
    const auto [send_rank, send] = std::pair(rank_, operation_);
    const uint32_t taker = trace().partner;
    const uint32_t taker_rank = trace().partner_rank;
    const Trace& receive = record_.of(taker_rank, taker);
    message(receive.matched_ps, 0);
    if (receive.is_late) {
      go(taker_rank, taker);
      posts_ = true;
      return;
    }
    go(send_rank, send);
    message(trace().worked_ps, 0);
    step(trace().begin_ps, StepKind::send);
  }

  void one_sided_ended(bool by_cpu) {
    const Trace& here = trace();
    if (shape().kind == Kind::arrived) {
      if (here.partner == none) return;  // it had come before
      go(here.partner_rank, here.partner);
      message(trace().worked_ps, bytes_ps());
    } else if (!by_cpu && (shape().kind == Kind::put || shape().kind == Kind::atomic)) {
      step(here.left_ps, StepKind::bytes);
      step(here.worked_ps, StepKind::queue);
    } else if (!by_cpu) {
      message(here.worked_ps, (shape().kind == Kind::fetch ? 2 : 1) * bytes_ps(), 2);
    }
    step(trace().begin_ps, StepKind::send);
  }
  [[nodiscard]] uint64_t bytes_ps() const { return time_ps(model_.G, std::max<uint64_t>(shape().size, 1) - 1); }

  // Steps back over a message's time on a wire, to `begin_ps`: bytes, latency and the rest.
  void message(uint64_t begin_ps, uint64_t bytes_ps, uint64_t ways = 1) {
    step(std::max(begin_ps, now_ - std::min(now_, bytes_ps)), StepKind::bytes);
    step(std::max(begin_ps, now_ - std::min(now_, ways * model_.L_ps)), StepKind::latency);
    step(begin_ps, StepKind::queue);
  }

  // The operation begins now, or is posted: goes one step back.
  void before_begin() {
    const Trace& here = trace();
    const Kind kind = shape().kind;
    if (kind == Kind::receive && !posts_) {
      if (now_ > std::max(here.there_ps, here.posted_ps)) {
        go(rank_, here.before);
        ended(true);
      } else if (here.there_ps < here.posted_ps || (here.is_late && !is_rendezvous(here))) {
        posts_ = true;
      } else {
        message_came();
      }
      return;
    }
    if (now_ > here.free_ps) {
      go(rank_, kind == Kind::receive ? here.before_post : here.before);
      ended(true);
      return;
    }
    const Wait last = last_of(here.free_ps);
    go(rank_, last.before);
    if (last.awaits == Awaits::end) {
      ended(false);
    } else {
      posts_ = shape().kind == Kind::receive;
    }
  }

  [[nodiscard]] const schedule::Shape& sent(const Trace& receive) const {
    return schedule_.shape(schedule_.program(receive.partner_rank).operation(receive.partner));
  }
  [[nodiscard]] bool is_rendezvous(const Trace& receive) const { return sent(receive).size > model_.S_bytes; }

  void message_came() {
    const Trace& receive = trace();
    const uint64_t size = sent(receive).size;
    const bool is_long = is_rendezvous(receive);
    go(receive.partner_rank, receive.partner);
    message(trace().left_ps, time_ps(model_.G, std::max<uint64_t>(size, 1) - 1));
    if (is_long) {
      data_left();
      return;
    }
    step(trace().worked_ps, StepKind::queue);
    step(trace().begin_ps, StepKind::send);
  }

  // Returns the dependency that came last and freed the operation at `free_ps`.
  Wait last_of(uint64_t free_ps) {
    const uint32_t number = schedule_.number_of_program(rank_);
    auto [found, is_new] = waits_.try_emplace(number);
    if (is_new) {
      const Program& program = schedule_.program(rank_);
      for (uint32_t one = 0; one < program.size(); ++one) {
        program.each_edge(one,
                          [&](Edge edge) { found->second.emplace(edge.to(), Wait{one, edge.awaits(), edge.join()}); });
      }
    }
    const auto [first, last] = found->second.equal_range(operation_);
    for (auto wait = first; wait != last; ++wait) {
      const auto [before, awaits, join] = wait->second;
      if (join == Join::first && before != record_.of(rank_, operation_).first_came) continue;
      const Trace& it = record_.of(rank_, before);
      const bool is_receive = schedule_.shape(schedule_.program(rank_).operation(before)).kind == Kind::receive;
      const uint64_t at_ps = awaits == Awaits::end ? it.end_ps : is_receive ? it.posted_ps : it.begin_ps;
      if (at_ps == free_ps) return wait->second;
    }
    SPL_ASSERT(false, "nothing that operation ", operation_, " of rank ", rank_, " waits for comes at ", free_ps);
    return {};
  }

  const Schedule& schedule_;
  const Model& model_;
  const Record& record_;
  uint32_t rank_ = 0;
  uint32_t operation_ = 0;
  bool posts_ = false;  // the walk is where the receive was posted, not where it ended
  uint64_t now_ = 0;
  std::vector<Step> steps_;
  // The dependencies of the operations of a Program, by the number of the Program.
  std::unordered_map<uint32_t, std::unordered_multimap<uint32_t, Wait>> waits_;
};

}  // namespace

std::vector<Step> critical_path(const Schedule& schedule, const Model& model, const Record& record) {
  return Walk(schedule, model, record).run();
}

}  // namespace spinloom::goal
