// spinloom-gateway - a process of a job that only forwards between ranks that do not reach each other. It ends when all
// ranks that have programs have left the job or are lost.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "live/process/live_process.hpp"
#include "live/process/railed_process.hpp"

namespace spinloom::process {
namespace {

constexpr int cannot_start = 3;

// Joins the job with a NIC for each rail, as the programs do. What it returns is not freed: its threads may still ask
// it at the end of the process.
Result<calls::Host*> join_as_gateway(const Settings& settings) {
  SPL_ASSIGN(std::shared_ptr<live::Launcher> launcher, live::find_launcher());
  if (settings.rails.empty()) {
    SPL_ASSIGN(auto nic, LiveProcess::join(settings, std::move(launcher)));
    return nic.release();
  }
  SPL_ASSIGN(auto nic, RailedProcess::join(settings, launcher));
  return nic.release();
}

int forward(int argc, char** argv) {
  if (argc > 1) {
    const bool asked = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    std::fputs(
        "usage: mpiexec -n 1 spinloom-gateway : -n 4 ./program\n"
        "       forwards between ranks that do not reach each other; the programs do not see it as a rank.\n"
        "       SPINLOOM_UDP_ADDRESS=10.1.0.0/16,10.2.0.0/16 names the networks; docs/bridges.md says more\n",
        asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  log::install(
      [](log::Level, std::string_view, std::string_view message) {
        std::fprintf(stderr, "spinloom-gateway: %s\n", printable(message).c_str());
      },
      log::Level::warning);
  Settings settings = read_settings(environ);
  for (const std::string& warning : settings.warnings)
    std::fprintf(stderr, "spinloom-gateway: %s\n", printable(warning).c_str());
  settings.gateway = live::Gateway::alone;
  const auto host = join_as_gateway(settings);
  if (!host) {
    std::fprintf(stderr, "spinloom-gateway: %s\n", printable(host.error().message).c_str());
    return cannot_start;
  }
  std::ignore = (*host)->close();
  return 0;
}

}  // namespace
}  // namespace spinloom::process

int main(int argc, char** argv) { return spinloom::process::forward(argc, argv); }
