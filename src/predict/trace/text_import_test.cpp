// Text traces of a PMPI wrapper become the traces that the recorder would have written.
#include "predict/trace/text_import.hpp"

#include "base/testing/seeds.hpp"
#include "predict/trace/check.hpp"
#include "predict/trace/match.hpp"
#include "predict/trace/summary.hpp"
#include "predict/trace/testing/programs.hpp"

namespace spinloom::trace {
namespace {

using Lines = std::vector<std::string>;  // one text for each rank

// The ranks' files, and what became of them.
class Imported {
 public:
  explicit Imported(const Lines& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      files_.push_back(folder_.path() + "/trace-" + std::to_string(rank) + ".txt");
      std::ofstream(files_.back()) << ranks[rank];
    }
    std::filesystem::create_directory(folder_.path() + "/out");
    sums = import_text(files_, out());
    if (sums.ok()) read();
  }
  [[nodiscard]] std::string out() const { return folder_.path() + "/out"; }
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] const Signature& call(size_t rank, size_t event) const {
    return traces[rank].signatures[traces[rank].events[event].signature];
  }
  [[nodiscard]] Matching matched() const {
    std::vector<const RankTrace*> all;
    for (const RankTrace& one : traces) all.push_back(&one);
    return match(all);
  }

  Result<TextImport> sums = TextImport{};
  std::vector<RankTrace> traces;

 private:
  void read() {
    auto found = trace::read(out());
    ASSERT_TRUE(found.ok()) << found.error().message;
    traces = std::move(*found);
  }
  Folder folder_;
  std::vector<std::string> files_;
};

std::string comm(uint64_t handle, uint32_t rank, uint32_t size) { return text(handle, ",", rank, ",", size); }
std::string line(const std::string& name, uint64_t begin_us, const std::string& arguments, uint64_t end_us) {
  return text("MPI_", name, ":", begin_us, arguments.empty() ? "" : ":", arguments, ":", end_us, "\n");
}
constexpr uint64_t world = 0x4400'0000;

// A ring of two, each call 10 us long and 90 us apart. Handles are ints, as MPICH's.
std::string ring(uint32_t rank) {
  const uint32_t peer = 1 - rank;
  std::string lines = text("# htor's PMPI Tracer\n# hostname: node", rank, ".(none)\n# clockdiff: ", 5 * rank,
                           ".000000 s (relative to rank 0)\n\nMPI_Init:-:0:0:1000\n");
  lines += line("Comm_rank", 1'000, comm(world, rank, 2) + ":4096", 1'001);
  lines += line("Irecv", 1'100, text("8192:100:10,8,8:", peer, ":7:", comm(world, rank, 2), ":20484"), 1'110);
  lines += line("Isend", 1'200, text("9192:50:1275069445,16,24:", peer, ":7:", comm(world, rank, 2), ":20480"), 1'210);
  lines += line("Waitall", 1'300, "2:20480:30000", 1'310);
  lines += line("Allreduce", 1'400, text("1:9000:4:3,8,8:3:", comm(world, rank, 2)), 1'410);
  return lines + "# Finalize clockdiff: 0.1\nMPI_Finalize:1500:-\n";
}

TEST(TextImport, ARingOfTwo) {
  const Imported one({ring(0), ring(1)});
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  EXPECT_EQ(one.sums->calls, 12U);
  EXPECT_EQ(one.sums->left_out,
            (std::map<std::pair<LeftOut, std::string>, uint64_t>{{{LeftOut::local, "MPI_Comm_rank"}, 2}}));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const RankTrace& trace = one.traces[rank];
    EXPECT_EQ(trace.host, text("node", rank));
    EXPECT_TRUE(trace.has_ended);
    EXPECT_EQ(trace.begun_ns, 1'000'000U);
    EXPECT_EQ(trace.begun_unix_ns, 1'000'000U + rank * 5'000U);
    EXPECT_EQ(trace.comms[0].world_ranks, (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(trace.comms[0].rank, rank);
    const Signature& receive = one.call(rank, 1);
    EXPECT_EQ(receive.call, Call::Recv);
    EXPECT_EQ(receive.form, CallForm::nonblocking);
    EXPECT_EQ(receive.peer, static_cast<int32_t>(1 - rank));
    EXPECT_EQ(receive.tag, 7);
    EXPECT_EQ(receive.requests, std::vector<uint32_t>{0});
    EXPECT_EQ(trace.types[receive.receives[0].type].name, "MPI_DOUBLE");
    EXPECT_EQ(trace.events[1].begin_ns, 100'000U);
    EXPECT_EQ(trace.events[1].end_ns, 110'000U);
    const Signature& send = one.call(rank, 2);
    EXPECT_EQ(send.requests, std::vector<uint32_t>{1});
    const TypeEntry& type = trace.types[send.sends[0].type];
    EXPECT_EQ(type.size_bytes, 16);
    EXPECT_EQ(type.extent_bytes, 24);
    EXPECT_EQ(layout::Blob::validate(type.blob)->size(), 16);
    EXPECT_EQ(one.call(rank, 3).requests, (std::vector<uint32_t>{1, 0}));  // the order is that of their places
    const Signature& reduce = one.call(rank, 4);
    EXPECT_TRUE(reduce.in_place);
    EXPECT_EQ(traffic_of(trace, reduce).sent_bytes, 32);
  }
  const Matching matched = one.matched();
  EXPECT_EQ(matched.pairs.size(), 2U);
  EXPECT_TRUE(matched.sends.empty() && matched.receives.empty());
}

// A grid of 2 x 3: rows, then columns, and a copy of the rows; the columns are used first. Handles are pointers that
// differ by rank, and the rows' is used again for the copy.
TEST(TextImport, ARecordingThatIsThereStays) {
  const Imported one({ring(0), ring(1)});
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  const auto again = import_text(one.files(), one.out());
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("is there already"), std::string::npos);
  for (uint32_t rank = 0; rank < 2; ++rank) EXPECT_TRUE(std::filesystem::exists(trace_path(one.out(), rank)));
}

TEST(TextImport, CommunicatorsAreThoseOfTheirSplits) {
  Lines ranks;
  for (uint32_t rank = 0; rank < 6; ++rank) {
    const uint32_t row = rank / 3;
    const uint32_t column = rank % 3;
    const uint64_t base = uint64_t{1} << 40 | rank << 20;
    const std::string all = comm(base, rank, 6);
    std::string lines = "MPI_Init:-:0:0:1000\n";
    lines += line("Comm_split", 1'100, text(all, ":", row, ":", 10 - column, ":512"), 1'110);
    lines += line("Comm_split", 1'200, text(all, ":", column, ":0:1024"), 1'210);
    lines += line("Barrier", 1'300, comm(base + 32, row, 2), 1'310);
    lines += line("Barrier", 1'400, comm(base + 16, 2 - column, 3), 1'410);
    lines += line("Comm_dup", 1'500, text(comm(base + 16, 2 - column, 3), ":2048"), 1'510);
    lines += line("Comm_free", 1'600, "512", 1'610);
    lines += line("Bcast", 1'700, text("77:3:13,1,1:0:", comm(base + 16, 2 - column, 3)), 1'710);
    ranks.push_back(lines + "MPI_Finalize:1800:-\n");
  }
  const Imported one(ranks);
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  EXPECT_TRUE(one.sums->left_out.empty());
  for (uint32_t rank = 0; rank < 6; ++rank) {
    const auto members = [&](size_t event) { return one.traces[rank].comms[one.call(rank, event).comm].world_ranks; };
    const uint32_t first = rank / 3 * 3;
    const std::vector<uint32_t> row{first + 2, first + 1, first};  // keys go down
    const std::vector<uint32_t> column{rank % 3, rank % 3 + 3};
    EXPECT_EQ(members(1), row);
    EXPECT_EQ(members(2), column);
    EXPECT_EQ(members(3), column);
    EXPECT_EQ(members(4), row);
    EXPECT_EQ(members(7), row);
    EXPECT_EQ(one.call(rank, 7).comm, one.call(rank, 5).comm);
    EXPECT_NE(one.call(rank, 7).comm, one.call(rank, 4).comm);
  }
}

// A grid of 2 x 2 whose columns go from the last to the first: rank 1 is the second of two in its row and in its
// column.
TEST(TextImport, OfSeveralThatFitTheLowerHandleIsTheOlderCommunicator) {
  Lines ranks;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const std::string all = comm(world, rank, 4);
    std::string lines = "MPI_Init:-:0:0:1000\n";
    lines += line("Comm_split", 1'100, text(all, ":", rank / 2, ":", rank, ":512"), 1'110);
    lines += line("Comm_split", 1'200, text(all, ":", rank % 2, ":", 9 - rank, ":1024"), 1'210);
    lines += line("Barrier", 1'300, comm(world + 2, 1 - rank / 2, 2), 1'310);
    lines += line("Barrier", 1'400, comm(world + 1, rank % 2, 2), 1'410);
    ranks.push_back(lines + "MPI_Finalize:1800:-\n");
  }
  const Imported one(ranks);
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  EXPECT_EQ(one.sums->guessed_comms, 2U);  // ranks 1 and 2
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const auto members = [&](size_t event) { return one.traces[rank].comms[one.call(rank, event).comm].world_ranks; };
    EXPECT_EQ(members(3), (std::vector<uint32_t>{rank % 2 + 2, rank % 2}));
    EXPECT_EQ(members(4), (std::vector<uint32_t>{rank / 2 * 2, rank / 2 * 2 + 1}));
  }
}

TEST(TextImport, WhatATestEndedIsWhatItWasTheLastToName) {
  const auto tested = [](uint32_t rank) {
    const std::string all = comm(4096, rank, 2);
    std::string lines = "MPI_Init:-:0:0:10\n";
    for (uint64_t at = 100; at < 300; at += 100) {
      lines += line(rank == 0 ? "Isend" : "Irecv", at, text("8:1:1,4,4:", 1 - rank, ":3:", all, ":64"), at + 1);
      for (uint64_t poll = 10; poll < 40; poll += 10) lines += line("Test", at + poll, "64:72:0", at + poll + 1);
    }
    return lines + "MPI_Finalize:500:-\n";
  };
  const Imported one({tested(0), tested(1)});
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    // Init, 2 times: Isend, two polls in vain, the test that ended it; Finalize.
    ASSERT_EQ(one.traces[rank].events.size(), 8U);
    for (const size_t first : {1, 4}) {
      EXPECT_EQ(one.call(rank, first).requests, std::vector<uint32_t>{0});
      EXPECT_EQ(one.traces[rank].events[first + 1].polls, 2U);
      EXPECT_EQ(one.call(rank, first + 2).requests, std::vector<uint32_t>{0});
      EXPECT_EQ(one.traces[rank].events[first + 2].polls, 0U);
    }
  }
  EXPECT_EQ(one.matched().pairs.size(), 2U);
  EXPECT_EQ(one.sums->never_ended, 0U);
}

TEST(TextImport, WhatIsLeftOutIsCountedByName) {
  const std::string all = comm(4096, 0, 1);
  std::string lines = "MPI_Init:-:0:0:10\n";
  lines += line("Win_fence", 20, "0:5", 30);
  lines += line("Win_fence", 40, "0:5", 50);
  lines += line("Comm_create", 60, all + ":7:640", 61);
  lines += line("Alltoallv", 70, text("8:16:24:1,4,4:8:16:24:1,4,4:", all), 80);
  lines += line("Alltoallv", 90, text("8:16:5:24:0:1,4,4:8:16:5:24:0:1,4,4:", all), 91);
  lines += line("Recv", 95, text("8:1:1,4,4:-1:-1:", all, ":5"), 96);
  lines += "MPI_Send:97:8:1:1,4";
  const Imported one({lines});
  ASSERT_TRUE(one.sums.ok()) << one.sums.error().message;
  EXPECT_EQ(one.sums->left_out,
            (std::map<std::pair<LeftOut, std::string>, uint64_t>{{{LeftOut::not_known, "MPI_Win_fence"}, 2},
                                                                 {{LeftOut::no_counts, "MPI_Alltoallv"}, 1}}));
  EXPECT_EQ(one.sums->any_source, 1U);
  EXPECT_EQ(one.sums->cut_lines, 1U);
  EXPECT_FALSE(one.traces[0].has_ended);
  EXPECT_EQ(traffic_of(one.traces[0], one.call(0, 2)).sent_bytes, 20);
}

TEST(TextImport, AWrongLineIsToldWithItsPlace) {
  const std::string all = comm(4096, 0, 1);
  const std::pair<std::string, std::string> wrong[] = {
      {"hello\n", ":2: this is no call"},
      {"MPI_Send:5:1\n", ":2: MPI_Send has 0 fields between its times, and 6 were expected"},
      {line("Send", 5, text("8:x:1,4,4:0:0:", all), 6), ":2: MPI_Send: the count is 'x', and a number was expected"},
      {line("Send", 5, text("8:-1:1,4,4:0:0:", all), 6), ":2: MPI_Send: the count is -1"},
      {line("Send", 5, text("8:1:1,4:0:0:", all), 6), ":2: MPI_Send: the type is '1,4'"},
      {line("Send", 5, text("8:1:1,4,4:1:0:", all), 6), ":2: MPI_Send: its peer is rank 1 of a communicator of 1"},
      {line("Send", 7, text("8:1:1,4,4:0:0:", all), 6), ":2: MPI_Send ends at 6 and begins at 7"},
      {line("Bcast", 5, text("8:1:1,4,4:3:", all), 6), ":2: MPI_Bcast: the root is rank 3 of a communicator of 1"},
      {line("Barrier", 5, "1,0,8", 6), ":2: a communicator of 8 ranks, and there are files of 1"},
      {line("Barrier", 5, "1,3,2", 6), ":2: MPI_Barrier: rank 3 of a communicator of 2"},
      {"MPI_Barrier:abc:1,0,1:6\n", ":2: MPI_Barrier: the time is 'abc'"},
  };
  for (const auto& [lines, sentence] : wrong) {
    const Imported one({"MPI_Init:-:0:0:1\n" + lines});
    ASSERT_FALSE(one.sums.ok()) << lines;
    EXPECT_NE(one.sums.error().message.find(sentence), std::string::npos) << one.sums.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(one.out()));
  }
}

// Whatever a file holds: an error, or a trace that every view takes.
TEST(TextImport, DamagedFilesAreRefusedOrRead) {
  for_seeds(150, [](Random& random) {
    Lines ranks{ring(0), ring(1)};
    for (uint64_t left = 1 + random.below(6); left > 0; --left) {
      std::string& lines = ranks[random.below(2)];
      const size_t at = random.below(lines.size());
      const size_t length = random.below(12);
      switch (random.below(5)) {
        case 0: lines[at] = static_cast<char>(random.below(256)); break;
        case 1: lines.erase(at, length); break;
        case 2: lines.insert(at, lines.substr(random.below(lines.size()), length)); break;
        case 3: lines[at] = static_cast<char>('0' + random.below(10)); break;
        default: {
          const size_t line_end = lines.find('\n', at);
          const size_t next = line_end == std::string::npos ? at : lines.find('\n', line_end + 1);
          if (next != std::string::npos) lines.insert(next + 1, lines.substr(line_end + 1, next - line_end));
        }
      }
      if (lines.empty()) lines = "\n";
    }
    const Imported one(ranks);
    if (!one.sums.ok()) {
      EXPECT_FALSE(one.sums.error().message.empty());
      return;
    }
    std::vector<const RankTrace*> all;
    for (const RankTrace& trace : one.traces) all.push_back(&trace);
    (void)check(all, match(all));
    for (const RankTrace& trace : one.traces) (void)calls_of(trace);
  });
}

TEST(TextImport, AFileOfAnotherRankIsAnError) {
  const Imported same({ring(0), ring(0)});
  ASSERT_FALSE(same.sums.ok());
  EXPECT_TRUE(same.sums.error().message.ends_with(
      "trace-1.txt is that of rank 1 by its name, and the calls in it are those of rank 0 of 2"))
      << same.sums.error().message;
  const std::string alone = "MPI_Init:-:0:0:10\n" + line("Barrier", 20, comm(world, 0, 1), 30) + "MPI_Finalize:60:-\n";
  const Imported programs({alone, alone, alone});
  ASSERT_FALSE(programs.sums.ok());
  EXPECT_TRUE(programs.sums.error().message.find("these are 3 programs of one rank") != std::string::npos)
      << programs.sums.error().message;
  EXPECT_TRUE(Imported({alone}).sums.ok());
}

}  // namespace
}  // namespace spinloom::trace
