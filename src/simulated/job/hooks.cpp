#include "simulated/job/hooks.hpp"

#include <string_view>

#include "simulated/job/job.hpp"

namespace {

// Null on a thread that a program has started, because such a thread is no rank.
spinloom::job::Rank* running() {
  spinloom::job::Job* job = spinloom::job::Job::current();
  return job == nullptr || spinloom::calls::Process::current() == nullptr ? nullptr : job->running_rank();
}

}  // namespace

bool spl_job_running() { return running() != nullptr; }

void spl_job_exit(int code, bool at_once) { running()->exit_program(code, at_once); }

int64_t spl_job_time_ps() { return running()->read_clock().ps; }

void spl_job_sleep_ps(int64_t duration) { running()->sleep(spinloom::Time{duration}); }

void spl_job_yield() { running()->yield(); }

const char* spl_job_environment(const char* name) {
  const spinloom::job::Rank* rank = running();
  if (rank == nullptr) return nullptr;
  const std::string_view wanted = name;
  if (wanted == "SPINLOOM_RANK") return rank->rank_text().c_str();
  if (wanted == "SPINLOOM_SIZE") return rank->size_text().c_str();
  return nullptr;
}
