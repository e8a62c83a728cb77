// A recorded port does what the port does, over all scenarios of frame ports: capture files, and an interface.
#include "ethernet/port/testing/file_wire.hpp"
#include "ethernet/port/testing/live_wire.hpp"

namespace spinloom::port::test {
namespace {

PortWay recorded_files() {
  const auto text_of = [](const std::string& in, const std::string& out) {
    return "record:" + out + ".seen,pcap:" + in + "," + out;
  };
  return {"pcap", [text_of](const Frames& coming) { return file_wire(text_of, coming); }, true};
}

PortWay recorded_packets() {
  return {"packet", [](const Frames&) {
            std::string name = (std::filesystem::temp_directory_path() / "spinloom-record-XXXXXX").string();
            const std::filesystem::path folder = mkdtemp(name.data());
            auto wire = live_wire("record:" + (folder / "seen.pcap").string() + ",packet:nic0", "packet:host0");
            std::filesystem::remove_all(folder);  // the file stays open
            return wire;
          }};
}

SPINLOOM_PORT_SUITE(RecordWays, (std::vector<PortWay>{recorded_files(), recorded_packets()}));

}  // namespace
}  // namespace spinloom::port::test
