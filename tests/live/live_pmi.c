/* A program that speaks PMI-1 itself, over the descriptor that the library uses, too. argv[1] says what it does, one
 * letter for each step:
 *
 *   I init, G put, barrier and get, F finalize: PMI-1, by hand
 *   P PtlInit and an interface, T PtlInit, which may fail, and PtlFini
 *   x a ring of puts, n PtlNIFini, N the interface again, p PtlFini
 *   u waits until another rank cannot be reached, and gives the launcher time to do harm
 *   f a child that exits, w waits to be killed, 1 exit(1), _ _exit(0)
 *
 * If argv[2] is there, the last rank does what it says instead. Every rank prints how many answers were right.
 */
#include <signal.h>
#include <sys/wait.h>

#include "live_common.h"

static int link_to_launcher = -1;

static unsigned number_in(const char* variable) {
  const char* const given = getenv(variable);
  return given == NULL ? 0 : (unsigned)atoi(given);
}

static void say(const char* line) {
  const size_t length = strlen(line);
  if (write(link_to_launcher, line, length) != (ssize_t)length) exit(4);
}

static void hear(char* answer, size_t most) {
  size_t length = 0;
  for (char letter = 0; letter != '\n';) {
    if (length + 1 >= most || read(link_to_launcher, &letter, 1) != 1) exit(5);
    answer[length++] = letter;
  }
  answer[length - 1] = 0;
}

static void ask(const char* line, const char* expected) {
  char answer[1024];
  say(line);
  hear(answer, sizeof answer);
  EXPECT(1, strncmp(answer, expected, strlen(expected)) == 0);
}

static void meet(unsigned rank, unsigned size) {
  char line[1024], space[512], answer[1024];
  say("cmd=get_my_kvsname\n");
  hear(answer, sizeof answer);
  const char* const named = strstr(answer, "kvsname=");
  if (named == NULL || sscanf(named, "kvsname=%511s", space) != 1) exit(6);
  static unsigned times;
  ++times;
  snprintf(line, sizeof line, "cmd=put kvsname=%s key=own-%u-%u value=%u\n", space, times, rank, 100 * times + rank);
  ask(line, "cmd=put_result");
  ask("cmd=barrier_in\n", "cmd=barrier_out");
  const unsigned next = (rank + 1) % size;
  snprintf(line, sizeof line, "cmd=get kvsname=%s key=own-%u-%u\n", space, times, next);
  say(line);
  hear(answer, sizeof answer);
  const char* const value = strstr(answer, "value=");
  EXPECT(100 * times + next, value == NULL ? 0 : atoi(value + 6));
}

static void open_interface(void) {
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
}

static void wait_until_alone(void) {
  ptl_handle_eq_t eq;
  ptl_event_t event;
  MUST(PtlEQAlloc(ni, 64, &eq));
  const ptl_handle_md_t md = bind(NULL, 0, 0, eq, PTL_CT_NONE);
  do {
    sleep_ms(1);
    MUST(PtlPut(md, 0, 0, PTL_ACK_REQ, rank_of((my_rank + 1) % ranks), 3, 5, 0, NULL, 0));
    MUST(PtlEQWait(eq, &event));
    if (event.ni_fail_type == PTL_NI_OK) MUST(PtlEQWait(eq, &event));
  } while (event.ni_fail_type != PTL_NI_UNDELIVERABLE);
  sleep_ms(500);
}

int main(int argc, char** argv) {
  signal(SIGUSR1, SIG_IGN); /* Hydra's way to tell that one has left */
  const unsigned rank = number_in("PMI_RANK"), size = number_in("PMI_SIZE");
  link_to_launcher = (int)number_in("PMI_FD");
  for (const char* step = argv[argc > 2 && rank == size - 1 ? 2 : 1]; *step != 0; ++step) {
    switch (*step) {
      case 'I': ask("cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init"); break;
      case 'G': meet(rank, size); break;
      case 'F': ask("cmd=finalize\n", "cmd=finalize_ack"); break;
      case 'T':
        if (PtlInit() == PTL_OK) PtlFini();
        break;
      case 'P': begin(); break;
      case 'N': open_interface(); break;
      case 'x': ring_of_puts(); break;
      case 'u': wait_until_alone(); break;
      case 'n': PtlNIFini(ni); break;
      case 'p': PtlFini(); break;
      case 'f': {
        const pid_t child = fork();
        if (child == 0) exit(0);
        waitpid(child, NULL, 0);
        break;
      }
      case 'w':
        for (;;) pause();
      case '1':
      case '_':
        printf("rank %u: %d answers\n", ranks == 0 ? rank : my_rank, answers);
        fflush(stdout);
        if (*step == '1') exit(1);
        _exit(0);
      default: return 3;
    }
  }
  printf("rank %u: %d answers\n", ranks == 0 ? rank : my_rank, answers);
  return wrong == 0 ? 0 : 1;
}
