/* A driver for tests: device memory is memory of the host, calls are done when they return, events are times.
 * What bench/gpu_clock.py queues in front of a sample takes no time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { gate_bytes = 256 << 20 };

int cuInit(unsigned flags) { return (int)(flags & 0); }
int cuGetErrorString(int code, const char** said) {
  *said = code == 1 ? "invalid argument" : "unknown";
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  strncpy(name, "a test's driver", (size_t)length);
  return 0;
}
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 36 ? 1000000 : 512;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(intptr_t)(device + 1);
  return 0;
}
int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  *free_bytes = *total = (size_t)1 << 30;
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address == 0;
}
int cuMemFree_v2(uint64_t address) {
  free((void*)(uintptr_t)address);
  return 0;
}
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void* stream) {
  (void)stream;
  if (bytes != gate_bytes) memset((void*)(uintptr_t)address, value, bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  (void)stream;
  memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
  return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  memcpy((void*)(uintptr_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  memcpy(to, (void*)(uintptr_t)from, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  *stream = (void*)(uintptr_t)(16 + flags);
  return 0;
}
int cuStreamSynchronize(void* stream) {
  (void)stream;
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)stream;
  return event == NULL || flags != 0;
}
int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof(struct timespec));
  return *event == NULL;
}
int cuEventDestroy_v2(void* event) {
  free(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  (void)stream;
  return clock_gettime(CLOCK_MONOTONIC, event);
}
int cuEventQuery(void* event) { return event == NULL; }
int cuEventElapsedTime(float* ms, void* first, void* last) {
  const struct timespec *a = first, *b = last;
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return 0;
}
