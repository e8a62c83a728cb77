#include "nic/wire/datagram.hpp"

#include "base/byte_order.hpp"
#include "nic/wire/tag.hpp"

namespace spinloom::wire {
namespace {

constexpr uint32_t magic = 0x574c5053;  // "SPLW"
constexpr uint8_t version = 3;

}  // namespace

size_t begin_datagram(const DatagramHeader& header, std::vector<uint8_t>& out) {
  const size_t start = out.size();
  out.resize(start + datagram_header_bytes);
  uint8_t* const to = out.data() + start;
  store_le(to, magic);
  store_le(to + 4, version);
  store_le(to + 5, uint8_t{0});
  store_le(to + 6, header.flags);
  store_le(to + 8, header.message_id);
  store_le(to + 12, header.offset);
  store_le(to + 16, header.source.value);
  store_le(to + 20, header.target.value);
  store_le(to + 24, header.source_epoch);
  store_le(to + 28, header.target_epoch);
  store_le(to + 32, header.sequence);
  store_le(to + 36, header.received);
  store_le(to + 40, header.window);
  store_le(to + 44, header.ordinal);
  store_le(to + 48, header.echo);
  store_le(to + 52, header.delay_ns);
  return start;
}

void seal_datagram(const SipKey& secret, size_t begin, std::vector<uint8_t>& out, std::span<const uint8_t> body_end) {
  const size_t end = out.size();
  const uint64_t tag = tag_of(secret, {out.data() + begin, end - begin}, body_end);
  out.resize(end + datagram_tag_bytes);
  store_le(out.data() + end, tag);
}

Result<Datagram> open_datagram(const SipKey& secret, std::span<const uint8_t> bytes) {
  if (bytes.size() < datagram_header_bytes + datagram_tag_bytes) {
    return fail(Code::invalid, "datagram: ", bytes.size(), " B, the least is ",
                datagram_header_bytes + datagram_tag_bytes);
  }
  const uint8_t* const from = bytes.data();
  if (load_le<uint32_t>(from) != magic) return fail(Code::invalid, "datagram: it is none of ours, its magic is wrong");
  if (load_le<uint8_t>(from + 4) != version) {
    return fail(Code::invalid, "datagram: version ", int{from[4]}, ", this is version ", int{version});
  }
  const size_t tagged_bytes = bytes.size() - datagram_tag_bytes;
  if (load_le<uint64_t>(from + tagged_bytes) != tag_of(secret, bytes.first(tagged_bytes), {})) {
    return fail(Code::invalid, "datagram: its tag is wrong: damaged, or of another job");
  }
  Datagram datagram;
  DatagramHeader& header = datagram.header;
  header.flags = load_le<uint16_t>(from + 6);
  header.message_id = load_le<uint32_t>(from + 8);
  header.offset = load_le<uint32_t>(from + 12);
  header.source.value = load_le<uint32_t>(from + 16);
  header.target.value = load_le<uint32_t>(from + 20);
  header.source_epoch = load_le<uint32_t>(from + 24);
  header.target_epoch = load_le<uint32_t>(from + 28);
  header.sequence = load_le<uint32_t>(from + 32);
  header.received = load_le<uint32_t>(from + 36);
  header.window = load_le<uint32_t>(from + 40);
  header.ordinal = load_le<uint32_t>(from + 44);
  header.echo = load_le<uint32_t>(from + 48);
  header.delay_ns = load_le<uint32_t>(from + 52);
  datagram.body = bytes.subspan(datagram_header_bytes, tagged_bytes - datagram_header_bytes);
  return datagram;
}

}  // namespace spinloom::wire
