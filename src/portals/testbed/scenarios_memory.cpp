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
class MemoryWithHole {
 public:
  static constexpr uint64_t half_bytes = 64 << 10;
  static constexpr uint64_t hole_bytes = 4096;
  static constexpr uint64_t total_bytes = 2 * half_bytes + hole_bytes;

  MemoryWithHole() {
    void* const start = mmap(nullptr, total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    start_ = static_cast<uint8_t*>(start);
    munmap(start_ + half_bytes, hole_bytes);
  }
  ~MemoryWithHole() {
    if (start_ == nullptr) return;
    munmap(start_, half_bytes);
    munmap(start_ + half_bytes + hole_bytes, half_bytes);
  }
  MemoryWithHole(const MemoryWithHole&) = delete;
  MemoryWithHole& operator=(const MemoryWithHole&) = delete;
  [[nodiscard]] uint8_t* start() const { return start_; }

 private:
  uint8_t* start_ = nullptr;
};

// The place where a message goes, and whether memory is there.
struct TargetRange {
  uint64_t offset;
  bool is_present;
};

struct Request {
  uint64_t number = 0;
  uint64_t length = 0;
  bool is_present = false;
  bool is_get = false;
  uint64_t offset = 0;
};

Status check_end(const nic::Event& event, const Request& request) {
  const bool ends_well = event.fail == (request.is_present ? Fail::ok : Fail::segv) &&
                         event.manipulated_bytes == (request.is_present ? request.length : 0);
  return expect(ends_well, text("message ", request.number, " of ", request.length, " B to offset ", request.offset,
                                " ended with ", name_of(event.fail), ", mlength ", event.manipulated_bytes));
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
  std::deque<MemoryWithHole> memory(hosts.size());
  std::deque<std::vector<uint8_t>> outgoing;
  std::deque<std::vector<uint8_t>> incoming;
  std::vector<std::vector<Request>> requests(hosts.size());
  for (Host& host : hosts) {
    SPL_TRY(expect(memory[host.rank].start() != nullptr, "no memory for a test"));
    for (uint64_t number = 0; number < sizes.size() * 8 + 1; ++number) {
      nic::Entry entry = host.entry(memory[host.rank].start(), MemoryWithHole::total_bytes, number);
      entry.options.op_get = entry.sparse = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
    }
  }
  for (Host& host : hosts) {
    const Host& target = hosts[(host.rank + 1) % hosts.size()];
    std::vector<Request>& own = requests[host.rank];
    for (size_t i = 0; i < sizes.size(); ++i) {
      const TargetRange places[] = {{i * stride, true},
                                    {MemoryWithHole::half_bytes + 5, false},
                                    {MemoryWithHole::half_bytes - 1, false},
                                    {MemoryWithHole::half_bytes + MemoryWithHole::hole_bytes - 1, false}};
      for (const TargetRange& place : places) {
        for (const bool is_get : {false, true}) {
          const Request& request =
              own.emplace_back(Request{own.size(), sizes[i], place.is_present, is_get, place.offset});
          outgoing.push_back(random_bytes(seed, stream_name(host.rank, i), request.length));
          incoming.emplace_back(request.length, uint8_t{1});
          if (is_get) {
            portals::GetArguments get;
            get.reply.local = incoming.back().data();
            get.reply.queue = host.departures;
            get.reply.user_ptr = get.match_bits = request.number;
            get.length = request.length;
            get.target = nic::Rank{target.rank};
            get.portal = target.portal;
            get.remote_offset =
                place.offset + (place.is_present ? MemoryWithHole::half_bytes + MemoryWithHole::hole_bytes : 0);
            SPL_TRY(host.interface->get(get));
          } else {
            portals::PutArguments put = host.put(outgoing.back(), target, request.number);
            put.event_send_disable = true;
            put.remote_offset = place.offset;
            SPL_TRY(host.interface->put(put));
          }
        }
      }
    }
    const Request& last = own.emplace_back(Request{own.size(), 8, false, true, MemoryWithHole::half_bytes});
    portals::AtomicArguments atomic;
    outgoing.emplace_back(8, uint8_t{1});
    incoming.emplace_back(8, uint8_t{1});
    atomic.put = host.put(outgoing.back(), target, last.number);
    atomic.put.ack_request = nic::AckRequest::none;
    atomic.put.event_send_disable = true;
    atomic.put.remote_offset = last.offset;
    atomic.operation = nic::AtomicOperation::sum;
    atomic.datatype = nic::Datatype::uint64;
    atomic.fetch.emplace();
    atomic.fetch->local = incoming.back().data();
    atomic.fetch->queue = host.departures;
    atomic.fetch->user_ptr = last.number;
    SPL_TRY(host.interface->atomic(atomic));
  }
  for (Host& host : hosts) {
    const std::vector<Request>& theirs = requests[(host.rank + hosts.size() - 1) % hosts.size()];
    SPL_ASSIGN(const auto arrived, host.wait(host.arrivals, theirs.size(), trace));
    for (const nic::Event& event : arrived) SPL_TRY(check_end(event, theirs.at(event.match_bits)));
    SPL_ASSIGN(const auto departed, host.wait(host.departures, requests[host.rank].size(), trace));
    for (const nic::Event& event : departed) SPL_TRY(check_end(event, requests[host.rank].at(event.user_ptr)));
  }
  for (Host& host : hosts) {
    const uint32_t from = (host.rank + static_cast<uint32_t>(hosts.size()) - 1) % static_cast<uint32_t>(hosts.size());
    std::vector<uint8_t> expected(MemoryWithHole::half_bytes);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto bytes = random_bytes(seed, stream_name(from, i), sizes[i]);
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<ptrdiff_t>(i * stride));
    }
    SPL_TRY(expect(std::memcmp(memory[host.rank].start(), expected.data(), expected.size()) == 0,
                   text("rank ", host.rank, " has other bytes before its hole")));
    const uint8_t* const behind = memory[host.rank].start() + MemoryWithHole::half_bytes + MemoryWithHole::hole_bytes;
    SPL_TRY(expect(std::all_of(behind, behind + MemoryWithHole::half_bytes, [](uint8_t byte) { return byte == 0; }),
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
      const bool is_get = number < sizes.size();
      const uint64_t length = is_get ? sizes[number] : std::min<uint64_t>(sizes[number - sizes.size()], 8);
      std::vector<uint8_t> memory = random_bytes(seed, stream_name(host.rank, number), length + 1);
      const std::vector<uint8_t> before(memory.begin(), memory.end() - 1);
      std::vector<uint8_t> incoming(length + 1);
      const std::vector<uint8_t> outgoing(length + 1, 1);
      nic::Entry entry = host.entry(memory.data(), length, number);
      entry.options.op_get = entry.options.use_once = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
      nic::ReplyTo reply;
      reply.local = incoming.data();
      reply.queue = host.arrivals;
      reply.user_ptr = number;
      if (is_get) {
        portals::GetArguments get;
        get.reply = reply;
        get.length = length;
        get.target = nic::Rank{host.rank};
        get.portal = host.portal;
        get.match_bits = number;
        SPL_TRY(host.interface->get(get));
      } else {
        portals::AtomicArguments atomic;
        atomic.put = host.put(outgoing, host, number);
        atomic.put.length = length;
        atomic.put.ack_request = nic::AckRequest::none;
        atomic.put.event_send_disable = true;
        atomic.operation = nic::AtomicOperation::sum;
        atomic.datatype = nic::Datatype::uint64;
        atomic.fetch = reply;
        SPL_TRY(host.interface->atomic(atomic));
      }
      SPL_ASSIGN(const auto events, host.wait(host.arrivals, 3, trace));
      const bool is_ordered = events[0].kind == (is_get ? EventKind::get : EventKind::fetch_atomic) &&
                              events[1].kind == EventKind::auto_unlink && events[2].kind == EventKind::reply;
      SPL_TRY(expect(is_ordered, text("request ", number, " ends with ", name_of(events[0].kind), ", ",
                                      name_of(events[1].kind), ", ", name_of(events[2].kind))));
      SPL_TRY(expect(std::equal(before.begin(), before.end(), incoming.begin()),
                     text("request ", number, " brought others")));
    }
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

}  // namespace spinloom::testbed
