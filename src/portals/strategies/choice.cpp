#include "portals/strategies/choice.hpp"

namespace spinloom::strategies {

Strategy choose(const Message& message, const NicFacts& facts, const HandlerCost& cost, Strategy general) {
  if (message.bytes == 0) return Strategy::host_mpitypes;
  if (message.blocks == 1) return Strategy::rdma_direct;
  const Result<Plan> list_plan = plan(Strategy::specialised, message, facts, cost);
  if (!list_plan) return general;
  if (list_plan->image == "vector" || list_plan->nic_memory_bytes() <= facts.state_bytes / list_share) {
    return Strategy::specialised;
  }
  const Result<Plan> general_plan = plan(general, message, facts, cost);
  return general_plan && general_plan->nic_memory_bytes() < list_plan->nic_memory_bytes() ? general
                                                                                          : Strategy::specialised;
}

}  // namespace spinloom::strategies
