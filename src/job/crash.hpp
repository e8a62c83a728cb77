// Crash - a signal that ends the process: the report gets a sentence that says whose it was and where.
//
// Contract: watch() installs handlers for what a program can do wrong (SIGSEGV, SIGABRT, ...); then the running job's
//   output so far is printed, the report says who crashed, and the process ends with EXIT_FAILURE.
// Threads: any. Time: none.
#pragma once

namespace spinloom::job {

void watch_crashes();

}  // namespace spinloom::job
