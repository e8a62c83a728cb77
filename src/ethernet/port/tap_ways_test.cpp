// A TAP device over all scenarios of frame ports; the other end is the kernel's.
#include "ethernet/port/testing/live_wire.hpp"

namespace spinloom::port::test {
namespace {

SPINLOOM_PORT_SUITE(TapWays, (std::vector<PortWay>{
                                 {"tap", [](const Frames&) { return live_wire("tap:tap0", "packet:tap0"); }}}));

}  // namespace
}  // namespace spinloom::port::test
