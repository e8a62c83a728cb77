// ScheduleFile - a Schedule as bytes in our own form, which loses nothing: docs/formats/schedule.md.
//
// Contract: write_schedule() gives the bytes, read_schedule_file() the same Schedule again: the same Programs, Shapes
//   and Layouts under the same numbers, shared by the same ranks. What is wrong is an error with the offset in the
//   file. read_schedule() takes any form there is; open_schedule() a file of any, and Programs of our own form stay in
//   the file, mapped. check() finds peers that are no ranks and layouts that do not fit.
// Invariants: (1) a reader takes memory in proportion to the bytes that it has been given, whatever they say, and
//   open_schedule() none for operations and edges of our own form; (2) what has been read can be counted, run, drawn
//   and written; (3) equal Schedules give equal bytes, in one string or part by part.
// Threads: pure. Time: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/schedule/schedule.hpp"
#include "predict/schedule/watch.hpp"

namespace spinloom::schedule {

using ByteSink = std::function<void(std::string_view)>;

[[nodiscard]] std::string write_schedule(const Schedule& schedule);
// Gives `sink` the same bytes, one part after the other.
void write_schedule(const Schedule& schedule, const ByteSink& sink);

// A schedule whose ranks have a Program each, generated when it is needed: its operations and then its edges, twice,
// because the checksum stands before them. `prototype` has the Shapes and Layouts.
struct GeneratedSchedule {
  struct Sizes {
    uint32_t operations = 0;
    uint32_t edges = 0;
  };
  std::vector<Sizes> sizes;  // one for each rank
  std::function<std::vector<Operation>(uint32_t rank)> operations;
  std::function<std::vector<Edge>(uint32_t rank)> edges;
};
void write_schedule(const Schedule& prototype, const GeneratedSchedule& generated, const ByteSink& sink);

[[nodiscard]] Result<Schedule> read_schedule_file(std::string_view bytes, const Watch& watch = {});
// These take our own form, GOAL text and its binary forms.
[[nodiscard]] Result<Schedule> read_schedule(std::string_view bytes, const Watch& watch = {});
[[nodiscard]] Result<Schedule> open_schedule(const std::string& path, const Watch& watch = {});

}  // namespace spinloom::schedule
