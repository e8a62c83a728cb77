#include "simulated/job/job.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace spinloom::job {
namespace {

Job* current_job = nullptr;

}  // namespace

Job* Job::current() { return current_job; }

Job::Job(const JobConfig& config, const Report& report, namespaces::Program program)
    : config_(config), report_(report), program_(std::move(program)) {
  current_job = this;
}

Job::~Job() { current_job = nullptr; }

Result<std::unique_ptr<Job>> Job::create(const JobConfig& config, const Report& report) {
  SPL_ASSIGN(namespaces::Program program,
             namespaces::Program::open(config.command.front(), "or let spinloom sim compile its sources"));
  std::unique_ptr<Job> job(new Job(config, report, std::move(program)));
  const uint32_t ranks = config.world.ranks;
  SPL_TRY(job->load_images());
  SPL_ASSIGN(job->world_, simulated::World::create(job->config_.profile, job->images_.images, config.world));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<simulated::Node*> nodes;
    for (uint32_t rail = 0; rail < job->world_->rails(); ++rail) nodes.push_back(&job->world_->node(rank, rail));
    job->ranks_.push_back(std::make_unique<Rank>(job->world_->events(), nodes, job->config_.profile, job->images_,
                                                 ranks,
                                                 [job = job.get()](Rank& woken) { job->ready_.push_back(&woken); }));
    SPL_TRY(job->ranks_.back()->begin(job->program_, config.command, config.stack_bytes));
    job->ready_.push_back(job->ranks_.back().get());
  }
  job->ranks_left_ = ranks;
  SPL_TRY(job->out_.begin(ranks, config.prefix));
  SPL_TRY(job->err_.begin(ranks, config.prefix));
  return job;
}

Status Job::load_images() {
  for (const auto& [name, path] : config_.images) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<uint8_t> content(std::istreambuf_iterator<char>(file), {});
    Result<hpu::Image> image = hpu::load_elf(content);
    if (!image) return fail(image.error().code, "handler image ", path, ": ", image.error().message);
    images_.names.push_back(name);
    images_.images.push_back(std::move(*image));
  }
  return {};
}

Status Job::run() {
  while (ranks_left_ > 0) {
    if (!ready_.empty()) {
      Rank& rank = *ready_.front();
      ready_.pop_front();
      SPL_TRY(run_rank(rank));
    } else if (!world_->events().step()) {
      return deadlock();
    }
  }
  report_.say("time %lld", static_cast<long long>(world_->events().now().ps));
  return {};
}

Status Job::run_rank(Rank& rank) {
  const uint32_t number = rank.rank().value;
  running_ = &rank;
  rank.resume();
  running_ = nullptr;
  if (!rank.ended()) {
    out_.collect(number);
    err_.collect(number);
    return check_output();
  }
  out_.finish(number);
  err_.finish(number);
  SPL_TRY(check_output());
  if (rank.trouble()) return *rank.trouble();
  --ranks_left_;
  report_.say("rank %u ended %lld %d %llu", number, static_cast<long long>(rank.end().ps), rank.exit_code(),
              static_cast<unsigned long long>(rank.process().call_count));
  if (rank.exit_code() == EXIT_SUCCESS) return {};
  return fail(Code::fault, "rank ", number, " ended with exit code ", rank.exit_code(), " at ", rank.end(), "; ",
              ranks_left_, " of ", ranks_.size(), " ranks had not ended");
}

Status Job::check_output() const {
  if (out_.error() == 0) return {};
  return fail(Code::environment, "standard output cannot be written: ", std::strerror(out_.error()));
}

Error Job::deadlock() const {
  constexpr uint32_t shown_max = 16;
  std::string waiting_ranks;
  uint32_t shown = 0;
  for (const auto& rank : ranks_) {
    if (rank->ended()) continue;
    if (++shown > shown_max) break;
    waiting_ranks += text(shown == 1 ? "" : "; ", "rank ", rank->rank(), " ", rank->process().describe_blocked());
  }
  if (ranks_left_ > shown_max) waiting_ranks += text("; and ", ranks_left_ - shown_max, " more");
  return fail(Code::stalled, "the ranks wait for ever at ", world_->events().now(),
              ", nothing is under way: ", waiting_ranks);
}

void Job::rescue_output() {
  if (running_ == nullptr) return;
  out_.rescue(running_->rank().value);
  err_.rescue(running_->rank().value);
}

}  // namespace spinloom::job
