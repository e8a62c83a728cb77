#include "live/fabric/fabric_faults.hpp"

#include <deque>
#include <utility>

#include "base/random.hpp"
#include "live/node/fault_rates.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t polls_of_delay = 50;

class DisturbedFabric final : public FabricPort {
 public:
  DisturbedFabric(std::unique_ptr<FabricPort> port, const FabricFaults& faults)
      : port_(std::move(port)), faults_(faults), random_(faults.seed, "fabric faults") {}

  [[nodiscard]] Slot* slot(nic::Rank peer) override { return port_->slot(peer); }
  void release_slot(Slot& slot) override { port_->release_slot(slot); }
  [[nodiscard]] bool send(Slot& slot) override {
    if (hits(faults_.refuse)) return false;
    if (hits(faults_.fail)) {
      failed_.push_back(slot.peer);
      port_->release_slot(slot);
      return true;
    }
    if (hits(faults_.drop)) {
      port_->release_slot(slot);
      return true;
    }
    if (hits(faults_.corrupt)) {
      slot.bytes[random_.below(slot.bytes.size())] ^= static_cast<uint8_t>(1u << random_.below(8));
    }
    if (held_.empty() && !hits(faults_.delay)) return port_->send(slot);
    if (held_.empty()) until_ = polls_ + 1 + random_.below(polls_of_delay);
    held_.push_back(&slot);
    return true;
  }
  void poll(std::vector<FabricEvent>& events) override {
    ++polls_;
    while (!held_.empty() && polls_ >= until_ && port_->send(*held_.front())) {
      held_.pop_front();
    }
    for (const nic::Rank peer : std::exchange(failed_, {})) {
      FabricEvent event;
      event.kind = FabricEvent::Kind::failed;
      event.peer = peer;
      events.push_back(event);
    }
    port_->poll(events);
  }
  void release_message(std::span<const uint8_t> bytes) override { port_->release_message(bytes); }
  [[nodiscard]] Result<FabricRegion> lend(const uint8_t* bytes, uint64_t length) override {
    return port_->lend(bytes, length);
  }
  void end_loan(const FabricRegion& region) override { port_->end_loan(region); }
  [[nodiscard]] Result<uint8_t*> make_read_buffer(uint64_t length) override { return port_->make_read_buffer(length); }
  [[nodiscard]] bool read(nic::Rank peer, const FabricRegion& from, uint8_t* to, uint64_t length,
                          uint64_t token) override {
    return !hits(faults_.refuse) && port_->read(peer, from, to, length, token);
  }
  [[nodiscard]] bool arm() override { return held_.empty() && failed_.empty() && port_->arm(); }
  [[nodiscard]] int descriptor() const override { return port_->descriptor(); }
  [[nodiscard]] bool idle() const override { return held_.empty() && port_->idle(); }
  [[nodiscard]] size_t message_bytes() const override { return port_->message_bytes(); }
  [[nodiscard]] bool has_reads() const override { return port_->has_reads(); }
  [[nodiscard]] std::string address() const override { return port_->address(); }
  [[nodiscard]] Status set_addresses(const std::vector<std::string>& addresses) override {
    return port_->set_addresses(addresses);
  }
  [[nodiscard]] std::string provider() const override { return port_->provider(); }
  [[nodiscard]] std::string describe() const override { return port_->describe() + ", disturbed"; }
  [[nodiscard]] std::string describe(nic::Rank peer) const override { return port_->describe(peer); }

 private:
  [[nodiscard]] bool hits(double rate) { return static_cast<double>(random_.below(1'000'000)) < rate * 1e6; }

  std::unique_ptr<FabricPort> port_;
  FabricFaults faults_;
  Random random_;
  uint64_t polls_ = 0;
  uint64_t until_ = 0;  // the poll by which held messages leave
  std::deque<Slot*> held_;
  std::vector<nic::Rank> failed_;
};

}  // namespace

Result<FabricFaults> read_fabric_faults(const std::string& text) {
  FabricFaults faults;
  SPL_TRY(read_rates(text,
                     {{"refuse", &faults.refuse},
                      {"delay", &faults.delay},
                      {"drop", &faults.drop},
                      {"corrupt", &faults.corrupt},
                      {"fail", &faults.fail}},
                     faults.seed));
  return faults;
}

std::unique_ptr<FabricPort> disturb(std::unique_ptr<FabricPort> port, const FabricFaults& faults) {
  return std::make_unique<DisturbedFabric>(std::move(port), faults);
}

}  // namespace spinloom::live
