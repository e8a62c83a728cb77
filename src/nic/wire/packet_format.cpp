#include "nic/wire/packet_format.hpp"

#include <cstring>
#include <sstream>
#include <type_traits>
#include <utility>

#include "base/byte_order.hpp"
#include "nic/portals/event.hpp"

namespace spinloom::wire {
namespace {

// ---- fields ----

// The only lists of fields. Reading, writing and printing all walk them, so that a new field is added in one place.
static_assert(sizeof(nic::MessageFields) == 96 && sizeof(nic::Packet) == 176, "a field that is in no list below");

template <class Packet, class Visit>
void common_fields(Packet& packet, Visit&& visit) {
  visit("operation", packet.operation);
  visit("source", packet.source.value);
  visit("target", packet.target.value);
  visit("message", packet.message);
  visit("answers", packet.answers);
  visit("message_length", packet.message_length);
  visit("offset", packet.offset);
  visit("missing", packet.missing);
}

template <class Fields, class Visit>
void header_fields(Fields& fields, Visit&& visit) {
  visit("portal_index", fields.portal_index);
  visit("user", fields.user);
  visit("match_bits", fields.match_bits);
  visit("remote_offset", fields.remote_offset);
  visit("hdr_data", fields.hdr_data);
  visit("ack_request", fields.ack_request);
  visit("manipulated_bytes", fields.manipulated_bytes);
  visit("fail", fields.fail);
  visit("list", fields.list);
  visit("requested_bytes", fields.request.requested_bytes);
  visit("reply_to", fields.request.reply_to);
  visit("atomic", fields.request.atomic);
  visit("datatype", fields.request.datatype);
  visit("operand", fields.request.operand[0]);
  visit("operand_high", fields.request.operand[1]);
}

template <class Packet, class Visit>
void all_fields(Packet& packet, Visit&& visit) {
  common_fields(packet, visit);
  if (packet.is_header()) header_fields(packet.fields, visit);
}

// Enumerations travel as the number beneath them.
template <class T, bool = std::is_enum_v<T>>
struct Wire {
  using type = T;
};
template <class T>
struct Wire<T, true> {
  using type = std::underlying_type_t<T>;
};
template <class T>
using WireOf = typename Wire<std::remove_cvref_t<T>>::type;

struct EncodedSize {
  size_t bytes = 0;
  template <class T>
  void operator()(const char*, const T&) {
    bytes += sizeof(WireOf<T>);
  }
};

// ---- read ----

struct Reader {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  const char* missing_field = nullptr;  // the first field that lies beyond the end of the bytes

  template <class T>
  void operator()(const char* name, T& field) {
    if (missing_field != nullptr) return;
    if (bytes.size() - at < sizeof(WireOf<T>)) {
      missing_field = name;
      return;
    }
    field = static_cast<T>(load_le<WireOf<T>>(bytes.data() + at));
    at += sizeof(WireOf<T>);
  }
};

// ---- write ----

struct Writer {
  uint8_t* at;
  template <class T>
  void operator()(const char*, const T& field) {
    store_le(at, static_cast<WireOf<T>>(field));
    at += sizeof(WireOf<T>);
  }
};

Error out_of_range(const char* name, uint64_t value) {
  return fail(Code::invalid, "packet: ", name, " is ", value, ", which does not exist");
}

}  // namespace

// ---- check ----

Status check(const nic::Packet& packet) {
  if (packet.operation > nic::Operation::reply) {
    return out_of_range("operation", static_cast<uint64_t>(packet.operation));
  }
  if (packet.offset > packet.message_length || packet.payload.length > packet.message_length - packet.offset ||
      packet.missing > packet.message_length - packet.offset - packet.payload.length) {
    return fail(Code::invalid, "packet: ", packet.payload.length, " B at offset ", packet.offset, " and ",
                packet.missing, " B missing are not inside a message of ", packet.message_length, " B");
  }
  if (!packet.is_header()) return {};
  const nic::MessageFields& fields = packet.fields;
  if (fields.ack_request > nic::AckRequest::oc_ack) {
    return out_of_range("ack_request", static_cast<uint64_t>(fields.ack_request));
  }
  if (static_cast<uint8_t>(fields.request.atomic) >= nic::atomic_operations) {
    return out_of_range("atomic", static_cast<uint64_t>(fields.request.atomic));
  }
  if (static_cast<uint8_t>(fields.request.datatype) >= nic::datatypes) {
    return out_of_range("datatype", static_cast<uint64_t>(fields.request.datatype));
  }
  if (fields.fail > static_cast<uint8_t>(nic::Fail::no_match)) return out_of_range("fail", fields.fail);
  if (fields.list > nic::ListKind::overflow) return out_of_range("list", static_cast<uint64_t>(fields.list));
  return {};
}

size_t packet_header_bytes(const nic::Packet& packet) {
  EncodedSize size;
  all_fields(packet, size);
  return size.bytes;
}

size_t packet_header_bytes_max() { return packet_header_bytes(nic::Packet{}); }

void encode(const nic::Packet& packet, std::vector<uint8_t>& out) {
  const size_t begin = out.size();
  const size_t header = packet_header_bytes(packet);
  const size_t length = packet.payload.length;
  out.resize(begin + header + length);
  Writer writer{out.data() + begin};
  all_fields(packet, writer);
  if (length > 0) std::memcpy(writer.at, packet.payload.bytes, length);
}

void encode_header(const nic::Packet& packet, std::vector<uint8_t>& out) {
  const size_t begin = out.size();
  out.resize(begin + packet_header_bytes(packet));
  all_fields(packet, Writer{out.data() + begin});
}

Result<nic::Packet> decode(std::span<const uint8_t> bytes) {
  nic::Packet packet;
  Reader reader{bytes};
  all_fields(packet, reader);  // all_fields() reads the offset before it asks is_header()
  if (reader.missing_field != nullptr) {
    return fail(Code::invalid, "packet: ", bytes.size(), " B end before its field ", reader.missing_field);
  }
  if (reader.at < bytes.size()) {
    packet.payload = {nic::PayloadRef::Space::inline_bytes, bytes.data() + reader.at, bytes.size() - reader.at};
  }
  SPL_TRY(check(packet));
  return packet;
}

// ---- describe ----

std::string describe(const nic::Packet& packet) {
  std::ostringstream line;
  all_fields(packet, [&](const char* name, const auto& field) {
    line << name << ' ' << uint64_t{WireOf<decltype(field)>(field)} << ", ";
  });
  line << "payload " << packet.payload.length << " B";
  return line.str();
}

}  // namespace spinloom::wire
