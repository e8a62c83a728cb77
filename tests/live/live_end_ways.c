/* A rank ends in the way that argv[1] names:
 *
 *   return  main() returns the rank's number, after PtlFini
 *   exit    exit(0) in a function
 *   thread  pthread_exit() in main()
 *   open    main() returns 0, with interfaces open, in rank 1; the others must hear that it is gone
 *   fail    exit(7) in rank 1, with interfaces open, while the others wait for ever
 *   crash   rank 1 writes to an address that it does not have
 *   early   every rank only calls PtlInit: nothing of it is left open
 *   again   a function of atexit() calls exit() with the rank's number
 *   child   every rank forks processes that end by exit(), by _exit(), by return, and by _exit() after vfork()
 *
 * Globals are the rank's own, and what it registers by atexit() runs once.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "live_common.h"

static unsigned own;

static void at_end(void) { printf("ended: %u\n", own); }

static void leave(void) { exit(0); }

static void leave_again(void) { exit((int)my_rank); }

static int code_of(pid_t child) {
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  atexit(at_end);
  if (strcmp(how, "early") == 0) {
    static unsigned mains;
    ++mains; /* the mains of this rank alone */
    return PtlInit() != PTL_OK || mains != 1;
  }
  begin();
  own = 100 + my_rank;
  barrier();
  if (own != 100 + my_rank) return 99;
  if (strcmp(how, "crash") == 0 && my_rank == 1) *(volatile int*)8 = 1;
  if (strcmp(how, "fail") == 0) {
    if (my_rank == 1) exit(7);
    for (;;) pause();
  }
  if (strcmp(how, "child") == 0) {
    const pid_t plain = fork();
    if (plain == 0) exit(1);
    const pid_t at_once = fork();
    if (at_once == 0) _exit(2);
    const pid_t returned = fork();
    if (returned == 0) return 3;
    const pid_t shared = vfork();
    if (shared == 0) _exit(4);
    const int codes[] = {code_of(plain), code_of(at_once), code_of(returned), code_of(shared)};
    barrier(); /* children print what ranks have printed, and not flushed, before them */
    printf("children: %d %d %d %d\n", codes[0], codes[1], codes[2], codes[3]);
  }
  if (strcmp(how, "open") == 0) {
    if (my_rank == 1) return 0;
    ptl_handle_eq_t queue;
    ptl_event_t event;
    MUST(PtlEQAlloc(ni, 64, &queue));
    const ptl_handle_md_t md = bind(NULL, 0, 0, queue, PTL_CT_NONE);
    do { /* this ends when rank 1 is gone */
      MUST(PtlPut(md, 0, 0, PTL_ACK_REQ, rank_of(1), 60, 0, 0, NULL, 0));
      do {
        MUST(PtlEQWait(queue, &event));
      } while (event.type != PTL_EVENT_ACK && event.ni_fail_type != PTL_NI_UNDELIVERABLE);
    } while (event.ni_fail_type != PTL_NI_UNDELIVERABLE);
    return 0;
  }
  end();
  if (strcmp(how, "again") == 0) atexit(leave_again);
  if (strcmp(how, "exit") == 0 || strcmp(how, "again") == 0) leave();
  if (strcmp(how, "thread") == 0) pthread_exit(NULL);
  return strcmp(how, "return") == 0 ? (int)my_rank : 0;
}
