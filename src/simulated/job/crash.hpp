// Crash - reports a signal that ends the process: whose fault it was, and where.
//
// Contract: watch() installs handlers for signals that a faulty program raises (SIGSEGV, SIGABRT, ...). A handler
//   prints the running job's output so far, reports who crashed, and ends the process with EXIT_FAILURE.
// Threads: any. Time: none.
#pragma once

namespace spinloom::job {

void watch_crashes();

}  // namespace spinloom::job
