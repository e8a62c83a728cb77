// AF_XDP over all scenarios of frame ports.
#include "ethernet/port/testing/live_wire.hpp"

namespace spinloom::port::test {
namespace {

SPINLOOM_PORT_SUITE(XdpWays, (std::vector<PortWay>{
                                 {"xdp", [](const Frames&) { return live_wire("xdp:nic0", "packet:host0"); }}}));

}  // namespace
}  // namespace spinloom::port::test
