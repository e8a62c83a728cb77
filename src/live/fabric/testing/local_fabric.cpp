#include "live/fabric/testing/local_fabric.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace spinloom::live {
namespace {

constexpr uint32_t slots_of_peer = 4;
constexpr size_t messages_of_port = 4096;
constexpr uint64_t address_of_loans = 1 << 12;  // a fabric's addresses need not be those of the process

}  // namespace

class LocalFabric::Port final : public FabricPort {
 public:
  Port(LocalFabric& fabric, uint32_t rank) : fabric_(fabric), rank_(rank), out_(fabric.boxes_.size()) {}

  [[nodiscard]] Slot* slot(nic::Rank peer) override {
    if (out_[peer.value] == slots_of_peer) return nullptr;
    ++out_[peer.value];
    if (free_.empty()) free_.push_back(&slots_.emplace_back());
    Slot* const slot = free_.back();
    free_.pop_back();
    slot->peer = peer;
    slot->bytes.clear();
    return slot;
  }
  void release_slot(Slot& slot) override {
    --out_[slot.peer.value];
    free_.push_back(&slot);
  }
  [[nodiscard]] bool send(Slot& slot) override {
    const nic::Rank peer = slot.peer;
    SPL_ASSERT(slot.bytes.size() <= message_bytes(), "a message of ", slot.bytes.size(), " B");
    const std::lock_guard inside(fabric_.lock_);
    Box& box = fabric_.boxes_[peer.value];
    if (box.swallows) {
      swallowed_ = true;
      return true;  // its slot never comes back
    }
    if (box.struck || fabric_.boxes_[rank_].struck) {
      FabricEvent failed;
      failed.kind = FabricEvent::Kind::failed;
      failed.peer = peer;
      ended_.push_back(failed);
    } else {
      fabric_.put_into(box, slot.bytes);
    }
    sent_.push_back(&slot);  // free from the next poll() on
    return true;
  }

  void poll(std::vector<FabricEvent>& events) override {
    const std::lock_guard inside(fabric_.lock_);
    Box& box = fabric_.boxes_[rank_];
    for (Slot* const slot : std::exchange(sent_, {})) release_slot(*slot);
    for (const FabricEvent& one : std::exchange(ended_, {})) events.push_back(one);
    for (const Read& read : std::exchange(reads_, {})) {
      if (fabric_.boxes_[read.peer.value].swallows) {
        reads_.push_back(read);
      } else {
        events.push_back(end(read));
      }
    }
    eventfd_t wakes = 0;
    std::ignore = eventfd_read(box.wakes, &wakes);
    while (!box.messages.empty()) {
      came_.push_back(std::move(box.messages.front()));
      box.messages.pop_front();
      FabricEvent event;
      event.bytes = came_.back();
      events.push_back(event);
    }
  }
  void release_message(std::span<const uint8_t> bytes) override {
    const auto found =
        std::find_if(came_.begin(), came_.end(), [&](const auto& one) { return one.data() == bytes.data(); });
    SPL_ASSERT(found != came_.end(), "a message that did not come");
    std::fill(found->begin(), found->end(), uint8_t{0xdd});  // a caller that still reads it notices
    if (found == came_.begin()) came_.pop_front();
  }

  [[nodiscard]] Result<FabricRegion> lend(const uint8_t* bytes, uint64_t length) override {
    const std::lock_guard inside(fabric_.lock_);
    const FabricRegion region{fabric_.next_key_++, address_of_loans};
    fabric_.lent_[region.key] = {bytes, length};
    return region;
  }
  void end_loan(const FabricRegion& region) override {
    const std::lock_guard inside(fabric_.lock_);
    fabric_.lent_.erase(region.key);
  }
  [[nodiscard]] Result<uint8_t*> make_read_buffer(uint64_t length) override {
    return read_buffers_.emplace_back(std::make_unique<uint8_t[]>(length)).get();
  }
  [[nodiscard]] bool read(nic::Rank peer, const FabricRegion& from, uint8_t* to, uint64_t length,
                          uint64_t token) override {
    const std::lock_guard inside(fabric_.lock_);
    ++fabric_.reads_;
    reads_.push_back({peer, from, to, length, token});
    return true;
  }

  [[nodiscard]] bool arm() override {
    const std::lock_guard inside(fabric_.lock_);
    return fabric_.boxes_[rank_].messages.empty() && reads_.empty() && ended_.empty() && sent_.empty();
  }
  [[nodiscard]] int descriptor() const override { return fabric_.boxes_[rank_].wakes; }
  [[nodiscard]] bool idle() const override { return sent_.empty() && !swallowed_; }
  [[nodiscard]] size_t message_bytes() const override { return messages_of_port; }
  [[nodiscard]] bool has_reads() const override { return fabric_.has_reads_; }
  [[nodiscard]] std::string address() const override { return std::to_string(rank_); }
  [[nodiscard]] Status set_addresses(const std::vector<std::string>&) override { return {}; }
  [[nodiscard]] std::string provider() const override { return "local"; }
  [[nodiscard]] std::string describe() const override { return "a fabric of this process"; }
  [[nodiscard]] std::string describe(nic::Rank peer) const override { return text("rank ", peer); }

 private:
  struct Read {
    nic::Rank peer;
    FabricRegion from;
    uint8_t* to = nullptr;
    uint64_t length = 0;
    uint64_t token = 0;
  };

  [[nodiscard]] FabricEvent end(const Read& read) {
    FabricEvent event;
    event.kind = FabricEvent::Kind::read;
    event.token = read.token;
    const auto found = fabric_.lent_.find(read.from.key);
    const uint64_t offset = read.from.address - address_of_loans;
    event.succeeded = found != fabric_.lent_.end() && offset <= found->second.second &&
                      read.length <= found->second.second - offset && !fabric_.boxes_[read.peer.value].struck;
    if (event.succeeded) std::memcpy(read.to, found->second.first + offset, read.length);
    return event;
  }

  LocalFabric& fabric_;
  uint32_t rank_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;
  std::vector<uint32_t> out_;  // slots by peer that the caller has or that are on their way
  bool swallowed_ = false;
  std::vector<Slot*> sent_;
  std::vector<FabricEvent> ended_;
  std::vector<Read> reads_;
  std::deque<std::vector<uint8_t>> came_;
  std::vector<std::unique_ptr<uint8_t[]>> read_buffers_;
};

LocalFabric::LocalFabric(uint32_t ranks, bool has_reads) : has_reads_(has_reads), boxes_(ranks) {
  for (Box& box : boxes_) box.wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

LocalFabric::~LocalFabric() {
  for (const Box& box : boxes_) close(box.wakes);
}

std::unique_ptr<FabricPort> LocalFabric::port(uint32_t rank) { return std::make_unique<Port>(*this, rank); }

void LocalFabric::strike(uint32_t rank) {
  const std::lock_guard inside(lock_);
  boxes_[rank].struck = true;
}

void LocalFabric::swallow(uint32_t rank) {
  const std::lock_guard inside(lock_);
  boxes_[rank].swallows = true;
}

void LocalFabric::reverse(uint32_t rank, size_t count) {
  const std::lock_guard inside(lock_);
  boxes_[rank].reversed = count;
}

void LocalFabric::put_into(Box& box, std::vector<uint8_t> bytes) {
  if (box.reversed == 0) {
    box.messages.push_back(std::move(bytes));
  } else {
    box.kept.push_back(std::move(bytes));
    if (box.kept.size() < box.reversed) return;
    for (; !box.kept.empty(); box.kept.pop_back()) box.messages.push_back(std::move(box.kept.back()));
  }
  eventfd_write(box.wakes, 1);
}

uint64_t LocalFabric::reads() {
  const std::lock_guard inside(lock_);
  return reads_;
}

size_t LocalFabric::lent() {
  const std::lock_guard inside(lock_);
  return lent_.size();
}

void LocalFabric::inject(uint32_t rank, std::vector<uint8_t> bytes) {
  const std::lock_guard inside(lock_);
  put_into(boxes_[rank], std::move(bytes));
}

}  // namespace spinloom::live
