// What a card is made of.
#include "ethernet/card.hpp"

#include <algorithm>
#include <cstring>

namespace spinloom::ethernet {

Card::Block Card::make_block(uint64_t bytes) {
  constexpr uint64_t page = 4096;
  const uint64_t whole = std::max(page, (bytes + page - 1) / page * page);
  auto* const block = static_cast<uint8_t*>(std::aligned_alloc(page, whole));
  SPL_ASSERT(block != nullptr, "no memory for ", whole, " B");
  std::memset(block, 0, whole);
  return Block(block);
}

Card::Card(const Options& options, PortPointer wire, PortPointer host)
    : options_(options),
      wire_(std::move(wire)),
      host_(std::move(host)),
      windows_(options.limits.nic_memory_bytes),
      installed_(options.limits.matcher.rule_sets),
      batch_(options.batch),
      initialised_(options.limits.matcher.rule_sets) {}

Result<std::unique_ptr<Card>> Card::create(const Options& given, PortPointer wire, PortPointer host) {
  Options options = given;
  if (options.batch == 0) return fail(Code::invalid, "a NIC takes at least one frame at a time (Options::batch)");
  const auto longest = static_cast<uint32_t>(wire->frame_bytes_max());
  options.limits.frame_bytes_max = std::min(options.limits.frame_bytes_max, longest);
  options.limits.host_frames = std::max(options.limits.host_frames, options.batch);
  std::unique_ptr<Card> card(new Card(options, std::move(wire), std::move(host)));
  SPL_ASSIGN(card->nic_, frame::Nic::create(options.limits));
  SPL_ASSIGN(card->library_, live::HandlerLibrary::create());
  card->packet_memory_ = make_block(card->nic_->packet_memory().bytes());
  card->nic_memory_ = make_block(options.limits.nic_memory_bytes);
  return card;
}

}  // namespace spinloom::ethernet
