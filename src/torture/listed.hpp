// ListedMemory - the memory of a descriptor that is a list: pieces in any order, with gaps between them, some of them
// empty.
//
// Contract: the bytes of an operation are those of the list from offset() on. write() is a write by the host: it
//   changes the memory and the expected bytes. expect() notes what the NIC will write. spoil() and check() do as
//   those of Region, gaps included.
// Threads: one owner. Time: none.
#pragma once

#include <numeric>

#include "nic/portals/descriptor.hpp"
#include "torture/region.hpp"

namespace spinloom::torture {

class ListedMemory {
 public:
  ListedMemory(Random& random, uint64_t length) : offset_(random.below(24)) {
    std::vector<nic::IovecElement> elements;
    for (uint64_t bytes_left = offset_ + length + random.below(24); bytes_left > 0;
         bytes_left -= elements.back().length) {
      elements.push_back({nullptr, random.chance(1, 8) ? 0 : std::min(bytes_left, 1 + random.below(100))});
    }
    std::vector<size_t> order(elements.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random.shuffle(order);
    std::vector<uint64_t> places(elements.size());
    uint64_t end = 0;
    for (const size_t index : order) {
      places[index] = end + random.below(8);
      end = places[index] + elements[index].length;
    }
    memory_ = Region(end);
    for (size_t i = 0; i < elements.size(); ++i) elements[i].base = memory_.data() + places[i];
    descriptor_ = nic::Descriptor::make(std::move(elements));
  }

  [[nodiscard]] const nic::DescriptorRef& descriptor() const { return descriptor_; }
  [[nodiscard]] uint64_t offset() const { return offset_; }

  void expect(const uint8_t* from, uint64_t length) {
    for (const nic::IovecElement& piece : nic::pieces_of(descriptor_->list(), offset_, length)) {
      memory_.expect(static_cast<uint64_t>(piece.base - memory_.data()), from, piece.length);
      from += piece.length;
    }
  }
  void write(const uint8_t* from, uint64_t length) {
    expect(from, length);
    std::copy_n(memory_.expected(), memory_.size(), memory_.data());
  }
  void spoil() { memory_.spoil(); }
  [[nodiscard]] Status check(const std::string& what) const { return memory_.check(what); }
  // Returns an Error if the descriptor is still in use although its operations have ended.
  [[nodiscard]] Status check_released(const std::string& what) const {
    if (!descriptor_->in_use()) return {};
    return fail(Code::mismatch, what, ": its memory descriptor is still in use");
  }

 private:
  uint64_t offset_;
  Region memory_;
  nic::DescriptorRef descriptor_;
};

}  // namespace spinloom::torture
