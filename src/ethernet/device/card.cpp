// Makes a card of its parts.
#include "ethernet/device/card.hpp"

#include <algorithm>

namespace spinloom::ethernet {

Card::Card(const Options& options, PortPointer wire, PortPointer host)
    : options_(options),
      wire_(std::move(wire)),
      host_(std::move(host)),
      windows_(options.limits.nic_memory_bytes),
      installed_(options.limits.matcher.rule_sets),
      batch_(options.batch),
      initialised_(options.limits.matcher.rule_sets) {}

Result<std::unique_ptr<Card>> Card::create(const Options& requested, PortPointer wire, PortPointer host) {
  Options options = requested;
  if (options.batch == 0) return fail(Code::invalid, "a NIC takes at least one frame at a time (Options::batch)");
  const auto longest = static_cast<uint32_t>(wire->frame_bytes_max());
  options.limits.frame_bytes_max = std::min(options.limits.frame_bytes_max, longest);
  options.limits.host_frames = std::max(options.limits.host_frames, options.batch);
  std::unique_ptr<Card> card(new Card(options, std::move(wire), std::move(host)));
  SPL_ASSIGN(card->nic_, frames::Nic::create(options.limits));
  SPL_ASSIGN(card->library_, live::HandlerLibrary::create());
  SPL_ASSIGN(card->packet_memory_, host::SharedMemory::create(card->nic_->packet_memory().bytes()));
  SPL_ASSIGN(card->nic_memory_, host::SharedMemory::create(options.limits.nic_memory_bytes));
  return card;
}

}  // namespace spinloom::ethernet
