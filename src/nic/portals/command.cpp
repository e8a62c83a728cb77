#include "nic/portals/command.hpp"

namespace spinloom::nic {

void abandon(const CommandBody& body) {
  for_each_descriptor(body, [](Descriptor& descriptor) { descriptor.end(); });
  const auto* const append = std::get_if<Append>(&body);
  if (append == nullptr || !append->news || *append->news == Appended::done) return;
  *append->news = Appended::never;
}

}  // namespace spinloom::nic
