// A port that disturbs the outgoing datagrams of another port, for tests.
#include <utility>

#include "base/random.hpp"
#include "live/datagram_port.hpp"
#include "live/fault_rates.hpp"

namespace spinloom::live {
namespace {

class DisturbedPort final : public DatagramPort {
 public:
  DisturbedPort(std::unique_ptr<DatagramPort> port, const Faults& faults)
      : port_(std::move(port)), faults_(faults), random_(faults.seed, "faults") {}

  void send(std::span<const DatagramOut> datagrams) override {
    for (const DatagramOut& one : datagrams) {
      if (hits(faults_.drop)) continue;
      const int times = hits(faults_.duplicate) ? 2 : 1;
      std::vector<uint8_t> copy(one.bytes.begin(), one.bytes.end());
      if (hits(faults_.corrupt)) copy[random_.below(copy.size())] ^= static_cast<uint8_t>(1u << random_.below(8));
      const bool later = hits(faults_.reorder);
      for (int i = 0; i < times; ++i) {
        if (!later) transmit(one.to, copy);
      }
      for (const auto& [to, bytes] : std::exchange(delayed_, {})) transmit(to, bytes);
      if (later) delayed_.emplace_back(one.to, std::move(copy));
    }
  }
  std::span<const DatagramIn> take() override { return port_->take(); }
  bool has_some() const override { return port_->has_some(); }
  UdpAddress address() const override { return port_->address(); }
  int descriptor() const override { return port_->descriptor(); }
  size_t datagram_bytes() const override { return port_->datagram_bytes(); }

 private:
  [[nodiscard]] bool hits(double rate) { return static_cast<double>(random_.below(1'000'000)) < rate * 1e6; }
  void transmit(const UdpAddress& to, const std::vector<uint8_t>& bytes) {
    const DatagramOut one{to, bytes};
    port_->send({&one, 1});
  }

  std::unique_ptr<DatagramPort> port_;
  Faults faults_;
  Random random_;
  std::vector<std::pair<UdpAddress, std::vector<uint8_t>>> delayed_;
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
