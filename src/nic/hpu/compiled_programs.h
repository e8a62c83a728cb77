/* Programs that compiled_test.cpp runs twice: natively, and as RV32 code on the core. Freestanding C11. */
#ifndef SPINLOOM_HPU_COMPILED_PROGRAMS_H
#define SPINLOOM_HPU_COMPILED_PROGRAMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each fills or transforms `bytes` bytes of memory (a multiple of 64) and returns a digest. */
uint32_t program_sort(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_arithmetic_64(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_misaligned_copy(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_crc(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_divide(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_indirect(uint32_t seed, uint8_t* memory, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
