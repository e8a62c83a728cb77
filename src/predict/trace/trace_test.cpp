// A reader reads exactly what a Writer has written.
#include "predict/trace/trace.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "predict/trace/testing/programs.hpp"

namespace spinloom::trace {
namespace {

uintmax_t size_of(const Folder& folder) { return std::filesystem::file_size(trace_path(folder.path(), 0)); }

TEST(Trace, IsWhatWasWritten) {
  const Folder folder;
  Program program(folder.path(), 1);
  for (int i = 0; i < 30'000; ++i) program.call();
  program.repeat(signature_of(Call::Finalize));
  program.writer->end();
  EXPECT_EQ(program.writer->trouble(), "");
  EXPECT_FALSE(std::filesystem::exists(open_path(folder.path(), 0)));

  const auto ranks = ranks_in(folder.path());
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(*ranks, std::vector<uint32_t>{0});
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->warning, "");
  EXPECT_TRUE(found->has_ended);
  program.check(*found, program.calls.size());
  const Head head = head_of_tests();
  EXPECT_EQ(found->ranks, head.ranks);
  EXPECT_EQ(found->begun_ns, head.begun_ns);
  EXPECT_EQ(found->begun_unix_ns, head.begun_unix_ns);
  EXPECT_EQ(found->host, head.host);
  EXPECT_EQ(found->mpi, head.mpi);
  EXPECT_EQ(found->program, head.program);
  EXPECT_TRUE(found->is_cpu_time);
  ASSERT_EQ(found->types.size(), 2U);
  EXPECT_EQ(found->types[1].name, "column");
  EXPECT_EQ(found->types[1].blob, program.expected.types[1].blob);
  EXPECT_EQ(found->types[1].signature_hash, 0x1234U);
  ASSERT_EQ(found->comms.size(), 1U);
  EXPECT_EQ(found->comms[0].world_ranks, (std::vector<uint32_t>{0, 1}));
}

TEST(Trace, EqualTypesShareANumberAndCommunicatorsDoNot) {
  const Folder folder;
  Program program(folder.path(), 2);
  EXPECT_EQ(program.writer->add(columns_of_a_matrix(5)), 1U);
  EXPECT_EQ(program.writer->add(columns_of_a_matrix(6)), 2U);
  EXPECT_EQ(program.writer->add(world_of(0, 2)), 1U);
  CommEntry grid = world_of(1, 4);
  grid.has_topology = true;
  grid.sources = grid.destinations = {nobody, 2, 0, 0};
  grid.dims = {2, 2};
  grid.remote_ranks = {none, 3};
  EXPECT_EQ(program.writer->add(grid), 2U);
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->types.size(), 3U);
  EXPECT_EQ(found->comms[2].sources, grid.sources);
  EXPECT_EQ(found->comms[2].dims, grid.dims);
  EXPECT_EQ(found->comms[2].remote_ranks, grid.remote_ranks);
  EXPECT_TRUE(found->comms[2].has_topology);
}

TEST(Trace, FoldsPollsInVain) {
  const Folder folder;
  Program program(folder.path(), 3);
  Writer& writer = *program.writer;
  const uint64_t at = program.expected.begun_ns;
  const Signature test = signature_of(Call::Test);
  for (uint64_t i = 0; i < 1'000; ++i) writer.poll(test, at + 10 * i, at + 10 * i + 3);
  Signature success = test;
  success.requests = {0};
  writer.record(success, at + 10'000, at + 10'005);
  writer.poll(test, at + 10'010, at + 10'011);
  writer.poll(signature_of(Call::Iprobe), at + 10'020, at + 10'021);
  writer.end();
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->events.size(), 4U);
  EXPECT_EQ(found->events[0].polls, 1'000U);
  EXPECT_EQ(found->events[0].begin_ns, 0U);
  EXPECT_EQ(found->events[0].end_ns, 9'993U);
  EXPECT_EQ(found->events[1].polls, 0U);
  EXPECT_EQ(found->events[2].polls, 1U);
  EXPECT_EQ(found->events[3].polls, 1U);
}

TEST(Trace, SaysWhichCallHasNotEnded) {
  const Folder folder;
  const Program program(folder.path(), 8);
  const uint64_t at = program.expected.begun_ns;
  EXPECT_FALSE(read_rank(folder.path(), 0)->is_under_way);
  program.writer->enter(Call::Mrecv, CallForm::nonblocking, at + 5'000);
  const auto inside = read_rank(folder.path(), 0);
  ASSERT_TRUE(inside.ok());
  ASSERT_TRUE(inside->is_under_way);
  EXPECT_EQ(inside->under_way, Call::Mrecv);
  EXPECT_EQ(inside->under_way_form, CallForm::nonblocking);
  EXPECT_EQ(inside->under_way_ns, 5'000U);
  program.writer->record(signature_of(Call::Mrecv), at + 5'000, at + 6'000);
  EXPECT_FALSE(read_rank(folder.path(), 0)->is_under_way);
}

TEST(Trace, TakesDefinitionsLongerThanTheOpenChunk) {
  const Folder folder;
  Program program(folder.path(), 4);
  for (int i = 0; i < 100; ++i) program.call();
  Signature wide = signature_of(Call::Alltoallv);
  for (uint64_t i = 0; i < 200'000; ++i) wide.sends.push_back({i << 40, 1, 0});
  program.repeat(wide);
  for (int i = 0; i < 100; ++i) program.call();
  program.repeat(wide);
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->warning, "");
  EXPECT_FALSE(found->has_ended);
  program.check(*found, program.calls.size());
}

// A loop of l calls, n times: l signatures, and for each event a byte or two, and two times. Packed, the numbers of a
// loop are next to nothing, and times that vary by some thousand ns are some 3 bytes.
TEST(Trace, ALoopCostsItsTimes) {
  const Folder folder;
  Program program(folder.path(), 5);
  for (int i = 0; i < 10; ++i) program.call();
  const std::vector<Program::Done> body(program.calls.begin(), program.calls.begin() + 10);
  constexpr int rounds = 20'000;
  for (int i = 0; i < rounds; ++i) {
    for (const auto& done : body) program.repeat(done.signature);
  }
  program.writer->end();
  EXPECT_LT(size_of(folder), 10U * rounds * 5);
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->signatures.size(), 10U);
  program.check(*found, program.calls.size());
}

// In a process whose files may have `bytes` at most; SIGXFSZ is ignored, so that a write fails as on a full disk.
TEST(Trace, AFullDiskStopsTheRecordingAndSaysSo) {
  const Folder folder;
  constexpr rlim_t bytes = 2 << 20;
  const pid_t child = fork();
  if (child == 0) {
    (void)signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    Program program(folder.path(), 6);
    for (int i = 0; i < 300'000 && program.writer->trouble().empty(); ++i) program.call();
    program.call();
    program.writer->end();
    _exit(program.writer->trouble().ends_with("File too large") ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->warning, text("recording stopped: ", trace_path(folder.path(), 0), ": File too large"));
  EXPECT_GT(found->events.size(), 1'000U);
}

TEST(Trace, NobodysTraceIsOverwritten) {
  const Folder folder;
  const Program program(folder.path(), 7);
  const auto again = Writer::create(folder.path(), head_of_tests());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, text(trace_path(folder.path(), 0), ": File exists"));
  const auto nowhere = Writer::create(folder.path() + "/none", head_of_tests());
  EXPECT_FALSE(nowhere.ok());
  EXPECT_FALSE(ranks_in(folder.path() + "/none").ok());
}

TEST(Trace, EndsWithinACall) {
  const Folder folder;
  Program program(folder.path(), 4);
  for (int i = 0; i < 100; ++i) program.call();
  program.writer->end_within(Call::Recv, CallForm::blocking, program.expected.begun_ns + 77);
  const auto found = read_rank(folder.path(), 0);
  ASSERT_TRUE(found.ok()) << found.error().message;
  program.check(*found, 100);
  EXPECT_TRUE(found->warning.empty());
  EXPECT_TRUE(found->tells_under_way && found->is_under_way);
  EXPECT_EQ(found->under_way, Call::Recv);
  EXPECT_EQ(found->under_way_ns, 77U);
  EXPECT_EQ(std::filesystem::file_size(open_path(folder.path(), 0)), OpenHeader::bytes);
}

}  // namespace
}  // namespace spinloom::trace
