// Host: one-sided puts, gets and atomics into windows, waits for counters, and operations that the NIC begins by
// itself.
#include <algorithm>
#include <utility>

#include "predict/goal/nics/commands.hpp"
#include "predict/goal/nics/host.hpp"

namespace spinloom::goal {

using schedule::Kind;

namespace {

constexpr uint32_t entries_of_window = 3;

nic::EntryId entry_of(uint32_t window, uint32_t place) { return {1 + entries_of_window * window + place, 0}; }

}  // namespace

uint32_t Host::entries_of_setup(Payloads& payloads, uint32_t rank) {
  return 1 + entries_of_window * static_cast<uint32_t>(payloads.windows().of(rank).size());
}

void Host::open_windows(Payloads& payloads, uint32_t rank, std::vector<nic::Command>& commands) {
  const std::span<const Windows::Window> windows = payloads.windows().of(rank);
  if (windows.empty()) return;
  commands.push_back({nic::PortalAlloc{windows_portal, event_queue}, {}, 0});
  for (uint32_t number = 0; number < windows.size(); ++number) {
    const nic::CounterId counter{number, 0};
    commands.push_back({nic::CounterAlloc{counter}, {}, 0});
    nic::Entry entry;
    entry.start = payloads.address(windows[number]);
    entry.length = payloads.bytes_of(windows[number]);
    entry.match_bits = windows[number].tag;
    entry.ignore_bits = number_mask;
    entry.options.op_get = true;  // fetching atomics
    entry.options.event_comm_disable = true;
    nic::Entry part = entry;
    part.match_bits |= is_not_last;
    entry.counter = counter;
    entry.options.ct_comm = true;
    nic::Entry text = entry;
    text.start = const_cast<uint8_t*>(payloads.whole());  // only read: it takes no puts
    text.length = payloads.whole_bytes();
    text.options.op_put = false;
    text.match_bits |= reads_text;
    uint32_t place = 0;
    for (const nic::Entry& one : {entry, part, text}) {
      const nic::EntryId id = entry_of(number, place++);
      commands.push_back({nic::Append{id, windows_portal, nic::ListKind::priority, one}, {}, 0});
    }
  }
}

nic::CounterId Host::counter_of(uint32_t tag) const { return {job_.payloads.windows().number_of(rank_, tag), 0}; }

// The wait needs no CPU.
void Host::begin_arrived(uint32_t number) {
  if (job_.record != nullptr) job_.record->of(rank_, number).begin_ps = now();
  const uint64_t wanted = shape(number).size;
  const nic::CounterId counter = counter_of(shape(number).tag);
  started(number);
  for (const schedule::Edge& edge : program_.edges_of(number)) {
    if (edge.awaits() == schedule::Awaits::end && is_triggered(edge.to())) trigger(edge.to(), {counter, wanted}, edge);
  }
  if (job_.nics.port(rank_).counter(counter).success >= wanted) return ended(number);
  ++job_.unmatched;
  awaited_.push_back({wanted, counter, number});
}

// The NIC begins the operation when the arrivals that it waits for have come; for several, a counter knows how many
// have. The counter stays: if an operation needed only the first, the others count later.
void Host::trigger(uint32_t number, const nic::Trigger& arrival, const schedule::Edge& edge) {
  const uint32_t waits = job_.waits[job_.schedule.number_of_program(rank_)][number];
  if (waits == 1 && edge.join() == schedule::Join::all) return one_sided(number, arrival);
  auto gate = gates_.find(number);
  if (gate == gates_.end()) {
    const auto taken = counters_.take();
    if (!taken) return stop(taken.error());
    gate = gates_.emplace(number, *taken).first;
    submit(nic::CounterAlloc{gate->second});
    one_sided(number, nic::Trigger{gate->second, waits});
  }
  submit(nic::CounterInc{gate->second, {1, 0}}, arrival);
}

void Host::count_arrivals() {
  const portals::Port& port = job_.nics.port(rank_);
  std::vector<uint32_t> done;
  std::erase_if(awaited_, [&](const Awaited& one) {
    if (port.counter(one.counter).success < one.wanted) return false;
    done.push_back(one.operation);
    return true;
  });
  for (const uint32_t number : done) {
    --job_.unmatched;
    ended(number);
  }
}

void Host::one_sided(uint32_t number, const std::optional<nic::Trigger>& trigger) {
  const schedule::Shape& shape = this->shape(number);
  nic::ReplyTo report;
  report.queue = event_queue;
  report.user_ptr = one_sided_mark | number;
  if (shape.kind == Kind::get || shape.kind == Kind::fetch) {
    simulated::ZeroedBytes& memory = fetched_[number];
    memory = job_.payloads.memory(shape.size);
    report.local = job_.payloads.address(memory);
  }
  const Doing doing{job_.schedule, job_.payloads, rank_, number};
  for (const nic::CommandBody& one : one_sided_commands(doing, report, job_.nics.atomic_bytes_most())) {
    submit(one, trigger);
  }
}

void Host::one_sided_done(uint32_t number) {
  if (is_triggered(number)) {  // the NIC began it, and nobody has said when
    if (job_.record != nullptr) {
      Trace& trace = job_.record->of(rank_, number);
      trace.free_ps = trace.begin_ps = trace.worked_ps = now();
    }
    started(number);
  }
  const schedule::Shape& shape = this->shape(number);
  if (const auto reply = fetched_.find(number); reply != fetched_.end()) {
    const uint8_t mask = shape.kind == Kind::fetch ? Windows::before_mask : 0;
    const Status right = job_.payloads.check(reply->second.data(), shape.size, rank_, rank_, number, mask);
    if (!right) return stop(right.error());
    fetched_.erase(reply);
  }
  ended(number);
}

std::optional<Arrivals::Waiter> Host::first_awaited() const {
  if (awaited_.empty()) return {};
  const Awaited& first = *std::ranges::min_element(awaited_, {}, &Awaited::counter);
  return Arrivals::Waiter{first.wanted, job_.nics.port(rank_).counter(first.counter).success, first.operation};
}

}  // namespace spinloom::goal
