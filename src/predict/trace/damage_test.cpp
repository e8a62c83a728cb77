// Traces of ranks that were killed, and damaged ones: shorter ones, never wrong ones.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <sstream>

#include "predict/trace/testing/programs.hpp"

namespace spinloom::trace {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void put(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
}

struct State {
  std::string trace, open;
  size_t calls = 0;
};
State state_of(const Folder& folder, const Program& program) {
  return {content_of(trace_path(folder.path(), 0)), content_of(open_path(folder.path(), 0)), program.calls.size()};
}

// A rank that is killed while it adds a chunk leaves the open file as before, and any part of the chunk, up to all of
// it.
TEST(TraceOfAKilledRank, HasAllCallsWhereverTheKillFalls) {
  const Folder folder;
  const Folder copy;
  Program program(folder.path(), 1);
  Random random(1);
  int chunks = 0;
  State before = state_of(folder, program);
  while (chunks < 3) {
    program.call();
    const bool closed = std::filesystem::file_size(trace_path(folder.path(), 0)) != before.trace.size();
    if (!closed && program.calls.size() % 16 == 0) before = state_of(folder, program);
    if (!closed) continue;
    ++chunks;
    const State after = state_of(folder, program);
    const size_t added = after.trace.size() - before.trace.size();
    for (size_t cut = 0; cut <= added; cut += 1 + (cut == 0 || cut + 60 > added ? 0 : random.below(added / 8))) {
      put(trace_path(copy.path(), 0), after.trace.substr(0, before.trace.size() + cut));
      put(open_path(copy.path(), 0), before.open);
      const auto found = read_rank(copy.path(), 0);
      ASSERT_TRUE(found.ok()) << found.error().message;
      EXPECT_EQ(found->warning, "");
      program.check(*found, before.calls);
    }
    put(trace_path(copy.path(), 0), after.trace);
    put(open_path(copy.path(), 0), after.open);
    const auto found = read_rank(copy.path(), 0);
    ASSERT_TRUE(found.ok());
    program.check(*found, after.calls);
    before = after;
  }
}

// The child writes until it is killed; its last count of complete calls is what the parent must find.
TEST(TraceOfAKilledRank, IsReadableAfterTheKill) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Folder folder;
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
      Program program(folder.path(), seed);
      for (;;) {
        program.call();
        const size_t calls = program.calls.size();
        if (::write(pipes[1], &calls, sizeof calls) != sizeof calls) _exit(1);
      }
    }
    close(pipes[1]);
    size_t calls = 0;
    const size_t until = 3'000 + 5'000 * seed;
    while (calls < until && ::read(pipes[0], &calls, sizeof calls) == sizeof calls) {
    }
    kill(child, SIGKILL);
    while (::read(pipes[0], &calls, sizeof calls) == sizeof calls) {
    }
    close(pipes[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto found = read_rank(folder.path(), 0);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->warning, "");
    const Folder other;
    Program same(other.path(), seed);
    for (size_t i = 0; i <= calls; ++i) same.call();
    same.check(*found, calls);
  }
}

uint64_t rounds_of_tests() {
  const char* const given = std::getenv("SPINLOOM_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 0;
}

// Flips and cuts: what is found is a beginning of what was written, or a sentence.
TEST(DamagedTrace, IsABeginningOrASentence) {
  const Folder folder;
  const Folder copy;
  Program program(folder.path(), 9);
  for (int i = 0; i < 25'000; ++i) program.call();
  const State whole = state_of(folder, program);
  const uint64_t given = rounds_of_tests();
  const uint64_t first = given != 0 ? given : 1;
  const uint64_t last = given != 0 ? given : 300;
  int harmed = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(text("SPINLOOM_TEST_SEED=", seed, " spinloom_trace_test --gtest_filter=DamagedTrace.*"));
    Random random(seed);
    State damaged = whole;
    if (random.chance(1, 3)) damaged.trace.resize(random.below(damaged.trace.size() + 1));
    if (random.chance(1, 3)) damaged.open.resize(random.below(damaged.open.size() + 1));
    for (uint64_t flips = random.below(4); flips > 0; --flips) {
      std::string& file = random.chance(1, 2) ? damaged.trace : damaged.open;
      // In the file of the open chunk the header counts most: it is in the first 600 bytes.
      const uint64_t room = &file == &damaged.open && random.chance(1, 2) ? 600 : file.size();
      if (file.size() < room || room == 0) continue;
      file[random.below(room)] ^= static_cast<char>(1 << random.below(8));
    }
    put(trace_path(copy.path(), 0), damaged.trace);
    put(open_path(copy.path(), 0), damaged.open);
    const auto found = read_rank(copy.path(), 0);
    if (!found) {
      EXPECT_NE(found.error().message, "");
      ++harmed;
      continue;
    }
    ASSERT_LE(found->events.size(), program.calls.size());
    harmed += found->events.size() < program.calls.size() ? 1 : 0;
    for (const Event& event : found->events) ASSERT_LT(event.signature, found->signatures.size());
    // A checksum covers what is complete; the open chunk has none.
    if (damaged.open == whole.open || damaged.open.size() != whole.open.size()) program.check(*found, 0);
  }
  EXPECT_GT(harmed, given != 0 ? -1 : 100);
}

TEST(DamagedTrace, SaysWhereItEnds) {
  const Folder folder;
  Program program(folder.path(), 10);
  for (int i = 0; i < 25'000; ++i) program.call();
  program.writer->end();
  const std::string path = trace_path(folder.path(), 0);
  std::string content = content_of(path);
  put(path, content.substr(0, content.size() - 1));
  const auto cut = read_rank(folder.path(), 0);
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->warning.starts_with(text(path, " is cut at byte "))) << cut->warning;
  content[100] ^= 1;
  put(path, content);
  const auto flipped = read_rank(folder.path(), 0);
  ASSERT_FALSE(flipped.ok());
  EXPECT_EQ(flipped.error().message, text(path, " is damaged at byte 8: the trace ends there"));
  put(path, "GIF89a and more");
  const auto picture = read_rank(folder.path(), 0);
  ASSERT_FALSE(picture.ok());
  EXPECT_EQ(picture.error().message, text(path, " is no recorded program: it does not begin with SPLTRC01"));
}

}  // namespace
}  // namespace spinloom::trace
