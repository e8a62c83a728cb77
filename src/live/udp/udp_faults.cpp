// A port that disturbs the outgoing datagrams of another port, for tests.
#include <deque>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "live/node/fault_rates.hpp"
#include "live/udp/datagram_port.hpp"

namespace spinloom::live {
namespace {

class DisturbedPort final : public DatagramPort {
 public:
  DisturbedPort(std::unique_ptr<DatagramPort> port, const Faults& faults)
      : port_(std::move(port)), faults_(faults), random_(faults.seed, "faults") {}

  void send(std::span<const DatagramOut> datagrams) override {
    sent_.clear();
    for (const DatagramOut& one : datagrams) {
      if (hits(faults_.drop)) continue;
      const int times = hits(faults_.duplicate) ? 2 : 1;
      const bool damaged = hits(faults_.corrupt);
      const bool later = hits(faults_.reorder);
      DatagramOut passed = one;
      if (damaged || later) {
        std::vector<uint8_t>& copy = copies_.emplace_back(one.joined());
        if (damaged) copy[random_.below(copy.size())] ^= static_cast<uint8_t>(1u << random_.below(8));
        passed.pieces = {copy};
      }
      for (int i = 0; i < times && !later; ++i) sent_.push_back(passed);
      if (delayed_) sent_.push_back(*std::exchange(delayed_, {}));
      if (later) delayed_ = passed;
    }
    if (!sent_.empty()) port_->send(sent_);
    while (copies_.size() > 1 || (!copies_.empty() && !delayed_)) copies_.pop_front();  // the last is the delayed one's
  }
  std::span<const DatagramIn> receive() override { return port_->receive(); }
  bool was_full() const override { return port_->was_full(); }
  bool has_datagrams() const override { return port_->has_datagrams(); }
  UdpAddress address() const override { return port_->address(); }
  int descriptor() const override { return port_->descriptor(); }
  size_t datagram_bytes() const override { return port_->datagram_bytes(); }
  size_t receive_capacity() const override { return port_->receive_capacity(); }

 private:
  [[nodiscard]] bool hits(double rate) { return static_cast<double>(random_.below(1'000'000)) < rate * 1e6; }

  std::unique_ptr<DatagramPort> port_;
  Faults faults_;
  Random random_;
  std::vector<DatagramOut> sent_;
  std::deque<std::vector<uint8_t>> copies_;
  std::optional<DatagramOut> delayed_;
};

}  // namespace

Result<Faults> read_faults(const std::string& given) {
  Faults faults;
  SPL_TRY(read_rates(given,
                     {{"drop", &faults.drop},
                      {"duplicate", &faults.duplicate},
                      {"reorder", &faults.reorder},
                      {"corrupt", &faults.corrupt}},
                     faults.seed));
  return faults;
}

std::unique_ptr<DatagramPort> disturb(std::unique_ptr<DatagramPort> port, const Faults& faults) {
  return std::make_unique<DisturbedPort>(std::move(port), faults);
}

}  // namespace spinloom::live
