#include "portals/strategies/choice.hpp"

namespace spinloom::strategies {

Strategy choose(const Message& message, const NicFacts& facts, const HandlerCost& cost, Strategy general) {
  if (message.bytes == 0) return Strategy::host_mpitypes;
  if (message.blocks == 1) return Strategy::rdma_direct;
  const Result<Plan> list = plan(Strategy::specialised, message, facts, cost);
  if (!list) return general;
  if (list->image == "vector" || list->nic_memory_bytes() <= facts.state_bytes / list_share) {
    return Strategy::specialised;
  }
  const Result<Plan> other = plan(general, message, facts, cost);
  return other && other->nic_memory_bytes() < list->nic_memory_bytes() ? general : Strategy::specialised;
}

}  // namespace spinloom::strategies
