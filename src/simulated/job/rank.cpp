#include "simulated/job/rank.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "simulated/job/job.hpp"
#include "simulated/node/host_model.hpp"

namespace spinloom::job {

Rank::Rank(simulated::EventQueue& events, std::vector<simulated::Node*> nodes, const simulated::Profile& profile,
           const Images& images, uint32_t size, std::function<void(Rank&)> on_ready)
    : events_(events),
      node_(*nodes.front()),
      profile_(profile),
      images_(images),
      size_(size),
      on_ready_(std::move(on_ready)),
      process_(*this),
      rank_text_(std::to_string(node_.rank().value)),
      size_text_(std::to_string(size)) {
  for (simulated::Node* const node : nodes) {
    if (node != &node_) rail_ports_.emplace_back(*this, *node);
    node->watch([this] {
      if (state_ == State::waiting) wake();
    });
  }
}

portals::Port& Rank::rail_port(uint32_t rail) {
  if (rail == 0) return *this;
  return rail_ports_.at(rail - 1);
}

rails::RailFacts Rank::rail_facts(uint32_t rail) {
  const simulated::Profile& profile = Job::current()->rail_profile(rail);
  return {text("NIC ", rail), profile.link.byte_time, {}};
}

Status Rank::begin(const namespaces::Program& program, const std::vector<std::string>& arguments, size_t stack_bytes) {
  SPL_ASSIGN(fiber_, Fiber::create(stack_bytes, [this, &program, arguments] { run_program(program, arguments); }));
  return {};
}

// The fiber's body.
void Rank::run_program(const namespaces::Program& program, std::vector<std::string> arguments) {
  Result<namespaces::LoadedCopy> copy = program.load();
  if (!copy) {
    trouble_ = copy.error();
    exit_code_ = EXIT_FAILURE;
    return;
  }
  program_ = &program;
  copy_ = *copy;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int exit_code = copy_.main(static_cast<int>(arguments.size()), argv.data(), environ);
  exit_program(exit_code, false);
}

void Rank::exit_program(int exit_code, bool at_once) {
  if (!at_once) program_->run_destructors(copy_);
  if (getpid() != process_id_) {  // a child that the program has forked ends by itself
    if (!at_once) std::fflush(nullptr);
    syscall(SYS_exit_group, exit_code);
  }
  exit_code_ = exit_code;
  end_ = events_.now();
  fiber_->yield();
  SPL_ASSERT(false, "a rank that has ended goes on");
}

void Rank::resume() {
  state_ = State::running;
  calls::Process::enter(&process_);
  std::swap(optarg, library_.option_argument);
  std::swap(optind, library_.option_index);
  std::swap(opterr, library_.option_errors);
  std::swap(optopt, library_.option_letter);
  fiber_->resume();
  std::swap(optarg, library_.option_argument);
  std::swap(optind, library_.option_index);
  std::swap(opterr, library_.option_errors);
  std::swap(optopt, library_.option_letter);
  calls::Process::enter(nullptr);
}

void Rank::pause(State state) {
  state_ = state;
  ++pauses_;
  fiber_->yield();
}

void Rank::wake() {
  state_ = State::running;
  on_ready_(*this);
}

void Rank::on_event(uint32_t, uint64_t argument) {
  if (argument == pauses_ && state_ != State::running) wake();
}

void Rank::sleep(Time duration) {
  constexpr Time longest{Time::never().ps / 2};  // some 53 days: later times would not fit
  if (duration.ps > longest.ps - events_.now().ps) {
    trouble_ = fail(Code::invalid, "rank ", rank(), " sleeps longer than modelled time goes, some 53 days");
    exit_program(EXIT_FAILURE, true);
  }
  events_.at(events_.now() + duration, *this, 0, pauses_ + 1);
  pause(State::sleeping);
}

void Rank::yield() {
  constexpr Time shortest{1000};  // time goes on even if calls are free
  sleep(std::max(profile_.host.call, shortest));
}

Time Rank::read_clock() {
  constexpr uint32_t free_looks = 1000;
  if (pauses_ != pauses_at_read_) clock_reads_ = 0;
  if (++clock_reads_ > free_looks) yield();
  pauses_at_read_ = pauses_;
  return events_.now();
}

void Rank::wait(Time deadline) {
  if (deadline != Time::never()) events_.at(deadline, *this, 0, pauses_ + 1);
  pause(State::waiting);
}

// Nothing becomes readable when a message ends, so the rank looks again after each eighth of what it has waited.
bool Rank::drain() {
  constexpr Time first_pause{1'000'000};  // 1 us
  constexpr Time patience{1'000'000'000'000};  // 1 s
  const auto is_under_way = [this] { return node_.nic().state().messages_outgoing > 0; };
  const Time begun = now();
  while (is_under_way() && now() < begun + patience) wait(now() + std::max(first_pause, Time{(now() - begun).ps / 8}));
  bool may_be_written = false;
  for (uint32_t peer = 0; peer < size_; ++peer) {
    may_be_written = may_be_written || node_.nic().awaited_replies(nic::Rank{peer}).count > 0;
  }
  return !may_be_written;
}

Status Rank::wait() {
  wait(Time::never());
  return {};
}

Status Rank::host_work(const portals::HostWork& work) {
  sleep(simulated::host_cost(profile_, work).total());
  return {};
}

Result<calls::HandlerImage> Rank::image(std::string_view name) {
  for (size_t i = 0; i < images_.names.size(); ++i) {
    if (images_.names[i] != name) continue;
    return calls::HandlerImage{calls::entries_of(images_.images[i]), static_cast<uint32_t>(i)};
  }
  return fail(Code::invalid, "no handler image '", name, "' among the ", images_.names.size(), " of this run");
}

bool Rank::has_ended(uint32_t rank) const {
  const Job* const job = Job::current();
  return job != nullptr && job->rank(rank).ended();
}

uint32_t Rank::user() const { return geteuid(); }

uint32_t Rank::atomic_bytes() const {
  const nic::NicLimits& limits = node_.nic().limits();
  return std::min(limits.atomic_bytes, limits.payload_bytes);
}

}  // namespace spinloom::job
