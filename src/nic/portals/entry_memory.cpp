#include "nic/portals/entry_memory.hpp"

#include <algorithm>

namespace spinloom::nic {

IovecView list_of(const ListedEntry& listed) {
  if (listed.entry.iovec.empty()) return {};
  if (listed.iovec_ends.empty()) listed.iovec_ends = ends_of(listed.entry.iovec);
  return {listed.entry.iovec, listed.iovec_ends};
}

uint64_t address_at(const ListedEntry& listed, uint64_t offset) {
  const Entry& entry = listed.entry;
  if (entry.iovec.empty()) return reinterpret_cast<uint64_t>(entry.start) + offset;
  if (offset == 0) return reinterpret_cast<uint64_t>(entry.iovec.front().base);
  const IovecView list = list_of(listed);
  const size_t index = std::min(element_at(list, offset), list.elements.size() - 1);
  const IovecElement& element = list.elements[index];
  return reinterpret_cast<uint64_t>(element.base) +
         std::min(element.length, offset - (list.ends[index] - element.length));
}

}  // namespace spinloom::nic
