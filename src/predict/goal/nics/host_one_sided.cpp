// Host: one-sided puts, gets and atomics into windows, waits for counters, and operations that the NIC begins by
// itself.
#include <algorithm>
#include <utility>

#include "predict/goal/nics/commands.hpp"
#include "predict/goal/nics/host.hpp"

namespace spinloom::goal {

using schedule::Kind;

namespace {

constexpr uint32_t window_entries = 3;

nic::EntryId entry_of(uint32_t window, uint32_t place) { return {1 + window_entries * window + place, 0}; }

}  // namespace

uint32_t Host::entries_of_setup(Payloads& payloads, uint32_t rank) {
  return 1 + window_entries * static_cast<uint32_t>(payloads.windows().windows_of(rank).size());
}

void Host::open_windows(Payloads& payloads, uint32_t rank, std::vector<nic::Command>& commands) {
  const std::span<const Windows::Window> windows = payloads.windows().windows_of(rank);
  if (windows.empty()) return;
  commands.push_back({nic::PortalAlloc{windows_portal, event_queue}, {}, 0});
  for (uint32_t number = 0; number < windows.size(); ++number) {
    const nic::CounterId counter{number, 0};
    commands.push_back({nic::CounterAlloc{counter}, {}, 0});
    nic::Entry entry;
    entry.start = payloads.address(windows[number]);
    entry.length = payloads.window_bytes(windows[number]);
    entry.match_bits = windows[number].tag;
    entry.ignore_bits = number_mask;
    entry.options.op_get = true;  // fetching atomics
    entry.options.event_comm_disable = true;
    nic::Entry part = entry;
    part.match_bits |= partial_atomic_bit;
    entry.counter = counter;
    entry.options.ct_comm = true;
    nic::Entry random_data = entry;
    random_data.start = const_cast<uint8_t*>(payloads.random_data());  // only read: it takes no puts
    random_data.length = payloads.random_data_bytes();
    random_data.options.op_put = false;
    random_data.match_bits |= get_bit;
    uint32_t place = 0;
    for (const nic::Entry& appended : {entry, part, random_data}) {
      const nic::EntryId id = entry_of(number, place++);
      commands.push_back({nic::Append{id, windows_portal, nic::ListKind::priority, appended}, {}, 0});
    }
  }
}

nic::CounterId Host::counter_of(uint32_t tag) const { return {job_.payloads.windows().window_number(rank_, tag), 0}; }

// The wait needs no CPU.
void Host::begin_arrived(uint32_t number) {
  if (job_.record != nullptr) job_.record->of(rank_, number).begin_ps = now();
  const uint64_t threshold = shape(number).size;
  const nic::CounterId counter = counter_of(shape(number).tag);
  on_begin(number);
  for (const schedule::Edge& edge : program_.edges_of(number)) {
    if (edge.awaits() == schedule::Awaits::end && is_triggered(edge.to()))
      trigger(edge.to(), {counter, threshold}, edge);
  }
  if (job_.nics.port(rank_).counter(counter).success >= threshold) return on_end(number);
  ++job_.unmatched;
  waiting_arrivals_.push_back({threshold, counter, number});
}

// The NIC begins the operation when the arrivals that it waits for have come; for several, a counter knows how many
// have. The counter stays: if an operation needed only the first, the others count later.
void Host::trigger(uint32_t number, const nic::Trigger& arrival, const schedule::Edge& edge) {
  const uint32_t waits = job_.dependency_counts[job_.schedule.number_of_program(rank_)][number];
  if (waits == 1 && edge.join() == schedule::Join::all) return submit_one_sided(number, arrival);
  auto counter = arrival_counters_.find(number);
  if (counter == arrival_counters_.end()) {
    const auto taken = counters_.take();
    if (!taken) return stop(taken.error());
    counter = arrival_counters_.emplace(number, *taken).first;
    submit(nic::CounterAlloc{counter->second});
    submit_one_sided(number, nic::Trigger{counter->second, waits});
  }
  submit(nic::CounterInc{counter->second, {1, 0}}, arrival);
}

void Host::count_arrivals() {
  const portals::Port& port = job_.nics.port(rank_);
  std::vector<uint32_t> done;
  std::erase_if(waiting_arrivals_, [&](const WaitingArrival& arrival) {
    if (port.counter(arrival.counter).success < arrival.threshold) return false;
    done.push_back(arrival.operation);
    return true;
  });
  for (const uint32_t number : done) {
    --job_.unmatched;
    on_end(number);
  }
}

void Host::submit_one_sided(uint32_t number, const std::optional<nic::Trigger>& trigger) {
  const schedule::Shape& shape = this->shape(number);
  nic::ReplyTo report;
  report.queue = event_queue;
  report.user_ptr = one_sided_mark | number;
  if (shape.kind == Kind::get || shape.kind == Kind::fetch) {
    simulated::ZeroedBytes& memory = fetched_[number];
    memory = job_.payloads.allocate(shape.size);
    report.local = job_.payloads.address(memory);
  }
  const OperationRef ref{job_.schedule, job_.payloads, rank_, number};
  for (const nic::CommandBody& one : one_sided_commands(ref, report, job_.nics.atomic_bytes_max())) {
    submit(one, trigger);
  }
}

void Host::on_one_sided_end(uint32_t number) {
  if (is_triggered(number)) {  // the NIC began it, and nobody has said when
    if (job_.record != nullptr) {
      OperationTimes& times = job_.record->of(rank_, number);
      times.ready_ps = times.begin_ps = times.cpu_end_ps = now();
    }
    on_begin(number);
  }
  const schedule::Shape& shape = this->shape(number);
  if (const auto reply = fetched_.find(number); reply != fetched_.end()) {
    const uint8_t mask = shape.kind == Kind::fetch ? Windows::initial_mask : 0;
    const Status status = job_.payloads.check(reply->second.data(), shape.size, rank_, rank_, number, mask);
    if (!status) return stop(status.error());
    fetched_.erase(reply);
  }
  on_end(number);
}

std::optional<Arrivals::Waiter> Host::first_waiting_arrival() const {
  if (waiting_arrivals_.empty()) return {};
  const WaitingArrival& first = *std::ranges::min_element(waiting_arrivals_, {}, &WaitingArrival::counter);
  return Arrivals::Waiter{first.threshold, job_.nics.port(rank_).counter(first.counter).success, first.operation};
}

}  // namespace spinloom::goal
