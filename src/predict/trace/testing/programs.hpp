// Programs for tests: what ranks do, written by a Writer into a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "memory/layout/blob.hpp"
#include "predict/trace/reader.hpp"
#include "predict/trace/writer.hpp"

namespace spinloom::trace {

class Folder {
 public:
  Folder() {
    std::string form = (std::filesystem::temp_directory_path() / "spinloom-trace-XXXXXX").string();
    path_ = mkdtemp(form.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Head head_of_tests(uint32_t rank = 0, uint32_t ranks = 2) {
  return {rank, ranks, 1'000'000, 1'700'000'000'000'000'000, "node7", "An MPI 1.0", "./app -n 3", true};
}

inline TypeEntry columns_of_a_matrix(int64_t rows) {
  const auto type = layout::vector(rows, 1, 16, layout::primitive("int64_t").value());
  const auto blob = layout::Blob::build(type.value());
  const auto bytes = blob->bytes();
  return {"column", blob->size(), blob->extent(), {bytes.begin(), bytes.end()}, 0x1234};
}

inline CommEntry world_of(uint32_t rank, uint32_t ranks) {
  CommEntry world;
  world.rank = rank;
  for (uint32_t i = 0; i < ranks; ++i) world.world_ranks.push_back(i);
  return world;
}

inline Signature signature_of(Call call) {
  Signature signature;
  signature.call = call;
  return signature;
}

// Writes a program and keeps what a reader must find.
class Program {
 public:
  explicit Program(const std::string& directory, uint64_t seed) : random_(seed) {
    expected.begun_ns = head_of_tests().begun_ns;
    auto made = Writer::create(directory, head_of_tests());
    EXPECT_TRUE(made.ok());
    writer = std::move(*made);
    expected.types = {{"MPI_DOUBLE", 8, 8, {}, 7}, columns_of_a_matrix(5)};
    for (const TypeEntry& type : expected.types) (void)writer->add(type);
    expected.comms = {world_of(0, 2)};
    (void)writer->add(expected.comms[0]);
  }

  void call() {
    Signature signature;
    signature.call = static_cast<Call>(random_.below(static_cast<uint64_t>(Call::File_write) + 1));
    signature.form = static_cast<CallForm>(random_.below(3));
    signature.comm = random_.below(2) == 0 ? none : 0;
    signature.peer = static_cast<int32_t>(random_.below(4)) - 2;
    signature.tag = static_cast<int32_t>(random_.below(3)) - 1;
    signature.error = random_.below(10) == 0 ? -5 : 0;
    signature.in_place = random_.below(2) == 0;
    for (uint64_t i = random_.below(3); i > 0; --i) {
      signature.sends.push_back({random_.next(), static_cast<int64_t>(random_.below(100)), 1});
    }
    if (random_.below(2) == 0) signature.receives.push_back({64, 3, none});
    if (random_.below(2) == 0) signature.requests = {0, 5};
    if (random_.below(4) == 0) signature.matches.push_back({none, 1, -1, int64_t{1} << 40});
    repeat(signature);
  }
  void repeat(const Signature& signature) {
    const uint64_t begin = now_ + random_.below(5'000);
    now_ = begin + random_.below(random_.below(20) == 0 ? 1'000'000'000 : 3'000);
    writer->record(signature, expected.begun_ns + begin, expected.begun_ns + now_);
    calls.push_back({signature, {0, 0, begin, now_}});
  }

  // Checks that a trace is the first of the calls, at least `least` of them.
  void check(const RankTrace& found, size_t least) const {
    ASSERT_LE(found.events.size(), calls.size());
    ASSERT_GE(found.events.size(), least);
    for (size_t i = 0; i < found.events.size(); ++i) {
      const auto& [signature, event] = calls[i];
      ASSERT_EQ(found.signatures[found.events[i].signature], signature) << "call " << i;
      ASSERT_EQ(found.events[i].begin_ns, event.begin_ns);
      ASSERT_EQ(found.events[i].end_ns, event.end_ns);
      ASSERT_EQ(found.events[i].polls, 0U);
    }
  }

  RankTrace expected;
  std::unique_ptr<Writer> writer;
  struct Done {
    Signature signature;
    Event event;
  };
  std::vector<Done> calls;

 private:
  Random random_;
  uint64_t now_ = 0;
};

}  // namespace spinloom::trace
