// Hooks - act on the running rank where a program would act on the process: its end, its clock, its environment.
//
// Contract: the launcher's functions, named as those of the C library, call these hooks. A hook acts on the rank that
//   runs now. Only spl_job_running(), spl_job_environment() and spl_job_main() may be called without one.
// Threads: the job's. Time: virtual.
#pragma once

#include <cstdint>

extern "C" {

// True if a rank's program is running on this thread.
bool spl_job_running(void);
[[noreturn]] void spl_job_exit(int code, bool at_once);
// The clock that a program reads; a look may take time.
int64_t spl_job_time_ps(void);
void spl_job_sleep_ps(int64_t duration);
void spl_job_yield(void);
// Returns the rank's SPINLOOM_RANK or SPINLOOM_SIZE; null for other names, or if no rank runs.
const char* spl_job_environment(const char* name);
// Runs a job. The arguments are the numbers of two file descriptors, for settings and report, then the program and its
// arguments.
int spl_job_main(int argc, char** argv);

}  // extern "C"
