#include "app/measure/destination.hpp"

#include <algorithm>
#include <cstring>

#include "base/limits.hpp"

namespace spinloom::app {

Result<Inject> inject_named(std::string_view name) {
  if (name == "none") return Inject::none;
  if (name == "flip") return Inject::flip;
  if (name == "skip") return Inject::skip;
  if (name == "stray") return Inject::stray;
  return fail(Code::invalid, "unknown injection \"", name, "\"; there are none, flip, skip, stray");
}

std::vector<uint8_t> random_bytes(uint64_t seed, std::string_view stream, size_t count) {
  Random random(seed, stream);
  std::vector<uint8_t> bytes((count + 7) / 8 * 8);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = random.next();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  bytes.resize(count);
  return bytes;
}

Status Destination::check_span(const layout::Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_TRY(layout::oracle::check_count(type, count));
  const layout::oracle::Reach reach = layout::oracle::reach(type, count);
  const int64_t span = reach.last - reach.first;
  if (span > limits::destination_bytes_max) {
    return fail(Code::overflow, "the message spans ", span, " B of memory, a simulated receive holds at most ",
                limits::destination_bytes_max, " B (destination_bytes_max)");
  }
  if (type.size() * count > span) {
    return fail(Code::invalid,
                "the receive type writes some byte twice, which has no defined result in MPI: ", type.size() * count,
                " B in ", span, " B of memory");
  }
  return {};
}

Result<Destination> Destination::create(const strategies::Message& message, uint64_t seed) {
  SPL_TRY(check_span(message.type, message.count));
  const int64_t span = message.reach.last - message.reach.first;
  Destination destination;
  destination.bytes_ = random_bytes(seed, "app.destination", static_cast<size_t>(span + 2 * guard_bytes));
  destination.before_ = destination.bytes_;
  destination.base_ = guard_bytes - message.reach.first;
  return destination;
}

Status Destination::inject(Inject what, const strategies::Message& message, uint64_t seed) {
  if (what == Inject::none) return {};
  Random random(seed, "app.inject");
  std::vector<layout::oracle::Block> blocks;
  std::vector<bool> covered(bytes_.size());
  layout::oracle::for_each_block(message.type, message.count, [&](const layout::oracle::Block& block) {
    blocks.push_back(block);
    std::fill_n(covered.begin() + (base_ + block.offset), block.bytes, true);
  });
  SPL_ASSERT(!blocks.empty(), "nothing to inject into");
  size_t chosen = random.below(blocks.size());
  if (what == Inject::skip) {
    // A block that already held the message's bytes would hide the injection, so the next block that differs is taken.
    // If no block differs, a bit is flipped instead.
    const auto differs = [&](const layout::oracle::Block& candidate) {
      const std::ptrdiff_t from = base_ + candidate.offset;
      return !std::equal(bytes_.begin() + from, bytes_.begin() + from + candidate.bytes, before_.begin() + from);
    };
    size_t tried = 0;
    while (tried < blocks.size() && !differs(blocks[chosen])) {
      chosen = (chosen + 1) % blocks.size();
      ++tried;
    }
    if (tried == blocks.size()) what = Inject::flip;
  }
  const layout::oracle::Block block = blocks[chosen];
  const auto at = static_cast<size_t>(base_ + block.offset);
  switch (what) {
    case Inject::none: break;
    case Inject::flip:
      bytes_[at + random.below(static_cast<uint64_t>(block.bytes))] ^= uint8_t(1u << random.below(8));
      break;
    case Inject::skip:
      std::copy_n(before_.begin() + static_cast<std::ptrdiff_t>(at), block.bytes,
                  bytes_.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case Inject::stray: {
      size_t stray_index = random.below(bytes_.size());
      while (covered[stray_index])
        stray_index = (stray_index + 1) % bytes_.size();  // the loop ends, because the guards are not covered
      bytes_[stray_index] = static_cast<uint8_t>(bytes_[stray_index] + 1);
      break;
    }
  }
  return {};
}

Status Destination::check(const strategies::Message& message, std::span<const uint8_t> packed) const {
  return layout::oracle::compare(message.type, message.count, std::as_bytes(packed), std::as_bytes(std::span(bytes_)),
                                 base_, std::as_bytes(std::span(before_)));
}

}  // namespace spinloom::app
