// AF_PACKET over all scenarios of frame ports.
#include "ethernet/port/testing/live_wire.hpp"

namespace spinloom::port::test {
namespace {

SPINLOOM_PORT_SUITE(PacketWays, (std::vector<PortWay>{{"packet", [](const Frames&) {
                                                         return live_wire("packet:nic0", "packet:host0");
                                                       }}}));

}  // namespace
}  // namespace spinloom::port::test
