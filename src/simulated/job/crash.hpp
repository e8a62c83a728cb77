// Crash - reports a signal that ends the process: the rank at fault, and its place.
//
// Contract: watch_crashes() installs handlers for signals that a faulty program raises (SIGSEGV, SIGABRT, ...). A
//   handler prints the running rank's output so far, reports which rank crashed, and ends the process with
//   EXIT_FAILURE.
// Threads: any. Time: none.
#pragma once

namespace spinloom::job {

void watch_crashes();

}  // namespace spinloom::job
