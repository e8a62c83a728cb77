// ScheduleFile - a Schedule as bytes in our own form, which loses nothing: docs/formats/schedule.md.
//
// Contract: write_schedule() gives the bytes, read_schedule_file() the same Schedule again: the same Programs, Shapes and
//   Layouts under the same numbers, shared by the same ranks. What is wrong is an error with the offset in the file.
//   read_schedule() takes any form there is. check() finds peers that are no ranks and layouts that do not fit.
// Invariants: (1) a reader takes memory in proportion to the bytes that it has been given, whatever they say; (2) what
//   has been read can be counted, run, drawn and written; (3) equal Schedules give equal bytes.
// Threads: pure. Time: none.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.hpp"

namespace spinloom::schedule {

[[nodiscard]] std::string write_schedule(const Schedule& schedule);
[[nodiscard]] Result<Schedule> read_schedule_file(std::string_view bytes);
// Of our own form, of GOAL text or of its binary forms.
[[nodiscard]] Result<Schedule> read_schedule(std::string_view bytes);

}  // namespace spinloom::schedule
