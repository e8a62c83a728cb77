/* layout.h - datatypes that move non-contiguous data: MPI's constructors without MPI.
 *
 * Contract: C11 and C++. A layout is built, committed, used, freed; constructors keep references to their children,
 *   which may be freed at once. Counts and displacements are 64 bits wide. Every function that can fail returns a
 *   status and leaves its outputs alone unless that is SPL_LAYOUT_OK; spl_layout_last_error() then says why in one
 *   sentence. No function ends the process or lets an exception out.
 * Invariants: (1) memory is written only when every argument was found good; (2) a pack, unpack or copy of the whole
 *   message touches bytes of the type map alone, never the gaps between them.
 * Threads: a committed layout may be used by any number of threads at once over disjoint destinations; the last error
 *   belongs to its thread. Time: none.
 *
 * Link with pkg-config (spinloom-layout) or CMake (find_package(Spinloom COMPONENTS layout), spinloom::layout).
 */
#ifndef SPINLOOM_LAYOUT_H
#define SPINLOOM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SPL_LAYOUT_API __attribute__((visibility("default")))
#else
#define SPL_LAYOUT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spl_layout spl_layout;

typedef enum spl_layout_status {
  SPL_LAYOUT_OK = 0,
  SPL_LAYOUT_INVALID = 1,     /* an argument or a text is wrong */
  SPL_LAYOUT_OVERFLOW = 2,    /* a size or displacement does not fit in 64 bits or a named limit */
  SPL_LAYOUT_UNSUPPORTED = 3, /* legal, but Spinloom cannot do it */
  SPL_LAYOUT_EXHAUSTED = 4,   /* memory, or a named limit, is used up */
  SPL_LAYOUT_INTERNAL = 5     /* our own bug */
} spl_layout_status;

/* The sentence of this thread's last failed call; "" if none has failed. Valid until the thread's next failure. */
SPL_LAYOUT_API const char *spl_layout_last_error(void);
SPL_LAYOUT_API const char *spl_layout_version(void);

/* ---- Build. *out is a new layout, to be freed with spl_layout_free. ---- */

typedef enum spl_layout_order {
  SPL_LAYOUT_ORDER_C = 0,
  SPL_LAYOUT_ORDER_FORTRAN = 1
} spl_layout_order;
typedef enum spl_layout_distribution {
  SPL_LAYOUT_NONE = 0,
  SPL_LAYOUT_BLOCK = 1,
  SPL_LAYOUT_CYCLIC = 2
} spl_layout_distribution;
#define SPL_LAYOUT_DEFAULT_ARGUMENT ((int64_t)-1) /* MPI_DISTRIBUTE_DFLT_DARG */

/* Name as in MPI, in lower case and without its prefix: "byte", "int", "double", "uint16_t", "c_double_complex". */
SPL_LAYOUT_API spl_layout_status spl_layout_primitive(const char *name, spl_layout **out);
/* The one-line notation, such as "vector(3, 2, 5, double)"; an error names line and column. */
SPL_LAYOUT_API spl_layout_status spl_layout_from_text(const char *text, spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_contiguous(int64_t count, const spl_layout *child, spl_layout **out);
/* The stride counts extents of the child; that of hvector counts bytes. */
SPL_LAYOUT_API spl_layout_status spl_layout_vector(int64_t count, int64_t block_length, int64_t stride,
                                                   const spl_layout *child, spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_hvector(int64_t count, int64_t block_length, int64_t stride_bytes,
                                                    const spl_layout *child, spl_layout **out);
/* Arrays of `count` entries; displacements count extents of the child, those of the h-forms bytes. */
SPL_LAYOUT_API spl_layout_status spl_layout_indexed(int64_t count, const int64_t *block_lengths,
                                                    const int64_t *displacements, const spl_layout *child,
                                                    spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_hindexed(int64_t count, const int64_t *block_lengths,
                                                     const int64_t *displacements_bytes, const spl_layout *child,
                                                     spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_indexed_block(int64_t count, int64_t block_length,
                                                          const int64_t *displacements, const spl_layout *child,
                                                          spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_hindexed_block(int64_t count, int64_t block_length,
                                                           const int64_t *displacements_bytes, const spl_layout *child,
                                                           spl_layout **out);
/* No padding is added at the end: use resized(0, sizeof(struct), ...) for arrays of C structs. */
SPL_LAYOUT_API spl_layout_status spl_layout_struct(int64_t count, const int64_t *block_lengths,
                                                   const int64_t *displacements_bytes,
                                                   const spl_layout *const *children, spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_resized(int64_t lb_bytes, int64_t extent_bytes, const spl_layout *child,
                                                    spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_subarray(int dimensions, const int64_t *sizes, const int64_t *subsizes,
                                                     const int64_t *starts, spl_layout_order order,
                                                     const spl_layout *child, spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_darray(int64_t processes, int64_t rank, int dimensions,
                                                   const int64_t *sizes, const spl_layout_distribution *distributions,
                                                   const int64_t *arguments, const int64_t *grid,
                                                   spl_layout_order order, const spl_layout *child, spl_layout **out);
SPL_LAYOUT_API spl_layout_status spl_layout_dup(const spl_layout *child, spl_layout **out);

/* Prepares a layout for moving data; committing again does nothing. Not while other threads use the layout. */
SPL_LAYOUT_API spl_layout_status spl_layout_commit(spl_layout *layout);
SPL_LAYOUT_API void spl_layout_free(spl_layout *layout); /* NULL is fine */

/* ---- Ask. The layout must not be NULL. ---- */

SPL_LAYOUT_API int64_t spl_layout_size(const spl_layout *layout); /* bytes of data */
SPL_LAYOUT_API int64_t spl_layout_lb(const spl_layout *layout);
SPL_LAYOUT_API int64_t spl_layout_extent(const spl_layout *layout); /* bytes from one element to the next */
SPL_LAYOUT_API int64_t spl_layout_true_lb(const spl_layout *layout);
SPL_LAYOUT_API int64_t spl_layout_true_extent(const spl_layout *layout);
/* count * size. */
SPL_LAYOUT_API spl_layout_status spl_layout_packed_bytes(const spl_layout *layout, int64_t count, int64_t *bytes);
/* The bytes that `count` elements may touch, as offsets from the buffer address: [*first, *last). */
SPL_LAYOUT_API spl_layout_status spl_layout_reach(const spl_layout *layout, int64_t count, int64_t *first,
                                                  int64_t *last);

typedef struct spl_layout_block {
  int64_t offset; /* bytes from the buffer address */
  int64_t bytes;
} spl_layout_block;

/* The contiguous blocks of `count` elements in packed order: *found gets their number, `blocks` the first `capacity` of
 * them. Committed layouts only. */
SPL_LAYOUT_API spl_layout_status spl_layout_blocks(const spl_layout *layout, int64_t count, spl_layout_block *blocks,
                                                   int64_t capacity, int64_t *found);
/* Text with its terminating zero, cut at `capacity` bytes; *needed gets the size of all of it. `text` may be NULL. */
SPL_LAYOUT_API spl_layout_status spl_layout_text(const spl_layout *layout, char *text, size_t capacity, size_t *needed);
/* The result of normalisation, such as "0 + vector(3, 8 B, stride 20 B)". */
SPL_LAYOUT_API spl_layout_status spl_layout_normal_form(const spl_layout *layout, char *text, size_t capacity,
                                                        size_t *needed);
/* The compact program (docs/formats/layout.md), which lives as long as the layout. Committed layouts only. */
SPL_LAYOUT_API spl_layout_status spl_layout_blob(const spl_layout *layout, const void **blob, size_t *bytes);

/* ---- Move. base is the address that displacements count from. Committed layouts only. ---- */

/* Packs the whole message of `count` elements; `packed` holds count * size bytes. */
SPL_LAYOUT_API spl_layout_status spl_layout_pack(const spl_layout *layout, int64_t count, const void *base,
                                                 void *packed);
/* Refuses a layout that writes a byte twice; the error names the place. */
SPL_LAYOUT_API spl_layout_status spl_layout_unpack(const spl_layout *layout, int64_t count, void *base,
                                                   const void *packed);
/* Packs only the packed bytes [first, last); `packed` holds last - first bytes. */
SPL_LAYOUT_API spl_layout_status spl_layout_pack_range(const spl_layout *layout, int64_t count, const void *base,
                                                       int64_t first, int64_t last, void *packed);
SPL_LAYOUT_API spl_layout_status spl_layout_unpack_range(const spl_layout *layout, int64_t count, void *base,
                                                         int64_t first, int64_t last, const void *packed);
/* Copies from one layout into another that holds equally many bytes. Both may lie in one array: then everything is read
 * before anything is written. */
SPL_LAYOUT_API spl_layout_status spl_layout_copy(const spl_layout *from, int64_t from_count, const void *from_base,
                                                 const spl_layout *to, int64_t to_count, void *to_base);

#ifdef __cplusplus
}
#endif

#endif
