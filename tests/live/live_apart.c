/* A library to be preloaded: it keeps the ranks of a job from each other's memory. SPINLOOM_TEST_APART says what is
 * done to each rank before main. The ranks are separated by ':', what is done to a rank by ','.
 *
 *   nobody     the rank belongs to another user without special rights
 *   hidden     the rank cannot be dumped or traced
 *   namespace  the rank is in a user namespace of its own
 *   pidfd      the system calls pidfd_open and pidfd_getfd are forbidden
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static int forbid_pidfd(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static int done(const char* what) {
  if (strcmp(what, "nobody") == 0) {
    return setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
           setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0;
  }
  if (strcmp(what, "hidden") == 0) return prctl(PR_SET_DUMPABLE, 0);
  if (strcmp(what, "namespace") == 0) return unshare(CLONE_NEWUSER);
  if (strcmp(what, "pidfd") == 0) return forbid_pidfd();
  return 1;
}

__attribute__((constructor)) static void keep_apart(void) {
  const char* const rank = getenv("PMI_RANK");
  const char* const all = getenv("SPINLOOM_TEST_APART");
  if (rank == NULL || all == NULL) return;
  char kept[256];
  snprintf(kept, sizeof kept, "%s", all);
  char *mine = kept, *next = kept;
  for (int i = 0; next != NULL && i <= atoi(rank); ++i) mine = strsep(&next, ":");
  for (char* what; (what = strsep(&mine, ",")) != NULL;) {
    if (*what == 0 || done(what) == 0) continue;
    perror(what);
    _exit(77);
  }
}
