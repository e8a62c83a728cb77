#include "ethernet/port/open.hpp"

#include <charconv>
#include <vector>

#include "ethernet/port/packet_port.hpp"
#include "ethernet/port/pcap_port.hpp"
#include "ethernet/port/record_port.hpp"
#include "ethernet/port/tap_port.hpp"
#include "ethernet/port/xdp_port.hpp"

namespace spinloom::port {

namespace {

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> out;
  for (;;) {
    const size_t comma = list.find(',');
    out.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

Result<uint64_t> times_of(const std::string& text) {
  uint64_t times = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, times);
  if (problem == std::errc() && at == end && times > 0) return times;
  return fail(Code::invalid, "'", text, "' is no number of times; write replay:IN.pcap,1000");
}

}  // namespace

Result<PortPointer> open_port(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const size_t comma = text.find(',');
  if (kind == "record" && comma != std::string_view::npos) {
    SPL_ASSIGN(PortPointer inner, open_port(text.substr(comma + 1)));
    return record(std::move(inner), std::string(text.substr(colon + 1, comma - colon - 1)));
  }
  if (colon != std::string_view::npos) {
    const auto parts = parts_of(text.substr(colon + 1));
    const auto part = [&parts](size_t index) { return index < parts.size() ? parts[index] : std::string(); };
    if (kind == "pcap" && parts.size() <= 2) return open_pcap_port(part(0), part(1));
    if (kind == "replay" && (parts.size() == 2 || parts.size() == 3)) {
      SPL_ASSIGN(const uint64_t times, times_of(parts[1]));
      return open_replay_port(part(0), times, part(2));
    }
    if (kind == "tap" && parts.size() <= 2) return open_tap_port(part(0), part(1));
    if (kind == "packet" && parts.size() == 1) return open_packet_port(part(0));
    if (kind == "xdp" && parts.size() == 1) return open_xdp_port(part(0));
  }
  return fail(
      Code::invalid, "'", text,
      "' is no port; there are pcap:IN,OUT replay:IN,TIMES tap:NAME,ADDRESS/BITS packet:INTERFACE xdp:INTERFACE "
      "record:FILE,PORT");
}

}  // namespace spinloom::port
