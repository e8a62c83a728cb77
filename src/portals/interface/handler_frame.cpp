#include "portals/interface/handler_frame.hpp"

#include "base/assert.hpp"

namespace spinloom::portals {

spin::HandlerFrame frame_of(const nic::Her& her, const nic::Nic& engine, std::span<uint8_t> nic_memory) {
  const nic::Context* const context = engine.context(her.context);
  SPL_ASSERT(context != nullptr, "HER ", her.id, " has no context");
  return spin::frame_of(her, *context, nic_memory, engine.limits().hpus);
}

}  // namespace spinloom::portals
