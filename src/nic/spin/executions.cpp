#include "nic/spin/executions.hpp"

#include "nic/spin/slot_counts.hpp"

namespace spinloom::spin {

void Executions::check_invariants(uint32_t hpus_busy) const {
  slots_.check_invariants();
  uint32_t waiting = 0;
  uint32_t running = 0;
  SlotCounts hpus;
  for_each([&](const Execution& execution) {
    const HerId id = execution.her.id;
    SPL_ASSERT(execution.stage != Stage::ended || execution.dmas_open > 0, "HER ", id, " is done and was not freed");
    waiting += execution.stage < Stage::running ? 1 : 0;
    if (execution.stage != Stage::running) return;
    ++running;
    hpus.add(execution.her.hpu.value);
    SPL_ASSERT(hpus.of(execution.her.hpu.value) == 1, "HPU ", execution.her.hpu, " runs two handlers");
  });
  SPL_ASSERT(waiting == waiting_, waiting, " executions wait, and ", waiting_, " are counted");
  SPL_ASSERT(running == hpus_busy, running, " handlers run on ", hpus_busy, " HPUs");
}

}  // namespace spinloom::spin
