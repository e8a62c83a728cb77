// Names that newer compilers and headers ask for and an old glibc lacks (cmake/old_glibc.cmake). A library takes those
// that it uses and exports none of them.
//
// Threads: any. Time: host time, in pthread_cond_clockwait() only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define ONE_SECOND_NS 1000000000L

// glibc 2.32: 0 says that there may be several threads, so that reference counts are atomic.
char __libc_single_threaded = 0;

// glibc 2.30: the older call knows one clock, so the deadline is moved to that.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  struct timespec there;
  struct timespec here;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, deadline);
  if (clock_gettime(clock, &there) != 0 || clock_gettime(CLOCK_REALTIME, &here) != 0) return EINVAL;
  here.tv_sec += deadline->tv_sec - there.tv_sec;
  here.tv_nsec += deadline->tv_nsec - there.tv_nsec;
  if (here.tv_nsec < 0) {
    here.tv_nsec += ONE_SECOND_NS;
    here.tv_sec -= 1;
  } else if (here.tv_nsec >= ONE_SECOND_NS) {
    here.tv_nsec -= ONE_SECOND_NS;
    here.tv_sec += 1;
  }
  return pthread_cond_timedwait(condition, mutex, &here);
}

// glibc 2.36: std::random_device.
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

// glibc 2.38: its headers rename the functions that read numbers from text, because the new ones also read binary numbers
// (0b1). These call the older functions, which do not.
#define READS_INTEGER(type, name)                                    \
  extern type older_##name(const char*, char**, int) __asm__(#name); \
  type __isoc23_##name(const char* text, char** end, int base) { return older_##name(text, end, base); }
READS_INTEGER(long, strtol)
READS_INTEGER(long long, strtoll)
READS_INTEGER(unsigned long, strtoul)
READS_INTEGER(unsigned long long, strtoull)

extern int older_vsscanf(const char*, const char*, va_list) __asm__("vsscanf");
extern int older_vfscanf(FILE*, const char*, va_list) __asm__("vfscanf");
int __isoc23_vsscanf(const char* text, const char* format, va_list values) {
  return older_vsscanf(text, format, values);
}
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = older_vsscanf(text, format, values);
  va_end(values);
  return count;
}
int __isoc23_fscanf(FILE* file, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = older_vfscanf(file, format, values);
  va_end(values);
  return count;
}

#if __GLIBC_PREREQ(2, 35)
// glibc 2.35: where the compiler's unwinder finds the table of the object that holds an address.
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* object, size_t bytes, void* search_p) {
  (void)bytes;
  struct Search* const search = search_p;
  uintptr_t first = UINTPTR_MAX;
  uintptr_t end = 0;
  int is_inside = 0;
  void* table = NULL;
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const header = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) table = (void*)begin;
    if (header->p_type != PT_LOAD) continue;
    if (begin < first) first = begin;
    if (begin + header->p_memsz > end) end = begin + header->p_memsz;
    if (search->address >= begin && search->address < begin + header->p_memsz) is_inside = 1;
  }
  if (!is_inside || table == NULL) return 0;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)first;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = table;
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
#endif
