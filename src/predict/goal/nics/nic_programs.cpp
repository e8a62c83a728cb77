#include "predict/goal/nics/nic_programs.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Kind;
using schedule::Operation;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;

namespace {

// Makes one Program anew. CPUs behind those of the schedule are the NIC, and delays that hold up nobody.
class ProgramRewriter {
 public:
  ProgramRewriter(const Schedule& original, const std::vector<ProgramPrice>& prices, uint64_t unit_ps, uint32_t nic_cpu,
                  Schedule& out)
      : original_(original), prices_(prices), unit_ps_(unit_ps), nic_cpu_(nic_cpu), out_(out) {}

  Program rewrite(const Program& program) {
    nic_ps_ = 0;
    for (const Operation& operation : program.operations) add(operation);
    for (uint32_t before = 0; before < program.size(); ++before) {
      for (const schedule::Edge& edge : program.edges_of(before)) {
        const Chain& chain = chains_[before];
        const uint32_t from = edge.awaits() == Awaits::end ? chain.last : chain.first;
        builder_.require(chains_[edge.to()].first, from, edge.awaits(), edge.join());
      }
    }
    chains_.clear();
    return builder_.take();
  }
  [[nodiscard]] uint64_t nic_ps() const { return nic_ps_; }  // the time of the newest Program

 private:
  // The first and the last of the new operations that an original one has become.
  struct Chain {
    uint32_t first = 0;
    uint32_t last = 0;
  };

  void add(const Operation& operation) {
    Shape shape = original_.shape(operation);
    if (shape.kind == Kind::compute) shape.size *= unit_ps_;
    const ProgramPrice& price = prices_[operation.shape];
    const uint32_t number = out_.intern_shape(shape);
    const bool works_first = schedule::has_peer(shape.kind) && shape.kind != Kind::receive && shape.kind != Kind::get;
    if (!works_first) {
      const uint32_t copied = builder_.add(number, operation.peer);
      chains_.push_back({copied, copied});
      add_layout_work(price, shape.cpu);
      return;
    }
    chains_.push_back({UINT32_MAX, UINT32_MAX});
    add_layout_work(price, shape.cpu);
    append(builder_.add(number, operation.peer));
  }

  // Adds an operation behind those of the newest chain.
  void append(uint32_t operation) {
    Chain& chain = chains_.back();
    if (chain.last == UINT32_MAX) {
      chain.first = operation;
    } else {
      builder_.require(operation, chain.last, Awaits::end);
    }
    chain.last = operation;
  }

  uint32_t add_computation(uint64_t time_ps, uint32_t cpu) {
    return builder_.add(out_.intern_shape({.size = time_ps, .kind = Kind::compute, .cpu = cpu}), 0);
  }

  // Adds the work on a layout to the newest chain.
  void add_layout_work(const ProgramPrice& price, uint32_t cpu) {
    if (price.cpu_ps > 0) append(add_computation(price.cpu_ps, cpu));
    const uint64_t served_ps = std::min(price.nic_ps, price.nic_busy_ps);
    if (served_ps > 0) append(add_computation(served_ps, nic_cpu_));
    if (price.nic_ps > served_ps) {
      const uint32_t delay_cpu = nic_cpu_ + 1 + delays_++ % delays_max;
      append(add_computation(price.nic_ps - served_ps, delay_cpu));
    }
    nic_ps_ += price.nic_ps;
    if (price.nic_busy_ps == served_ps) return;
    const uint32_t rest = add_computation(price.nic_busy_ps - served_ps, nic_cpu_);  // nobody waits for it
    if (chains_.back().last != UINT32_MAX) builder_.require(rest, chains_.back().last, Awaits::end);
    nic_ps_ += price.nic_busy_ps - served_ps;
  }

  const Schedule& original_;
  const std::vector<ProgramPrice>& prices_;
  const uint64_t unit_ps_;
  const uint32_t nic_cpu_;
  Schedule& out_;
  schedule::Builder builder_;
  std::vector<Chain> chains_;
  uint32_t delays_ = 0;
  uint64_t nic_ps_ = 0;
};

}  // namespace

Result<WithNicPrograms> with_nic_programs(const Schedule& original, const std::vector<ProgramPrice>& prices,
                                          uint64_t unit_ps) {
  if (original.repeats()) return with_nic_programs(original.unrolled(), prices, unit_ps);
  uint64_t nic_cpu = 1;
  for (const Shape& shape : original.shapes()) {
    nic_cpu = std::max(nic_cpu, uint64_t{shape.cpu} + 1);
    uint64_t size = 0;
    if (shape.kind == Kind::compute && __builtin_mul_overflow(shape.size, unit_ps, &size)) {
      return fail(Code::overflow, "a computation of ", shape.size, " does not fit in ps; use a smaller unit");
    }
  }
  if (nic_cpu + delays_max > UINT32_MAX) {
    return fail(Code::unsupported, "the schedule has CPU ", nic_cpu - 1,
                "; with programs on NICs the numbers of CPUs go to ", UINT32_MAX - delays_max - 1);
  }
  WithNicPrograms result{Schedule(original.ranks()), {}};
  ProgramRewriter rewriter(original, prices, unit_ps, static_cast<uint32_t>(nic_cpu), result.schedule);
  std::vector<std::vector<uint32_t>> ranks(original.programs().size());
  for (uint32_t rank = 0; rank < original.ranks(); ++rank) ranks[original.number_of_program(rank)].push_back(rank);
  result.nic_ps.resize(original.ranks());
  for (size_t number = 0; number < ranks.size(); ++number) {
    result.schedule.intern_for(ranks[number], rewriter.rewrite(original.programs()[number]));
    for (const uint32_t rank : ranks[number]) result.nic_ps[rank] = rewriter.nic_ps();
  }
  return result;
}

}  // namespace spinloom::goal
