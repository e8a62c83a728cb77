#include "ethernet/slmp/header.hpp"

#include "base/byte_order.hpp"

namespace spinloom::slmp {
namespace {

struct FlagName {
  uint16_t flag;
  const char* name;
};
constexpr FlagName flag_names[] = {{syn, "SYN"}, {ack, "ACK"}, {eom, "EOM"}, {report, "REPORT"}};
constexpr uint16_t flags_known = syn | ack | eom | report;

constexpr size_t flags_at = 0;
constexpr size_t message_id_at = flags_at + sizeof(Header::flags);
constexpr size_t offset_at = message_id_at + sizeof(Header::message_id);
static_assert(offset_at + sizeof(Header::offset) == header_bytes);

}  // namespace

Status check(const Header& header) {
  const auto reserved = static_cast<uint16_t>(header.flags & ~flags_known);
  if (reserved != 0) {
    return fail(Code::invalid, "SLMP flags ", header.flags, ": the bits ", reserved, " are reserved and must be 0");
  }
  if (header.has(ack) && header.has(syn | eom)) {
    return fail(Code::invalid, "SLMP flags ", header.flags, ": an acknowledgement has neither SYN nor EOM");
  }
  if (header.has(report) && !header.has(ack | syn)) {
    return fail(Code::invalid, "SLMP flags ", header.flags, ": REPORT without SYN or ACK");
  }
  return {};
}

Result<Header> read(std::span<const uint8_t> datagram) {
  if (datagram.size() < header_bytes) {
    return fail(Code::invalid, "a datagram of ", datagram.size(), " bytes is shorter than SLMP's header, ",
                header_bytes, " bytes");
  }
  const uint8_t* const at = datagram.data();
  Header header{load_be<uint16_t>(at + flags_at), load_be<uint32_t>(at + message_id_at),
                load_be<uint32_t>(at + offset_at)};
  SPL_TRY(check(header));
  const size_t report_length = has_report(header) ? report_bytes : 0;
  if (header.has(ack) && datagram.size() != header_bytes + report_length) {
    return fail(Code::invalid, "an SLMP acknowledgement with ", datagram.size() - header_bytes,
                " bytes of payload; it must have ", report_length);
  }
  if (report_length != 0) header.room = load_be<uint32_t>(at + header_bytes);
  return header;
}

std::array<uint8_t, header_bytes> write(const Header& header) {
  std::array<uint8_t, header_bytes> bytes;
  store_be(bytes.data() + flags_at, header.flags);
  store_be(bytes.data() + message_id_at, header.message_id);
  store_be(bytes.data() + offset_at, header.offset);
  return bytes;
}

std::array<uint8_t, report_bytes> write_report(const Header& header) {
  std::array<uint8_t, report_bytes> bytes;
  store_be(bytes.data(), header.room);
  return bytes;
}

std::string print(const Header& header) {
  std::string line;
  for (const auto& [flag, name] : flag_names) {
    if (header.has(flag)) line += text(name, " ");
  }
  line += text("message ", header.message_id, " offset ", header.offset);
  return has_report(header) ? line + text(" room ", header.room) : line;
}

Header acknowledgement(const Header& header, uint32_t room) {
  if (!header.has(report)) return {ack, header.message_id, header.offset};
  return {ack | report, header.message_id, header.offset, room};
}

}  // namespace spinloom::slmp
