// Capture files and replays over all scenarios of frame ports.
#include "ethernet/port/testing/file_wire.hpp"

namespace spinloom::port::test {
namespace {

PortWay file_way(const char* name, const std::string& kind, const std::string& times) {
  const auto text_of = [=](const std::string& in, const std::string& out) {
    return kind + ":" + in + times + "," + out;
  };
  return {name, [text_of](const Frames& coming) { return file_wire(text_of, coming); }, true};
}

SPINLOOM_PORT_SUITE(PcapWays, (std::vector<PortWay>{file_way("pcap", "pcap", ""), file_way("replay", "replay", ",1")}));

}  // namespace
}  // namespace spinloom::port::test
