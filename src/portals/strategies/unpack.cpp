#include "portals/strategies/unpack.hpp"

#include <cstring>

#include "base/units.hpp"
#include "memory/layout/width.hpp"
#include "portals/strategies/pieces.hpp"

namespace spinloom::strategies {
namespace {

using Blocks = portals::HostWork::Blocks;

template <class W>
const typename W::Node* node_at(const layout::Blob& blob, uint64_t bytes) {
  return reinterpret_cast<const typename W::Node*>(blob.data() + bytes);
}
template <class Entry, class Node>
const Entry* table_of(const Node* node) {
  return reinterpret_cast<const Entry*>(node + 1);
}

template <class W>
Blocks blocks_of(const layout::Blob& blob, const typename W::Node* node) {
  const uint64_t count = node->count;
  switch (node->kind) {
    case SPL_LEAF_VECTOR: return {count, 0};
    case SPL_LEAF_LIST:
    case SPL_LEAF_RUNS: return {0, count};
    case SPL_NODE_MEMBERS: {
      Blocks sum;
      for (uint64_t i = 0; i < count; ++i) {
        const Blocks member = blocks_of<W>(blob, node_at<W>(blob, table_of<typename W::Member>(node)[i].child));
        sum.in_vectors += member.in_vectors;
        sum.listed += member.listed;
      }
      return sum;
    }
    default: {  // loops and lists of one child
      const Blocks child = blocks_of<W>(blob, node_at<W>(blob, node->child));
      return {count * child.in_vectors, count * child.listed};
    }
  }
}

// Copies a block in elements of type Word, or by memcpy() if Word is void.
template <class Word>
void copy_block(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, from + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
  }
}
template <>
void copy_block<void>(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

template <class Word>
void copy_vector(uint8_t* to, const uint8_t* from, uint64_t count, uint64_t block, int64_t stride) {
  for (uint64_t i = 0; i < count; ++i, to += stride, from += block) copy_block<Word>(to, from, block);
}

// Calls use<Word>() for the widest element that divides addresses, block and stride; void if only bytes do. For long
// blocks Word is void, too, because the library's copy is faster than any loop of words.
constexpr uint64_t block_of_words_max = 64;
template <class Use>
void with_word(uint64_t alignment_bits, uint64_t block, Use&& use) {
  if (block > block_of_words_max) return use.template operator()<void>();
  if ((alignment_bits & 7) == 0) return use.template operator()<uint64_t>();
  if ((alignment_bits & 3) == 0) return use.template operator()<uint32_t>();
  if ((alignment_bits & 1) == 0) return use.template operator()<uint16_t>();
  return use.template operator()<void>();
}

template <class W>
class Unpacker {
 public:
  Unpacker(const layout::Blob& blob, const uint8_t* packed) : blob_(blob), packed_(packed) {}

  void unpack(const typename W::Node* node, uint8_t* base) {
    const uint64_t count = node->count;
    switch (node->kind) {
      case SPL_LEAF_VECTOR: return unpack_vector(node, base);
      case SPL_LEAF_LIST: return unpack_list(node, base);
      case SPL_LEAF_RUNS: return unpack_runs(node, base);
      case SPL_NODE_LOOP:
        for (uint64_t i = 0; i < count; ++i, base += node->stride) unpack(node_at<W>(blob_, node->child), base);
        return;
      case SPL_NODE_LIST:
        for (uint64_t i = 0; i < count; ++i) {
          unpack(node_at<W>(blob_, node->child), base + table_of<typename W::Signed>(node)[i]);
        }
        return;
      default:
        for (uint64_t i = 0; i < count; ++i) {
          const typename W::Member& member = table_of<typename W::Member>(node)[i];
          unpack(node_at<W>(blob_, member.child), base + member.offset);
        }
    }
  }

 private:
  [[nodiscard]] uint64_t address_bits(const uint8_t* base) const {
    return reinterpret_cast<uint64_t>(base) | reinterpret_cast<uint64_t>(packed_);
  }

  void unpack_vector(const typename W::Node* node, uint8_t* base) {
    const uint64_t block = node->block;
    with_word(address_bits(base) | block | static_cast<uint64_t>(node->stride), block,
              [&]<class Word>() { copy_vector<Word>(base, packed_, node->count, block, node->stride); });
    packed_ += node->size;
  }

  void unpack_list(const typename W::Node* node, uint8_t* base) {
    for (uint64_t i = 0; i < node->count; ++i) {
      unpack_block(base + table_of<typename W::Signed>(node)[i], node->block);
    }
  }

  void unpack_runs(const typename W::Node* node, uint8_t* base) {
    const auto* const run = table_of<typename W::Run>(node);
    for (uint64_t i = 0; i < node->count; ++i) unpack_block(base + run[i].offset, run[i + 1].start - run[i].start);
  }

  void unpack_block(uint8_t* to, uint64_t bytes) {
    with_word(address_bits(to) | bytes, bytes, [&]<class Word>() { copy_block<Word>(to, packed_, bytes); });
    packed_ += bytes;
  }

  const layout::Blob& blob_;
  const uint8_t* packed_;
};

template <class W>
void unpack_as(const layout::Blob& blob, const uint8_t* packed, uint8_t* first) {
  Unpacker<W>(blob, packed).unpack(node_at<W>(blob, sizeof(spl_layout_header)), first + blob.header().origin);
}

}  // namespace

Blocks count_blocks(const layout::Blob& blob) {
  if (blob.size() == 0) return {};
  constexpr uint64_t root = sizeof(spl_layout_header);
  return blob.is_narrow() ? blocks_of<layout::Narrow>(blob, node_at<layout::Narrow>(blob, root))
                          : blocks_of<layout::Wide>(blob, node_at<layout::Wide>(blob, root));
}

void unpack(const Message& message, const uint8_t* packed, uint8_t* first) {
  if (message.bytes == 0) return;
  if (message.blob.is_narrow()) return unpack_as<layout::Narrow>(message.blob, packed, first);
  unpack_as<layout::Wide>(message.blob, packed, first);
}

portals::HostWork unpack_work(const Message& message, portals::HostWork::Kind kind, int64_t bytes) {
  portals::HostWork work;
  work.kind = kind;
  work.blocks = count_blocks(message.blob);
  if (bytes < message.bytes) {  // the part of the blocks that corresponds to these bytes, rounded up
    const auto scaled = [&](uint64_t blocks) {
      const auto product = static_cast<unsigned __int128>(blocks) * static_cast<uint64_t>(bytes);
      const auto total = static_cast<uint64_t>(message.bytes);
      return static_cast<uint64_t>((product + total - 1) / total);
    };
    work.blocks = {scaled(work.blocks.in_vectors), scaled(work.blocks.listed)};
  }
  work.bytes = static_cast<uint64_t>(bytes);
  const int64_t packed_lines = div_ceil(message.bytes, host_line_bytes);
  const int64_t line_offset = ((message.reach.first % host_line_bytes) + host_line_bytes) % host_line_bytes;
  const int64_t array_address = packed_lines * host_line_bytes + line_offset;
  const auto end = static_cast<uint64_t>(bytes);
  work.touches = [&message, array_address, end](const portals::HostWork::Touch& touch) {
    for_each_piece(message.blob, message.bytes, [&](int64_t offset, uint64_t at, uint64_t length) {
      if (at >= end) return;
      const uint64_t touched = std::min(length, end - at);
      touch(at, touched, false);
      touch(static_cast<uint64_t>(array_address + offset), touched, true);
    });
  };
  return work;
}

}  // namespace spinloom::strategies
