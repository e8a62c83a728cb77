// Goal - schedules in the forms of LogGOPSim (HPDC'10): GOAL text, and the binary form that its converter makes.
//
// Contract: read_goal() takes either; what is wrong is an error with line and column, or with the offset in the file.
//   Text is read as the converter of 2023 reads it, but a duplicate label, a number that does not fit and a peer that
//   is no rank are errors. print_goal() gives text and write_goal_binary() the binary form of 2023; both give an
//   error where the form cannot say what the schedule holds. The binary form of LogGOPSim2 is recognised by the size of
//   its records, and read if none is of its own types. check() finds peers of the binary form that are no ranks.
// Invariants: (1) read_goal(print_goal(s)) is s again, and so is that of the binary form: for each rank the same
//   operations in the same order, and the same edges in the same order, without layouts, for which neither has a word;
//   (2) a reader takes memory in proportion to the bytes that it has been given, whatever they say.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "predict/schedule/schedule.hpp"
#include "predict/schedule/watch.hpp"

namespace spinloom::schedule {

[[nodiscard]] Result<Schedule> read_goal(std::string_view bytes, const Watch& watch = {});
[[nodiscard]] Result<Schedule> read_goal_text(std::string_view source, const Watch& watch = {});
[[nodiscard]] Result<Schedule> read_goal_binary(std::string_view bytes, const Watch& watch = {});
[[nodiscard]] Result<std::string> print_goal(const Schedule& schedule);
[[nodiscard]] Result<std::string> write_goal_binary(const Schedule& schedule);

// Both forms drop the tag, NIC and peer of a computation: an error if operation `number` of `rank` has some. The binary
// form has nothing of what our text adds to GOAL's either.
[[nodiscard]] Status check_sayable_in_text(const Schedule& schedule, uint32_t rank, uint32_t number);
[[nodiscard]] Status check_sayable_in_goal(const Schedule& schedule, uint32_t rank, uint32_t number);

}  // namespace spinloom::schedule
