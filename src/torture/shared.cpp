// All ranks change the same words of one rank at the same time. Fetch-and-add must give each number once, and to each
// rank in growing order. The values of swaps must form one chain. Sums must add up.
#include <algorithm>
#include <cstring>

#include "torture/exchange.hpp"

namespace spinloom::torture {
namespace {

using nic::EventKind;

class Shared final : public Exchange {
 public:
  Shared(World& world, uint32_t id) : Exchange(world, id, Work::shared) {}

  Status begin() override {
    to_ = any_rank();
    nic::Entry entry;
    words_.fill(0);
    words_[1] = first_value;
    entry.start = reinterpret_cast<uint8_t*>(words_.data());
    entry.length = sizeof words_;
    entry.match_bits = match_bits();
    entry.user_ptr = user_ptr_of(63);
    entry.options.op_get = true;
    entry.options.event_comm_disable = true;
    entry.options.ct_comm = true;
    entry.counter = host(to_).landed;
    SPL_ASSIGN(entry_, world_.interface(to_).me_append(host(to_).portal, entry));
    const uint32_t operations = static_cast<uint32_t>(4 + random().below(9));
    requests_.resize(operations);
    for (uint32_t i = 0; i < operations; ++i) SPL_TRY(start_request(i));
    return {};
  }

  Status finish() override {
    SPL_TRY(unlink(to_, entry_));
    std::vector<uint64_t> tickets;
    std::vector<uint64_t> values_read = {words_[1]};
    std::vector<uint64_t> values_written = {first_value};
    uint64_t sum = 0;
    for (const Request& request : requests_) {
      switch (request.word) {
        case 0: tickets.push_back(request.before); break;
        case 1:
          values_read.push_back(request.before);
          values_written.push_back(request.source);
          break;
        default: sum += request.source; break;
      }
    }
    std::sort(tickets.begin(), tickets.end());
    for (size_t i = 0; i < tickets.size(); ++i) {
      if (tickets[i] != i) return trouble(text("nobody, or two, got the number ", i));
    }
    if (words_[0] != tickets.size()) return trouble(text(tickets.size(), " ones added up to ", words_[0]));
    std::sort(values_read.begin(), values_read.end());
    std::sort(values_written.begin(), values_written.end());
    if (values_read != values_written) return trouble("the swaps are not one chain");
    if (words_[2] != sum) return trouble(text("sums are ", words_[2], ", not ", sum));
    return {};
  }

 private:
  static constexpr uint64_t first_value = 99;
  struct Request {
    uint32_t from = 0;
    uint32_t word = 0;
    uint64_t source = 0;
    uint64_t before = 0;
  };

  Status start_request(uint32_t i) {
    Request& request = requests_[i];
    request.from = any_rank();
    request.word = static_cast<uint32_t>(random().below(3));
    request.source = request.word == 0 ? 1 : 1000 + random().below(1 << 20);
    ++world_.messages;
    ++host(to_).landed_expected.success;
    nic::Atomic atomic;
    atomic.datatype = nic::Datatype::uint64;
    atomic.operation = request.word == 1 ? nic::AtomicOperation::swap : nic::AtomicOperation::sum;
    nic::Put& put = atomic.put;
    put.local = reinterpret_cast<const uint8_t*>(&request.source);
    put.length = sizeof request.source;
    put.target = nic::Rank{to_};
    put.portal = host(to_).portal;
    put.match_bits = match_bits();
    put.remote_offset = uint64_t{request.word} * 8;
    put.queue = host(request.from).departures;
    put.user_ptr = user_ptr_of(i);
    put.event_send_disable = true;
    if (request.word == 2) {
      put.ack_request = nic::AckRequest::ack;
      nic::Event ack;
      ack.kind = EventKind::ack;
      ack.manipulated_bytes = 8;
      ack.remote_offset = put.remote_offset;
      expect(i, ack);
      return world_.interface(request.from).atomic(atomic);
    }
    nic::ReplyTo reply;
    reply.local = reinterpret_cast<uint8_t*>(&request.before);
    reply.queue = host(request.from).departures;
    reply.user_ptr = user_ptr_of(i);
    atomic.fetch = reply;
    nic::Event event;
    event.kind = EventKind::reply;
    event.manipulated_bytes = 8;
    event.remote_offset = put.remote_offset;
    expect(i, event);
    return world_.interface(request.from).atomic(atomic);
  }

  uint32_t to_ = 0;
  std::array<uint64_t, 3> words_{};
  nic::EntryId entry_;
  std::vector<Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_shared(World& world, uint32_t id) { return std::make_unique<Shared>(world, id); }

}  // namespace spinloom::torture
