// spinloom_torture_run NAME=VALUE ... [--seeds A..B] [--trace] - runs one scenario without Python, for
// tests/torture/mutants.py. Without --seeds it runs seed 1.
//
// It prints "ok RUNS" and exits with 0, or "violation SEED: sentence" and exits with 1. With --trace it prints more
// lines. It exits with 2 if it cannot read its arguments.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "torture/run.hpp"

int main(int argc, char** argv) {
  using namespace spinloom;
  torture::Config config;
  uint64_t first = 1;
  uint64_t last = 1;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--trace") {
      trace = true;
    } else if (argument == "--seeds" && i + 1 < argc) {
      char* end = nullptr;
      first = last = std::strtoull(argv[++i], &end, 10);
      if (std::strncmp(end, "..", 2) == 0) last = std::strtoull(end + 2, nullptr, 10);
    } else if (const size_t sign = argument.find('='); sign != std::string::npos) {
      const Status taken = config.set(argument.substr(0, sign), std::strtoll(argument.c_str() + sign + 1, nullptr, 10));
      if (!taken) {
        std::fprintf(stderr, "%s\n", taken.error().message.c_str());
        return 2;
      }
    } else {
      std::fprintf(stderr, "usage: %s NAME=VALUE ... [--seeds A..B] [--trace]\n", argv[0]);
      return 2;
    }
  }
  for (uint64_t seed = first; seed <= last; ++seed) {
    const torture::Outcome outcome = torture::run(config, seed, trace);
    if (!outcome.violation.empty()) {
      std::printf("violation %llu: %s\n", static_cast<unsigned long long>(seed), outcome.violation.c_str());
      return 1;
    }
    if (trace) {
      std::printf("messages %llu, steps %llu, hash %016llx\n", static_cast<unsigned long long>(outcome.messages),
                  static_cast<unsigned long long>(outcome.steps), static_cast<unsigned long long>(outcome.hash));
    }
  }
  const uint64_t runs = last - first + 1;
  std::printf("ok %llu\n", static_cast<unsigned long long>(runs));
  return 0;
}
