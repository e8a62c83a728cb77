/* A rank closes its interface while another one is stopped in the middle of a message to it. Two ranks.
 *
 * Rank 1 helps to copy its message into rank 0's memory, and is stopped just before it does. Rank 0 prints "in use"
 * when PtlNIFini has given up, and calls it again once rank 1 goes on: whoever runs this program has to send SIGCONT
 * to rank 1. With the argument `reply`, rank 1 stops before rank 0 gets its memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "live_common.h"

enum { LARGE = 8 << 20, TRIES = 500 }; /* a sender that does not wait yet does not help */

static volatile sig_atomic_t stopped;

static void stop_here(int number, siginfo_t* what, void* context) {
  (void)number, (void)what;
  stopped = 1;
  kill(getpid(), SIGSTOP);
#ifdef __x86_64__
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
  ((ucontext_t*)context)->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

/* Whichever thread calls process_vm_writev next stops the process. */
static void stop_at_writing(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  struct sigaction action = {.sa_sigaction = stop_here, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    exit(77);
  }
}

static int is_stopped(uint64_t process) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)process);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char* const behind = strrchr(text, ')');
  return behind != NULL && behind[1] == ' ' && behind[2] == 'T';
}

static int end_again(uint64_t process) {
  ptl_process_t id;
  EXPECT(PTL_IN_USE, PtlNIFini(ni));
  EXPECT(PTL_OK, PtlGetId(ni, &id));
  printf("in use, process %llu\n", (unsigned long long)process);
  fflush(stdout);
  int code;
  while ((code = PtlNIFini(ni)) == PTL_IN_USE) {
  }
  return code;
}

static int without_a_reply(void) {
  enum { ASKED = 3000 };
  begin();
  const ptl_handle_ct_t told = counter(), acked = counter();
  unsigned char* const memory = some_memory(ASKED);
  static uint64_t process;
  ptl_handle_eq_t events;
  MUST(PtlEQAlloc(ni, 16, &events));
  open_portal(events, 0); /* its events need the NIC, so nobody reads the entry without it */
  append_to(0, memory, ASKED, PTL_ME_OP_GET, PTL_CT_NONE, 1, PTL_PRIORITY_LIST);
  append_to(0, &process, sizeof process, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, told, 2, PTL_PRIORITY_LIST);
  if (my_rank == 1) fill(memory, 7, ASKED);
  barrier();
  if (my_rank == 1) {
    process = (uint64_t)getpid();
    const ptl_handle_md_t own = bind(&process, sizeof process, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
    MUST(PtlPut(own, 0, sizeof process, PTL_CT_ACK_REQ, rank_of(0), 0, 2, 0, NULL, 0));
    WAIT_FOR(acked, 1);
    kill(getpid(), SIGSTOP);
  } else {
    const ptl_handle_md_t md = bind(memory, ASKED, 0, PTL_EQ_NONE, PTL_CT_NONE);
    WAIT_FOR(told, 1);
    while (!is_stopped(process)) usleep(1000);
    MUST(PtlGet(md, 0, ASKED, rank_of(1), 0, 1, 0, NULL));
    EXPECT(PTL_OK, end_again(process));
    CHECK_BYTES(memory, 7, ASKED);
  }
  PtlFini();
  printf("rank %u: %d answers\n", my_rank, answers);
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "reply") == 0) return without_a_reply();
  begin();
  const ptl_handle_ct_t landed = counter(), told = counter(), acked = counter();
  unsigned char* const memory = some_memory(LARGE);
  static uint64_t process;
  open_portal(PTL_EQ_NONE, 0);
  const unsigned options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
  append_to(0, memory, LARGE, options, landed, 1, PTL_PRIORITY_LIST);
  append_to(0, &process, sizeof process, options, told, 2, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(memory, LARGE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  barrier();
  if (my_rank == 1) {
    process = (uint64_t)getpid();
    const ptl_handle_md_t own = bind(&process, sizeof process, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
    MUST(PtlPut(own, 0, sizeof process, PTL_CT_ACK_REQ, rank_of(0), 0, 2, 0, NULL, 0));
    WAIT_FOR(acked, 1);
    fill(memory, 7, LARGE);
    stop_at_writing();
    for (unsigned i = 0; i < TRIES && !stopped; ++i) {
      MUST(PtlPut(md, 0, LARGE, PTL_CT_ACK_REQ, rank_of(0), 0, 1, 0, NULL, 0));
      WAIT_FOR(acked, 2 + i);
    }
    PtlFini();
    printf("rank 1: %d answers\n", answers);
    return wrong == 0 ? 0 : 1;
  }
  WAIT_FOR(told, 1);
  ptl_ct_event_t count = {0, 0};
  unsigned which;
  const ptl_size_t all = TRIES;
  while (!is_stopped(process)) {
    if (PtlCTPoll(&landed, &all, 1, 10, &count, &which) == PTL_OK) exit(78); /* nobody helps to copy here */
  }
  EXPECT(PTL_OK, end_again(process));
  CHECK_BYTES(memory, 7, LARGE);
  PtlFini();
  printf("rank 0: %d answers\n", answers);
  return wrong == 0 ? 0 : 1;
}
