#include "live/udp/udp_networks.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "live/node/segment.hpp"

namespace spinloom::live {
namespace {

class JoinedPorts final : public DatagramPort {
 public:
  JoinedPorts(std::vector<NetworkPort> ports, int events) : ports_(std::move(ports)), events_(events) {}
  ~JoinedPorts() override { close(events_); }

  // Datagrams that follow each other to one network leave together.
  void send(std::span<const DatagramOut> datagrams) override {
    while (!datagrams.empty()) {
      DatagramPort& port = port_to(datagrams.front().to.address);
      size_t count = 1;
      while (count < datagrams.size() && &port_to(datagrams[count].to.address) == &port) ++count;
      port.send(datagrams.first(count));
      datagrams = datagrams.subspan(count);
    }
  }
  // The ports take turns: each call returns the datagrams of the next one that has some.
  std::span<const DatagramIn> receive() override {
    for (size_t tries = 0; tries < ports_.size(); ++tries) {
      DatagramPort& port = *ports_[turn_++ % ports_.size()].port;
      const auto taken = port.receive();
      if (!taken.empty()) return taken;
    }
    return {};
  }
  bool was_full() const override { return true; }  // another port may have some
  bool has_datagrams() const override {
    return std::any_of(ports_.begin(), ports_.end(), [](const NetworkPort& one) { return one.port->has_datagrams(); });
  }
  UdpAddress address() const override { return ports_.front().port->address(); }
  int descriptor() const override { return events_; }
  size_t datagram_bytes() const override {
    size_t bytes = ports_.front().port->datagram_bytes();
    for (const NetworkPort& one : ports_) bytes = std::min(bytes, one.port->datagram_bytes());
    return bytes;
  }
  size_t receive_capacity() const override {
    size_t most = ports_.front().port->receive_capacity();
    for (const NetworkPort& one : ports_) most = std::min(most, one.port->receive_capacity());
    return most;
  }

 private:
  [[nodiscard]] DatagramPort& port_to(uint32_t address) const {
    for (const NetworkPort& one : ports_) {
      if (one.network.holds(address)) return *one.port;
    }
    return *ports_.front().port;
  }

  std::vector<NetworkPort> ports_;
  int events_;  // readable while one of the ports is
  size_t turn_ = 0;
};

}  // namespace

Result<std::unique_ptr<DatagramPort>> join_ports(std::vector<NetworkPort> ports) {
  SPL_ASSERT(!ports.empty(), "no port");
  if (ports.size() == 1) return std::move(ports.front().port);
  const int events = epoll_create1(EPOLL_CLOEXEC);
  if (events < 0) return fail(Code::environment, "epoll: ", error_text(errno));
  for (const NetworkPort& one : ports) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(events, EPOLL_CTL_ADD, one.port->descriptor(), &event) == 0) continue;
    const int trouble = errno;
    close(events);
    return fail(Code::environment, "epoll: ", error_text(trouble));
  }
  return std::unique_ptr<DatagramPort>(std::make_unique<JoinedPorts>(std::move(ports), events));
}

}  // namespace spinloom::live
