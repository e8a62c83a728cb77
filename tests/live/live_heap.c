/* Puts and gets between all pairs of ranks whose long buffers lie in the heap that peers map; all bytes are
 * compared. Arguments: `early` allocates from the heap before PtlInit, `forbid` forbids process_vm_readv, `mapped N`
 * expects that N heaps of peers are mapped in the end. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <portals4_spin.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "live_common.h"

enum { PT_WRITE, PT_READ };
enum { LENGTH = 3 << 20, ROUNDS = 6 };

static void forbid_reading_processes(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) exit(4);
}

static unsigned char* heap_memory(uint64_t bytes) {
  void* start = NULL;
  MUST(PtlSpinHeapAlloc(bytes, &start));
  return start;
}

/* The number of other processes' heaps in our address space. */
static unsigned mapped_heaps(void) {
  char line[512];
  unsigned long inodes[64];
  unsigned count = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) exit(5);
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long inode;
    unsigned seen = 0;
    if (strstr(line, "memfd:spinloom-heap") == NULL || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1) continue;
    while (seen < count && inodes[seen] != inode) ++seen;
    if (seen == count && count < 64) inodes[count++] = inode;
  }
  fclose(maps);
  return count - 1; /* our own does not count */
}

int main(int argc, char** argv) {
  int early = 0;
  unsigned mapped = 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "early") == 0) early = 1;
    if (strcmp(argv[i], "forbid") == 0) forbid_reading_processes();
    if (strcmp(argv[i], "mapped") == 0 && i + 1 < argc) mapped = (unsigned)atoi(argv[++i]);
  }
  unsigned char* out = early ? heap_memory(LENGTH) : NULL;
  begin();
  if (!early) out = heap_memory(LENGTH);
  unsigned char* const in = heap_memory((uint64_t)LENGTH * ranks);
  unsigned char* const back = some_memory(LENGTH);
  void* none = NULL;
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapAlloc(0, &none));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapAlloc(8, NULL));
  EXPECT(PTL_NO_SPACE, PtlSpinHeapAlloc((ptl_size_t)1 << 60, &none));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapFree(&none));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapFree(in + 65536));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapFree(NULL));

  const ptl_handle_ct_t written = counter(), sent = counter(), replied = counter();
  open_portal(PTL_EQ_NONE, PT_WRITE);
  open_portal(PTL_EQ_NONE, PT_READ);
  for (unsigned peer = 0; peer < ranks; ++peer) {
    append_to(PT_WRITE, in + (uint64_t)LENGTH * peer, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, written, peer,
              PTL_PRIORITY_LIST);
  }
  append_to(PT_READ, out, LENGTH, PTL_ME_OP_GET, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t put_md = bind(out, LENGTH, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
  const ptl_handle_md_t get_md = bind(back, LENGTH, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replied);
  barrier();
  uint64_t puts = 0, gets = 0;
  for (unsigned round = 0; round < ROUNDS; ++round) {
    const uint64_t length = round % 2 == 0 ? LENGTH : 16384 + 4097 * round;
    fill(out, 100 * round + my_rank, LENGTH);
    barrier();
    for (unsigned to = 0; to < ranks; ++to) {
      MUST(PtlPut(put_md, 0, length, PTL_NO_ACK_REQ, rank_of(to), PT_WRITE, my_rank, 0, NULL, 0));
    }
    WAIT_FOR(sent, puts += ranks);
    WAIT_FOR(written, puts);
    for (unsigned from = 0; from < ranks; ++from) {
      CHECK_BYTES(in + (uint64_t)LENGTH * from, 100 * round + from, length);
      memset(back, 0, LENGTH);
      MUST(PtlGet(get_md, 0, length, rank_of(from), PT_READ, 0, 0, NULL));
      WAIT_FOR(replied, ++gets);
      CHECK_BYTES(back, 100 * round + from, length);
    }
    if (round == 2) { /* a child has a heap of its own, and nobody else hears of it */
      const pid_t child = fork();
      if (child == 0) {
        const int same = difference(out, 100 * round + my_rank, LENGTH) < 0;
        memset(out, 0, LENGTH);
        _exit(same ? 0 : 1);
      }
      int status = 1;
      EXPECT(child, waitpid(child, &status, 0));
      EXPECT(0, status);
      CHECK_BYTES(out, 100 * round + my_rank, LENGTH);
    }
    barrier();
  }
  EXPECT(mapped, mapped_heaps());
  barrier();
  EXPECT(PTL_OK, PtlSpinHeapFree(in));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapFree(in));
  EXPECT(PTL_OK, PtlSpinHeapFree(out));
  return end();
}
