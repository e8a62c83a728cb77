#include "predict/trace/code.hpp"

#include <cstring>
#include <limits>

#include "memory/layout/blob.hpp"

namespace spinloom::trace {
namespace {

constexpr uint32_t slots_max = 1 << 24;

// Adds behind what is there. The room for some more is always there, so that a number costs no call.
class Encoder {
 public:
  explicit Encoder(Bytes& to) : to_(to), at_(to.size()) { to_.resize(at_ + step); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() { to_.resize(at_); }

  void varint(uint64_t value) {
    if (to_.size() - at_ < varint_bytes_max) to_.resize(2 * to_.size());
    at_ = static_cast<size_t>(put_varint(to_.data() + at_, value) - to_.data());
  }
  void signed_varint(int64_t value) { varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void index(uint32_t value) { varint(value == none ? 0 : uint64_t{value} + 1); }
  void bytes(const void* from, size_t length) {
    varint(length);
    if (to_.size() - at_ < length) to_.resize(at_ + length + step);
    if (length != 0) std::memcpy(to_.data() + at_, from, length);
    at_ += length;
  }
  void string(const std::string& text) { bytes(text.data(), text.size()); }

 private:
  static constexpr size_t step = 256;
  Bytes& to_;
  size_t at_;
};

void encode_blocks(Encoder& to, const std::vector<Block>& blocks) {
  to.varint(blocks.size());
  for (const Block& block : blocks) {
    to.varint(block.address);
    to.signed_varint(block.count);
    to.index(block.type);
  }
}

bool decode_blocks(Decoder& from, size_t types, std::vector<Block>& blocks) {
  blocks.resize(from.length());
  for (Block& block : blocks) {
    block.address = from.varint();
    block.count = from.signed_varint();
    block.type = from.index();
    if (block.type != none && block.type >= types) return false;
  }
  return !from.has_failed();
}

template <class Number>
void encode_list(Encoder& to, const std::vector<Number>& list) {
  to.varint(list.size());
  for (const Number one : list) {
    if constexpr (std::is_signed_v<Number>) {
      to.signed_varint(one);
    } else {
      to.index(one);
    }
  }
}

template <class Number>
void decode_list(Decoder& from, std::vector<Number>& list) {
  list.resize(from.length());
  for (Number& one : list) {
    if constexpr (std::is_signed_v<Number>) {
      one = from.int32();
    } else {
      one = from.index();
    }
  }
}

}  // namespace

uint64_t Decoder::varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) return fail();
    const uint8_t byte = *at_++;
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return shift == 63 && byte > 1 ? fail() : value;
  }
  return fail();
}

int64_t Decoder::signed_varint() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

uint32_t Decoder::index() {
  const uint64_t value = varint();
  if (value > none) return static_cast<uint32_t>(fail());
  return value == 0 ? none : static_cast<uint32_t>(value - 1);
}

int32_t Decoder::int32() {
  const int64_t value = signed_varint();
  if (value != static_cast<int32_t>(value)) return static_cast<int32_t>(fail());
  return static_cast<int32_t>(value);
}

std::span<const uint8_t> Decoder::bytes(uint64_t length) {
  if (length > remaining()) {
    fail();
    return {};
  }
  const uint8_t* const first = at_;
  at_ += length;
  return {first, static_cast<size_t>(length)};
}

std::string Decoder::string() {
  const auto found = bytes(varint());
  return {found.begin(), found.end()};
}

size_t Decoder::length() {
  const uint64_t value = varint();
  return static_cast<size_t>(value > remaining() ? fail() : value);
}

void encode(const Head& head, Bytes& bytes) {
  Encoder to(bytes);
  to.varint(head.rank);
  to.varint(head.ranks);
  to.varint(head.begun_ns);
  to.varint(head.begun_unix_ns);
  to.string(head.host);
  to.string(head.mpi);
  to.string(head.program);
  to.varint(head.is_cpu_time ? 1 : 0);
}

bool decode(std::span<const uint8_t> bytes, Head& head) {
  Decoder from(bytes);
  const uint64_t rank = from.varint();
  const uint64_t ranks = from.varint();
  head.begun_ns = from.varint();
  head.begun_unix_ns = from.varint();
  head.host = from.string();
  head.mpi = from.string();
  head.program = from.string();
  if (!from.is_at_end()) head.is_cpu_time = from.varint() != 0;  // older traces end here
  if (ranks > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()) || rank >= ranks) return false;
  head.rank = static_cast<uint32_t>(rank);
  head.ranks = static_cast<uint32_t>(ranks);
  return from.is_complete();
}

void encode(const TypeEntry& type, Bytes& bytes) {
  Encoder to(bytes);
  to.string(type.name);
  to.signed_varint(type.size_bytes);
  to.signed_varint(type.extent_bytes);
  to.varint(type.signature_hash);
  to.string(type.text);
  to.bytes(type.blob.data(), type.blob.size());
}

bool decode(std::span<const uint8_t> bytes, TypeEntry& type) {
  Decoder from(bytes);
  type.name = from.string();
  type.size_bytes = from.signed_varint();
  type.extent_bytes = from.signed_varint();
  type.signature_hash = from.varint();
  type.text = from.string();
  const auto blob = std::as_bytes(from.bytes(from.varint()));
  if (!from.is_complete() || type.size_bytes < 0) return false;
  if (blob.empty()) return true;
  type.blob.assign(blob.begin(), blob.end());
  const auto valid = layout::Blob::validate(type.blob);
  return valid.ok() && valid->size() == type.size_bytes && valid->extent() == type.extent_bytes;
}

void encode(const CommEntry& comm, Bytes& bytes) {
  Encoder to(bytes);
  to.varint(comm.rank);
  encode_list(to, comm.world_ranks);
  encode_list(to, comm.remote_ranks);
  to.varint(comm.has_topology ? 1 : 0);
  encode_list(to, comm.sources);
  encode_list(to, comm.destinations);
  encode_list(to, comm.dims);
  to.index(comm.parent);
}

bool decode(std::span<const uint8_t> bytes, CommEntry& comm) {
  Decoder from(bytes);
  const uint64_t rank = from.varint();
  decode_list(from, comm.world_ranks);
  decode_list(from, comm.remote_ranks);
  const uint64_t has_topology = from.varint();
  decode_list(from, comm.sources);
  decode_list(from, comm.destinations);
  decode_list(from, comm.dims);
  if (!from.is_at_end()) comm.parent = from.index();  // older traces end here
  if (rank >= comm.world_ranks.size() || has_topology > 1) return false;
  const auto size = static_cast<int64_t>(comm.world_ranks.size());
  for (const auto* const list : {&comm.sources, &comm.destinations}) {
    for (const int32_t one : *list) {
      if (one != nobody && (one < 0 || one >= size)) return false;
    }
  }
  comm.rank = static_cast<uint32_t>(rank);
  comm.has_topology = has_topology == 1;
  return from.is_complete();
}

void encode(const Signature& signature, Bytes& bytes) {
  Encoder to(bytes);
  to.varint(static_cast<uint64_t>(signature.call));
  to.varint(static_cast<uint64_t>(signature.form) << 1 | (signature.in_place ? 1 : 0));
  to.index(signature.comm);
  to.signed_varint(signature.peer);
  to.signed_varint(signature.tag);
  to.signed_varint(signature.receive_peer);
  to.signed_varint(signature.receive_tag);
  to.signed_varint(signature.error);
  to.index(signature.window);
  encode_blocks(to, signature.sends);
  encode_blocks(to, signature.receives);
  encode_list(to, signature.requests);
  to.varint(signature.matches.size());
  for (const Match& match : signature.matches) {
    to.index(match.request);
    to.signed_varint(match.source);
    to.signed_varint(match.tag);
    to.signed_varint(match.bytes);
  }
}

bool decode(std::span<const uint8_t> bytes, const RankTrace& trace, Signature& signature) {
  Decoder from(bytes);
  const uint64_t call = from.varint();
  const uint64_t form = from.varint();
  if (call > static_cast<uint64_t>(Call::File_write) || form > 5) return false;
  signature.call = static_cast<Call>(call);
  signature.form = static_cast<CallForm>(form >> 1);
  signature.in_place = (form & 1) != 0;
  signature.comm = from.index();
  if (signature.comm != none && signature.comm >= trace.comms.size()) return false;
  signature.peer = from.int32();
  signature.tag = from.int32();
  signature.receive_peer = from.int32();
  signature.receive_tag = from.int32();
  signature.error = from.int32();
  signature.window = from.index();
  if (!decode_blocks(from, trace.types.size(), signature.sends)) return false;
  if (!decode_blocks(from, trace.types.size(), signature.receives)) return false;
  decode_list(from, signature.requests);
  for (const uint32_t slot : signature.requests) {
    if (slot >= slots_max) return false;
  }
  signature.matches.resize(from.length());
  for (Match& match : signature.matches) {
    match.request = from.index();
    match.source = from.int32();
    match.tag = from.int32();
    match.bytes = from.signed_varint();
    if (match.request != none && match.request >= slots_max) return false;
  }
  return from.is_complete();
}

}  // namespace spinloom::trace
