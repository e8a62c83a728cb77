/* Prints each name with a letter for each way in which this process finds it, or - where it does not:
   d dlsym(RTLD_DEFAULT), n dlsym(RTLD_NEXT), s dlsym(of the whole program), h dlsym(of the MPI's library), w a weak
   reference of this program. The names and their weak references are in NAMES, made by the test. An argument is a
   library to be loaded first; if the library defines look(), look() prints the names by its own weak references. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAME(name) extern int name(void) __attribute__((weak));
#include NAMES
#undef NAME

struct named {
  const char* name;
  int (*weak)(void);
};
static struct named const names[] = {
#define NAME(name) {#name, name},
#include NAMES
#undef NAME
};

#ifdef PLUGIN
void look(void) {
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) printf("%s %c\n", names[i].name, names[i].weak ? 'w' : '-');
}
#else
int main(int count, char** words) {
  void* const mpi = count > 1 ? dlopen(words[1], RTLD_LAZY | RTLD_GLOBAL) : NULL;
  if (count > 1 && mpi == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  void (*const look)(void) = mpi ? (void (*)(void))dlsym(mpi, "look") : NULL;
  if (look) return look(), 0;
  void* const all = dlopen(NULL, RTLD_LAZY);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* const name = names[i].name;
    char found[6] = "-----";
    if (dlsym(RTLD_DEFAULT, name))
      found[0] = 'd';
    else if (!dlerror())
      return fprintf(stderr, "%s: not found, and no reason\n", name), 1;
    if (!mpi && dlsym(RTLD_NEXT, name)) found[1] = 'n';
    if (dlsym(all, name)) found[2] = 's';
    if (mpi && dlsym(mpi, name)) found[3] = 'h';
    if (names[i].weak) found[4] = 'w';
    printf("%s %s\n", name, found);
  }
  return 0;
}
#endif
