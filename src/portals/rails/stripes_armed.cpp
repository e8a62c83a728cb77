// Transfers that the NICs begin when the peer clears them, and what becomes of those whose word never comes.
#include <algorithm>
#include <utility>

#include "portals/rails/stripes.hpp"

namespace spinloom::rails {

// Fragments wait as triggered puts. Long messages have too many of them; the processor starts those.
Status Stripes::arm(uint64_t number, const Transfer& transfer, std::span<const nic::Trigger> clears) {
  constexpr size_t fragments_most = 64;
  const std::vector<Fragment> fragments = fragments_of(transfer);
  if (fragments.empty() || fragments.size() > fragments_most) return {};
  Running& running = running_[number];
  running.transfer = transfer;
  running.left = static_cast<uint32_t>(fragments.size());
  SPL_TRY(begin_parts(running, fragments));
  for (Part& part : running.parts) {
    part.clear = clears[part.rail];
    rails_[part.rail]->interface().bundle_begin();
  }
  for (const Fragment& fragment : fragments) {
    uint32_t part = 0;
    while (running.parts[part].rail != fragment.rail) ++part;
    SPL_TRY(issue({number, part, fragment, false, false}, transfer));
  }
  for (const Part& part : running.parts) SPL_TRY(rails_[part.rail]->interface().bundle_end());
  return {};
}

// The fragments of this rail have left. Those of rails over which no word will come never leave, and are taken back.
Status Stripes::cleared(uint64_t number, uint32_t rail, uint64_t over) {
  const auto found = running_.find(number);
  if (found == running_.end()) return {};
  Running& running = found->second;
  running.cleared = true;
  for (uint32_t at = 0; at < running.parts.size(); ++at) {
    Part& part = running.parts[at];
    if (part.rail == rail && std::exchange(part.clear, std::nullopt)) {
      for (const uint64_t name : part.waiting) {
        Piece& piece = pieces_.at(name);
        rails_[rail]->keep_promise(piece.fragment.length);
        rails_[rail]->begin(running.transfer.rank, piece.fragment.length);
        piece.begun = true;
      }
      part.waiting.clear();
    }
    if ((over >> part.rail & 1) == 0) SPL_TRY(disarm(running, part));
  }
  return move_orphans(number);
}

// Takes back what waits for a word on this rail, unless the word has come.
Status Stripes::disarm(Running& running, Part& part) {
  if (!part.clear) return {};
  portals::Interface& interface = rails_[part.rail]->interface();
  SPL_TRY(interface.ct_cancel(part.clear->counter));
  if (interface.ct_get(part.clear->counter).success >= part.clear->threshold) return {};
  part.clear.reset();
  for (const uint64_t name : std::exchange(part.waiting, {})) {
    const auto found = pieces_.find(name);
    rails_[part.rail]->keep_promise(found->second.fragment.length);
    running.orphans.push_back(found->second);
    pieces_.erase(found);
  }
  return {};
}

// Sends fragments whose rail brings no word by other rails, once the peer has cleared the message over any rail.
Status Stripes::move_orphans(uint64_t number) {
  Running& running = running_.at(number);
  if (!running.cleared) return {};
  for (Piece& piece : std::exchange(running.orphans, {})) {
    piece.begun = true;
    SPL_TRY(repeat(running, piece));  // the last one that fails ends the transfer
  }
  return {};
}

Status Stripes::lost(uint32_t rank, uint32_t rail) {
  std::vector<uint64_t> numbers;
  for (auto& [number, running] : running_) {
    if (running.transfer.rank != rank) continue;
    for (Part& part : running.parts) {
      if (part.rail == rail) SPL_TRY(disarm(running, part));
    }
    if (!running.orphans.empty()) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) SPL_TRY(move_orphans(number));
  return {};
}

// Gives a transfer up. Fragments that are on their way end by themselves.
Status Stripes::give_up(uint64_t number, const Error& error) {
  Running& running = running_.at(number);
  running.ended = error;
  for (Part& part : running.parts) SPL_TRY(disarm(running, part));
  const std::vector<Piece> orphans = std::exchange(running.orphans, {});
  for (const Piece& piece : orphans) SPL_TRY(end_fragment(number, running, piece.part));
  return {};
}

}  // namespace spinloom::rails
