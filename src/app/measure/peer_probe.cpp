#include "app/measure/peer_probe.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "base/random.hpp"
#include "base/shared_heap.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"
#include "mpi/messages/message.hpp"
#include "mpi/moving/copy_pipeline.hpp"

namespace spinloom::app {
namespace {

using Clock = std::chrono::steady_clock;
// Returns how long a peer may take: ten seconds, and more to write, pack and compare `bytes` bytes.
std::chrono::seconds patience_for(int64_t bytes) {
  constexpr int64_t bytes_a_second = 100'000'000;
  return std::chrono::seconds(10 + bytes / bytes_a_second);
}

constexpr int64_t guard_bytes = 64;

// Memory for a message, with guards: from the heap that peers map, or of this process alone.
class Memory {
 public:
  Memory(int64_t bytes, bool in_heap) : bytes_(static_cast<size_t>(bytes)), in_heap_(in_heap) {
    if (in_heap_) start_ = static_cast<std::byte*>(process_heap().allocate(bytes_));
    if (!in_heap_) start_ = static_cast<std::byte*>(std::aligned_alloc(64, (bytes_ + 63) / 64 * 64));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (in_heap_ && start_ != nullptr) (void)process_heap().release(start_);
    if (!in_heap_) std::free(start_);
  }
  [[nodiscard]] bool ok() const { return start_ != nullptr; }
  [[nodiscard]] std::span<std::byte> span() const { return {start_, bytes_}; }
  void fill(uint64_t seed) const {
    Random random(seed, "app.peer_probe");
    for (size_t at = 0; at < bytes_; at += sizeof(uint64_t)) {
      const uint64_t word = random.next();
      std::memcpy(start_ + at, &word, std::min(sizeof word, bytes_ - at));
    }
  }

 private:
  size_t bytes_;
  bool in_heap_;
  std::byte* start_ = nullptr;
};

template <class Ready>
Status await(std::chrono::seconds patience, const Ready& ready) {
  constexpr int tries_between_looks = 4'096;
  std::optional<Clock::time_point> start;
  for (int tries = 1; !ready(); ++tries) {
    if (tries % tries_between_looks != 0) continue;
    if (!start) start = Clock::now();
    if (Clock::now() - *start > patience) return fail(Code::environment, "the other process does not answer");
    sched_yield();
  }
  return {};
}

}  // namespace

// One record at a time, from each rank to the other.
struct PeerProbe::MailSlot {
  alignas(128) std::atomic<uint64_t> sent;
  uint8_t record[mpi::Record::least];
  alignas(128) std::atomic<uint64_t> meetings;  // the number of times that its rank has come to meet()
};

struct PeerProbe::Impl {
  static_assert(2 * sizeof(MailSlot) <= mailbox_bytes);
  mpi::CopyPipeline pipeline;
  MailSlot* slots = nullptr;
  uint32_t rank = 0;
  uint64_t received = 0;
  std::chrono::seconds patience = patience_for(0);

  [[nodiscard]] uint32_t peer() const { return 1 - rank; }

  Status meet() {
    const uint64_t times = ++slots[rank].meetings;
    return await(patience, [&] { return slots[peer()].meetings.load() >= times; });
  }

  Status send(const mpi::Message& message, mpi::Way way) {
    const bool offers = way != mpi::Way::staged;
    const auto mode = way == mpi::Way::cma     ? mpi::CopyPipeline::CopyMode::cma
                      : way == mpi::Way::joint ? mpi::CopyPipeline::CopyMode::both
                                               : mpi::CopyPipeline::CopyMode::receiver;
    auto pending = offers ? pipeline.offer(message, mode) : pipeline.prepare(message.bytes());
    if (!pending) return fail(Code::exhausted, "no room for a message of ", message.bytes(), " B");
    std::memcpy(slots[rank].record, pending->record(), sizeof slots[rank].record);
    slots[rank].sent.fetch_add(1, std::memory_order_release);
    if (!offers) pipeline.load(*pending, message);
    if (!offers) return {};
    pending->receiver = peer();
    return await(patience, [&] {
      pipeline.help(*pending, message);
      if (!mpi::CopyPipeline::is_returned(*pending)) return mpi::CopyPipeline::is_done(*pending);
      pipeline.load(*pending, message);
      return false;
    });
  }

  Status receive(const mpi::Message& into) {
    ++received;
    SPL_TRY(await(patience, [&] { return slots[peer()].sent.load(std::memory_order_acquire) >= received; }));
    const auto record = pipeline.read(slots[peer()].record, mpi::Record::least);
    if (!record) return fail(Code::mismatch, "what came is no record");
    return pipeline.land(*record, into);
  }
};

PeerProbe::PeerProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PeerProbe::~PeerProbe() {
  impl_->pipeline.end();
  munmap(impl_->slots, mailbox_bytes);
}

Result<std::unique_ptr<PeerProbe>> PeerProbe::open(const std::string& name, const std::string& mailbox, uint32_t rank) {
  if (rank > 1) return fail(Code::invalid, "rank is ", rank, ", it must be 0 or 1");
  auto impl = std::make_unique<Impl>();
  impl->rank = rank;
  const int descriptor = ::open(mailbox.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return fail(Code::environment, mailbox, ": ", std::strerror(errno));
  void* const mapped = mmap(nullptr, mailbox_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (mapped == MAP_FAILED) return fail(Code::environment, "mmap of ", mailbox, ": ", std::strerror(errno));
  impl->slots = static_cast<MailSlot*>(mapped);
  mpi::Settings settings;
  settings.staging_bytes = int64_t{1} << 47;  // no limit but that of the machine's memory
  SPL_TRY(impl->pipeline.begin(name, rank, 2, 2, settings));
  std::unique_ptr<PeerProbe> probe(new PeerProbe(std::move(impl)));
  SPL_TRY(probe->impl_->meet());
  probe->impl_->pipeline.notice();
  SPL_TRY(probe->impl_->meet());
  return probe;
}

Result<std::vector<double>> PeerProbe::measure(const std::string& type_text, int64_t count, mpi::Way way, bool in_heap,
                                               int samples) {
  Impl& impl = *impl_;
  SPL_ASSIGN(const layout::Type type, layout::parse(type_text));
  SPL_ASSIGN(const layout::Committed committed, layout::Committed::commit(type));
  SPL_ASSIGN(const layout::oracle::Reach reach, committed.reach(count));
  const mpi::FormPointer form = mpi::make_form(type);
  const int64_t bytes = type.size() * count;
  if (bytes <= 0) return fail(Code::unsupported, "a message of zero bytes takes no time");
  if (way == mpi::Way::pass) return fail(Code::invalid, "there is no MPI here");
  if (!impl.pipeline.can_reach(impl.peer()))
    return fail(Code::environment, "the two processes cannot map each other's heap");
  if (way == mpi::Way::cma && !impl.pipeline.can_read(impl.peer())) {
    return fail(Code::environment, "the two processes cannot read each other's memory by system calls");
  }
  const int64_t base = std::max<int64_t>(0, -reach.first) + guard_bytes;
  const int64_t span = base + std::max<int64_t>(0, reach.last) + guard_bytes;
  const Memory send_memory(span, in_heap);
  const Memory receive_memory(span, in_heap);
  if (!send_memory.ok() || !receive_memory.ok())
    return fail(Code::exhausted, "no memory for a message that spans ", span, " B");
  const mpi::Message source(*form, count, send_memory.span().data() + base);
  const mpi::Message target(*form, count, receive_memory.span().data() + base);
  if ((way == mpi::Way::mapped || way == mpi::Way::joint) && !mpi::CopyPipeline::is_mapped(source)) {
    return fail(Code::environment, "the message does not lie in memory that peers map");
  }

  const auto exchange_once = [&]() -> Status {
    if (impl.rank == 0) {
      SPL_TRY(impl.send(source, way));
      return impl.receive(target);
    }
    SPL_TRY(impl.receive(target));
    return impl.send(source, way);
  };
  // The bytes that the peer sends are made here, too, to compare with them.
  impl.patience = patience_for(span + bytes);
  impl.received = impl.slots[impl.peer()].sent.load();  // an earlier message may have been given up
  std::vector<std::byte> packed(static_cast<size_t>(bytes));
  send_memory.fill(2 + impl.peer());
  SPL_TRY(layout::oracle::pack(type, count, send_memory.span().data() + base, packed));
  send_memory.fill(2 + impl.rank);
  receive_memory.fill(1);
  std::vector<std::byte> before(receive_memory.span().begin(), receive_memory.span().end());
  SPL_TRY(impl.meet());
  SPL_TRY(exchange_once());
  SPL_TRY(layout::oracle::compare_over(type, count, packed, receive_memory.span(), base, before));
  packed = {};
  before = {};

  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    send_memory.fill(2 + impl.rank);  // programs write what they send; else its lines would be in the receiver's caches
    SPL_TRY(impl.meet());
    const auto begin = Clock::now();
    SPL_TRY(exchange_once());
    const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
    times.push_back(spent.count() / 2);
  }
  SPL_TRY(impl.meet());  // neither frees its memory while the other may still read it
  return times;
}

}  // namespace spinloom::app
