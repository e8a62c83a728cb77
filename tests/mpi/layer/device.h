/* Device - buffers in the memory of the GPU of tests/gpu/driver, where LAYER_DEVICE says how many of 100 shall be
 * there.
 *
 * Contract: device_alloc() gives memory of the GPU, which MPI is told, and `window`, where the test sees the same
 * bytes; or memory of the host, where both are one. Only that driver has windows. */
#ifndef DEVICE_H
#define DEVICE_H

unsigned char* device_alloc(long bytes, unsigned char** window);
void device_free(unsigned char* memory, unsigned char* window);
#endif
