// spinloom-sim SETTINGS REPORT PROGRAM [ARGUMENTS]: runs a job; `spinloom sim` starts it and reads its report.
#include "simulated/job/hooks.hpp"

int main(int argc, char** argv) { return spl_job_main(argc, argv); }
