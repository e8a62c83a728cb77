// Scans: each rank gets the reduction of the ranks up to itself, or up to the one before.
#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// A rank's partial results of an exclusive scan: `before`, of the ranks before it, and `total`, which includes its own
// operand. Nothing lands where its own operand lies.
struct ExclusiveScan {
  const Part own;
  const Part received;
  Part before;
  Part total;
  uint64_t free = 0;
  bool has_received = false;

  explicit ExclusiveScan(const Collective& call)
      : own(data(call.sends)), received(at_place(own, data(call.receives).place)), before(received), total(own) {
    if (lands_on_operand(call)) before = at_place(own, take_work());
    total = at_place(own, take_work());
  }
  Place take_work() {
    const Place place{.at = free, .area = Area::work};
    free += own.bytes;
    return place;
  }
  [[nodiscard]] Part partial() const { return has_received ? total : own; }
  // `goes_on`: the total is sent later.
  void receive(uint32_t peer, bool goes_on, Rounds& rounds) {
    const Part landing = has_received ? at_place(own, take_work()) : before;
    rounds.receive(peer, landing);
    if (!has_received && goes_on) rounds.copy(own, total);
    if (has_received) rounds.combine({before, landing, true});
    if (goes_on) rounds.combine({total, landing, true});
    has_received = true;
  }
  void end(Rounds& rounds) const {
    rounds.next();
    if (has_received && before.place != received.place) rounds.copy(before, received);
  }
};

}  // namespace

// After rounds of distances 1, 2, .. d a rank has the operands of the 2 d ranks up to itself.
void binomial_scan(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  if (call.rank == 0 && !call.in_place) reduction.end_alone(rounds);
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    if (distance < call.size - call.rank) rounds.send(call.rank + distance, reduction.partial());
    if (distance <= call.rank) reduction.receive(call.rank - distance, true, rounds);
    rounds.next();
  }
}

void linear_scan(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  if (call.rank == 0 && !call.in_place) reduction.end_alone(rounds);
  if (call.rank > 0) {
    reduction.receive(call.rank - 1, true, rounds);
    rounds.next();
  }
  if (call.rank + 1 < call.size) rounds.send(call.rank + 1, reduction.partial());
}

void binomial_exscan(const Collective& call, Rounds& rounds) {
  ExclusiveScan scan(call);
  for (uint64_t distance = 1; distance < call.size; distance *= 2) {
    const uint64_t above = call.size - call.rank;
    if (distance < above) rounds.send(rank_after(call, distance), scan.partial());
    if (distance <= call.rank) scan.receive(rank_before(call, distance), 2 * distance < above, rounds);
    rounds.next();
  }
  scan.end(rounds);
}

void linear_exscan(const Collective& call, Rounds& rounds) {
  ExclusiveScan scan(call);
  const bool goes_on = call.rank + 1 < call.size;
  if (call.rank > 0) scan.receive(call.rank - 1, goes_on, rounds);
  rounds.next();
  if (goes_on) rounds.send(call.rank + 1, scan.partial());
  scan.end(rounds);
}

}  // namespace spinloom::collective::algorithms
