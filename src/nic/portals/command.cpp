#include "nic/portals/command.hpp"

namespace spinloom::nic {

void abandon(const CommandBody& body) {
  for_each_descriptor(body, [](Descriptor& descriptor) { descriptor.end(); });
  const auto* const append = std::get_if<Append>(&body);
  if (append == nullptr || !append->state || *append->state == AppendState::done) return;
  *append->state = AppendState::never;
}

}  // namespace spinloom::nic
