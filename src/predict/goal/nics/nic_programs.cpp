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
class Remake {
 public:
  Remake(const Schedule& given, const std::vector<ProgramPrice>& prices, uint64_t unit_ps, uint32_t nic_cpu,
         Schedule& out)
      : given_(given), prices_(prices), unit_ps_(unit_ps), nic_cpu_(nic_cpu), out_(out) {}

  Program of(const Program& program) {
    nic_ps_ = 0;
    for (const Operation& operation : program.operations) add(operation);
    for (uint32_t before = 0; before < program.size(); ++before) {
      for (const schedule::Edge& edge : program.edges_of(before)) {
        const Place& place = places_[before];
        const uint32_t from = edge.awaits() == Awaits::end ? place.last : place.first;
        builder_.require(places_[edge.to()].first, from, edge.awaits(), edge.join());
      }
    }
    places_.clear();
    return builder_.take();
  }
  [[nodiscard]] uint64_t nic_ps() const { return nic_ps_; }  // of the newest Program

 private:
  struct Place {  // of an operation and what belongs to it
    uint32_t first = 0;
    uint32_t last = 0;
  };

  void add(const Operation& operation) {
    Shape shape = given_.shape(operation);
    if (shape.kind == Kind::compute) shape.size *= unit_ps_;
    const ProgramPrice& price = prices_[operation.shape];
    const uint32_t number = out_.number_of(shape);
    const bool gathers = schedule::has_peer(shape.kind) && shape.kind != Kind::receive && shape.kind != Kind::get;
    if (!gathers) {
      const uint32_t made = builder_.add(number, operation.peer);
      places_.push_back({made, made});
      move(price, shape.cpu);
      return;
    }
    places_.push_back({UINT32_MAX, UINT32_MAX});
    move(price, shape.cpu);
    follow(builder_.add(number, operation.peer));
  }

  // Adds an operation behind those of the newest place.
  void follow(uint32_t operation) {
    Place& place = places_.back();
    if (place.last == UINT32_MAX) {
      place.first = operation;
    } else {
      builder_.require(operation, place.last, Awaits::end);
    }
    place.last = operation;
  }

  uint32_t computation(uint64_t time_ps, uint32_t cpu) {
    return builder_.add(out_.number_of({.size = time_ps, .kind = Kind::compute, .cpu = cpu}), 0);
  }

  void move(const ProgramPrice& price, uint32_t cpu) {
    if (price.cpu_ps > 0) follow(computation(price.cpu_ps, cpu));
    const uint64_t served_ps = std::min(price.nic_ps, price.busy_ps);
    if (served_ps > 0) follow(computation(served_ps, nic_cpu_));
    if (price.nic_ps > served_ps) {
      const uint32_t delay_cpu = nic_cpu_ + 1 + delays_++ % delays_most;
      follow(computation(price.nic_ps - served_ps, delay_cpu));
    }
    nic_ps_ += price.nic_ps;
    if (price.busy_ps == served_ps) return;
    const uint32_t rest = computation(price.busy_ps - served_ps, nic_cpu_);  // that nobody waits for
    if (places_.back().last != UINT32_MAX) builder_.require(rest, places_.back().last, Awaits::end);
    nic_ps_ += price.busy_ps - served_ps;
  }

  const Schedule& given_;
  const std::vector<ProgramPrice>& prices_;
  const uint64_t unit_ps_;
  const uint32_t nic_cpu_;
  Schedule& out_;
  schedule::Builder builder_;
  std::vector<Place> places_;
  uint32_t delays_ = 0;
  uint64_t nic_ps_ = 0;
};

}  // namespace

Result<WithNicPrograms> with_nic_programs(const Schedule& given, const std::vector<ProgramPrice>& prices,
                                          uint64_t unit_ps) {
  if (given.repeats()) return with_nic_programs(given.unrolled(), prices, unit_ps);
  uint64_t nic_cpu = 1;
  for (const Shape& shape : given.shapes()) {
    nic_cpu = std::max(nic_cpu, uint64_t{shape.cpu} + 1);
    uint64_t size = 0;
    if (shape.kind == Kind::compute && __builtin_mul_overflow(shape.size, unit_ps, &size)) {
      return fail(Code::overflow, "a computation of ", shape.size, " does not fit in ps; use a smaller unit");
    }
  }
  if (nic_cpu + delays_most > UINT32_MAX) {
    return fail(Code::unsupported, "the schedule has CPU ", nic_cpu - 1,
                "; with programs on NICs the numbers of CPUs go to ", UINT32_MAX - delays_most - 1);
  }
  WithNicPrograms made{Schedule(given.ranks()), {}};
  Remake remake(given, prices, unit_ps, static_cast<uint32_t>(nic_cpu), made.schedule);
  std::vector<std::vector<uint32_t>> ranks(given.programs().size());
  for (uint32_t rank = 0; rank < given.ranks(); ++rank) ranks[given.number_of_program(rank)].push_back(rank);
  made.nic_ps.resize(given.ranks());
  for (size_t number = 0; number < ranks.size(); ++number) {
    made.schedule.give(ranks[number], remake.of(given.programs()[number]));
    for (const uint32_t rank : ranks[number]) made.nic_ps[rank] = remake.nic_ps();
  }
  return made;
}

}  // namespace spinloom::goal
