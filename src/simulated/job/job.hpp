// Job - runs the ranks of a program side by side on the nodes of one simulated world.
//
// Contract: run() starts every rank at time zero and goes on until all have ended, one has failed, standard output
//   cannot be written, or nothing can ever happen again. In the last case the Error names the blocking calls of up to
//   16 ranks. Ranks that become ready at the same time go on in the order in which they became ready.
// Invariants: (1) the same program, arguments and settings give the same times and output on every machine, if the
//   program uses no source of input but Portals, without PtlGetUid, and this job's clock; (2) a process has one job at
//   a time: current() is that job.
// Threads: one. Time: virtual.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nic/hpu/elf.hpp"
#include "simulated/job/capture.hpp"
#include "simulated/job/rank.hpp"
#include "simulated/job/report.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::job {

struct JobConfig {
  simulated::Profile profile;
  simulated::WorldOptions world;
  std::map<std::string, std::string> images;  // handler images: name, path
  std::vector<std::string> command;  // program and arguments
  size_t stack_bytes = 8 << 20;
  uint32_t compute_limit_s = 0;  // seconds of processor time that a rank may compute without a call; 0: no limit
  bool prefix = false;  // each line of output begins with its rank
};

class Job {
 public:
  static Result<std::unique_ptr<Job>> create(const JobConfig& config, const Report& report);
  ~Job();

  [[nodiscard]] static Job* current();
  [[nodiscard]] const Rank& rank(uint32_t number) const { return *ranks_.at(number); }
  // The rank whose program runs now, or null.
  [[nodiscard]] Rank* running_rank() const { return running_; }
  [[nodiscard]] const simulated::Profile& rail_profile(uint32_t rail) const {
    return rail == 0 ? config_.profile : config_.world.more_rails.at(rail - 1);
  }

  Status run();

  // Signal handlers call these for reports of crashes and standstills.
  [[nodiscard]] const namespaces::Program& program() const { return program_; }
  void rescue_output();
  void write_unprefixed(const char* bytes, size_t length) const { err_.write_unprefixed(bytes, length); }
  [[nodiscard]] const Report& report() const { return report_; }

 private:
  Job(const JobConfig& config, const Report& report, namespaces::Program program);
  Status load_images();
  Status run_rank(Rank& rank);
  [[nodiscard]] Status check_output() const;
  [[nodiscard]] Error deadlock() const;

  JobConfig config_;
  Report report_;
  namespaces::Program program_;
  Images images_;
  std::unique_ptr<simulated::World> world_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::deque<Rank*> ready_;
  Rank* running_ = nullptr;
  uint32_t ranks_left_ = 0;  // ranks that have not ended
  Capture out_{stdout, 1};
  Capture err_{stderr, 2};
};

}  // namespace spinloom::job
