/* Programs with floating point, run as those of compiled_programs.h are. No result is a NaN, whose bits may differ. */
#ifndef SPINLOOM_HPU_COMPILED_FLOAT_H
#define SPINLOOM_HPU_COMPILED_FLOAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint32_t program_complex(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_single(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_mixed(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_roots(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_sort_numbers(uint32_t seed, uint8_t* memory, uint32_t bytes);
uint32_t program_fused(uint32_t seed, uint8_t* memory, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
