#include "portals/testbed/scenarios_memory.hpp"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <deque>

#include "portals/testbed/scenario_support.hpp"

namespace spinloom::testbed {
namespace {

using nic::EventKind;
using nic::Fail;

// Memory with a page in its middle that is not there.
class Holed {
 public:
  static constexpr uint64_t half = 64 << 10;
  static constexpr uint64_t hole = 4096;
  static constexpr uint64_t whole = 2 * half + hole;

  Holed() {
    void* const start = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    start_ = static_cast<uint8_t*>(start);
    munmap(start_ + half, hole);
  }
  ~Holed() {
    if (start_ == nullptr) return;
    munmap(start_, half);
    munmap(start_ + half + hole, half);
  }
  Holed(const Holed&) = delete;
  Holed& operator=(const Holed&) = delete;
  [[nodiscard]] uint8_t* start() const { return start_; }

 private:
  uint8_t* start_ = nullptr;
};

// The place of a message, and whether the memory there is present.
struct Place {
  uint64_t offset;
  bool good;
};

struct Sent {
  uint64_t number = 0;
  uint64_t length = 0;
  bool good = false;
  bool gets = false;
  uint64_t offset = 0;
};

Status check_end(const nic::Event& event, const Sent& sent) {
  const bool ended =
      event.fail == (sent.good ? Fail::ok : Fail::segv) && event.manipulated_bytes == (sent.good ? sent.length : 0);
  return expect(ended, text("message ", sent.number, " of ", sent.length, " B to offset ", sent.offset, " ended with ",
                            name_of(event.fail), ", mlength ", event.manipulated_bytes));
}

}  // namespace

// Puts, gets and fetching atomics to what is there, to a hole, and across its edges.
Result<std::string> missing_memory(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const std::array<uint64_t, 4> sizes = {2, 8, payload + 1, 2 * payload + 3};
  constexpr uint64_t stride = 16 << 10;
  SPL_TRY(expect(sizes.back() <= stride, text("packets of ", payload, " B")));
  std::deque<Holed> memory(hosts.size());
  std::deque<std::vector<uint8_t>> out;
  std::deque<std::vector<uint8_t>> in;
  std::vector<std::vector<Sent>> sent(hosts.size());
  for (Host& host : hosts) {
    SPL_TRY(expect(memory[host.rank].start() != nullptr, "no memory for a test"));
    for (uint64_t number = 0; number < sizes.size() * 8 + 1; ++number) {
      nic::Entry entry = host.entry(memory[host.rank].start(), Holed::whole, number);
      entry.options.op_get = entry.sparse = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
    }
  }
  for (Host& host : hosts) {
    const Host& target = hosts[(host.rank + 1) % hosts.size()];
    std::vector<Sent>& mine = sent[host.rank];
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Place places[] = {{i * stride, true},
                              {Holed::half + 5, false},
                              {Holed::half - 1, false},
                              {Holed::half + Holed::hole - 1, false}};
      for (const Place& place : places) {
        for (const bool gets : {false, true}) {
          const Sent& one = mine.emplace_back(Sent{mine.size(), sizes[i], place.good, gets, place.offset});
          out.push_back(random_bytes(seed, stream_of(host.rank, i), one.length));
          in.emplace_back(one.length, uint8_t{1});
          if (gets) {
            portals::GetArguments get;
            get.reply.local = in.back().data();
            get.reply.queue = host.departures;
            get.reply.user_ptr = get.match_bits = one.number;
            get.length = one.length;
            get.target = nic::Rank{target.rank};
            get.portal = target.portal;
            get.remote_offset = place.offset + (place.good ? Holed::half + Holed::hole : 0);
            SPL_TRY(host.interface->get(get));
          } else {
            portals::PutArguments put = host.put(out.back(), target, one.number);
            put.event_send_disable = true;
            put.remote_offset = place.offset;
            SPL_TRY(host.interface->put(put));
          }
        }
      }
    }
    const Sent& last = mine.emplace_back(Sent{mine.size(), 8, false, true, Holed::half});
    portals::AtomicArguments atomic;
    out.emplace_back(8, uint8_t{1});
    in.emplace_back(8, uint8_t{1});
    atomic.put = host.put(out.back(), target, last.number);
    atomic.put.ack_request = nic::AckRequest::none;
    atomic.put.event_send_disable = true;
    atomic.put.remote_offset = last.offset;
    atomic.operation = nic::AtomicOperation::sum;
    atomic.datatype = nic::Datatype::uint64;
    atomic.fetch.emplace();
    atomic.fetch->local = in.back().data();
    atomic.fetch->queue = host.departures;
    atomic.fetch->user_ptr = last.number;
    SPL_TRY(host.interface->atomic(atomic));
  }
  for (Host& host : hosts) {
    const std::vector<Sent>& theirs = sent[(host.rank + hosts.size() - 1) % hosts.size()];
    SPL_ASSIGN(const auto arrived, host.wait(host.arrivals, theirs.size(), trace));
    for (const nic::Event& event : arrived) SPL_TRY(check_end(event, theirs.at(event.match_bits)));
    SPL_ASSIGN(const auto told, host.wait(host.departures, sent[host.rank].size(), trace));
    for (const nic::Event& event : told) SPL_TRY(check_end(event, sent[host.rank].at(event.user_ptr)));
  }
  for (Host& host : hosts) {
    const uint32_t from = (host.rank + static_cast<uint32_t>(hosts.size()) - 1) % static_cast<uint32_t>(hosts.size());
    std::vector<uint8_t> expected(Holed::half);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto bytes = random_bytes(seed, stream_of(from, i), sizes[i]);
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<ptrdiff_t>(i * stride));
    }
    SPL_TRY(expect(std::memcmp(memory[host.rank].start(), expected.data(), expected.size()) == 0,
                   text("rank ", host.rank, " has other bytes before its hole")));
    const uint8_t* const behind = memory[host.rank].start() + Holed::half + Holed::hole;
    SPL_TRY(expect(std::all_of(behind, behind + Holed::half, [](uint8_t byte) { return byte == 0; }),
                   text("rank ", host.rank, " has other bytes behind its hole")));
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Gets and fetching atomics of a rank to itself, all on one queue: the reply is the last event of each.
Result<std::string> own_requests(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const std::array<uint64_t, 4> sizes = {0, 8, payload, 3 * payload + 1};
  for (Host& host : hosts) {
    for (uint64_t number = 0; number < 2 * sizes.size(); ++number) {
      const bool gets = number < sizes.size();
      const uint64_t length = gets ? sizes[number] : std::min<uint64_t>(sizes[number - sizes.size()], 8);
      std::vector<uint8_t> memory = random_bytes(seed, stream_of(host.rank, number), length + 1);
      const std::vector<uint8_t> before(memory.begin(), memory.end() - 1);
      std::vector<uint8_t> in(length + 1);
      const std::vector<uint8_t> out(length + 1, 1);
      nic::Entry entry = host.entry(memory.data(), length, number);
      entry.options.op_get = entry.options.use_once = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
      nic::ReplyTo reply;
      reply.local = in.data();
      reply.queue = host.arrivals;
      reply.user_ptr = number;
      if (gets) {
        portals::GetArguments get;
        get.reply = reply;
        get.length = length;
        get.target = nic::Rank{host.rank};
        get.portal = host.portal;
        get.match_bits = number;
        SPL_TRY(host.interface->get(get));
      } else {
        portals::AtomicArguments atomic;
        atomic.put = host.put(out, host, number);
        atomic.put.length = length;
        atomic.put.ack_request = nic::AckRequest::none;
        atomic.put.event_send_disable = true;
        atomic.operation = nic::AtomicOperation::sum;
        atomic.datatype = nic::Datatype::uint64;
        atomic.fetch = reply;
        SPL_TRY(host.interface->atomic(atomic));
      }
      SPL_ASSIGN(const auto events, host.wait(host.arrivals, 3, trace));
      const bool ordered = events[0].kind == (gets ? EventKind::get : EventKind::fetch_atomic) &&
                           events[1].kind == EventKind::auto_unlink && events[2].kind == EventKind::reply;
      SPL_TRY(expect(ordered, text("request ", number, " ends with ", name_of(events[0].kind), ", ",
                                   name_of(events[1].kind), ", ", name_of(events[2].kind))));
      SPL_TRY(
          expect(std::equal(before.begin(), before.end(), in.begin()), text("request ", number, " brought others")));
    }
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

}  // namespace spinloom::testbed
