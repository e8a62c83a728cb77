#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  int percent;
  int (*alloc)(uint64_t* address, size_t bytes);
  int (*free)(uint64_t address);
  int (*push)(void* context);
  int (*pop)(void** context);
  void* (*window)(uint64_t address);
  void* context;
} device;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void* call(void* library, char const* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "the driver has no %s: %s\n", name, dlerror()), exit(4);
  return found;
}

static void begin(void) {
  char const* const told = getenv("LAYER_DEVICE");
  device.percent = told != NULL ? atoi(told) : 0;
  if (device.percent == 0) return;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW); /* late, as CUDA's runtime does it */
  if (library == NULL) fprintf(stderr, "%s\n", dlerror()), exit(4);
  int (*init)(unsigned) = (int (*)(unsigned))call(library, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))call(library, "cuDevicePrimaryCtxRetain");
  device.alloc = (int (*)(uint64_t*, size_t))call(library, "cuMemAlloc_v2");
  device.free = (int (*)(uint64_t))call(library, "cuMemFree_v2");
  device.push = (int (*)(void*))call(library, "cuCtxPushCurrent_v2");
  device.pop = (int (*)(void**))call(library, "cuCtxPopCurrent_v2");
  device.window = (void* (*)(uint64_t))call(library, "fake_gpu_window");
  if (init(0) != 0 || retain(&device.context, 0) != 0) fprintf(stderr, "the driver does not start\n"), exit(4);
}

unsigned char* device_alloc(long bytes, unsigned char** window) {
  static _Atomic unsigned turn;
  pthread_once(&once, begin);
  if (device.percent == 0 || (int)(turn++ * 37 % 100) >= device.percent) return *window = malloc((size_t)bytes);
  uint64_t address = 0;
  void* ours;
  device.push(device.context);
  int const code = device.alloc(&address, (size_t)bytes);
  device.pop(&ours);
  *window = code == 0 ? device.window(address) : NULL;
  if (*window == NULL) fprintf(stderr, "no memory of the device: %d\n", code), exit(4);
  return (unsigned char*)address; /* NOLINT: the driver's addresses are numbers */
}

void device_free(unsigned char* memory, unsigned char* window) {
  if (memory == window)
    free(memory);
  else
    device.free((uint64_t)memory);
}
