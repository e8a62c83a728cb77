// Kernel parts - what a kernel reads: parts, levels, tables, at places of one arena of bytes.
//
// Contract: one source for CUDA, NVRTC and the host: no includes, no library. Places are bytes from the arena's start;
//   0 is none. A part moves `bytes` packed bytes; packed byte p of it lies at
//     part.from (part.to) + r + sum over levels of (table[d] or d * stride), r = p mod block, d = digits of p / block
//   on the source's (target's) side; level 0 turns fastest. Kinds differ in what a block is: contiguous bytes, a table
//   of pieces, a walk in a blob.
// Invariants: (1) bytes < 2^31, so that positions and digits are 32-bit and quotients are a multiply-high and a shift
//   (include/spinloom/layout_walk.h has the proof); (2) width divides block, strides and table entries.
// Threads: read only. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_PARTS_H
#define SPINLOOM_GPU_KERNEL_PARTS_H

namespace spinloom::gpu::kernel {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 threads = 256;
constexpr u32 warp_threads = 32;
constexpr u32 levels_max = 8;
constexpr u32 shared_bytes = 20480;
constexpr u32 parts_place = 64;  // place of the first part in the arena
constexpr u32 ends_max = 224;  // pairs of addresses of one launch

enum Kind : u32 { kind_word, kind_warp, kind_tile, kind_pieces, kind_walk, kinds };

struct FastDivisor {  // the numbers that replace a division by a divisor below 2^31
  u32 divisor;
  u32 reciprocal;
  u32 shift;
};

struct Step {  // one side of a level
  i64 stride;
  u64 table;  // place of offsets, or 0: the stride counts
};

struct Level {
  FastDivisor count;
  u32 wide_from;  // entries of the table have 64 bits, unless 0
  u32 wide_to;
  u32 reserved;
  Step from;
  Step to;
};

// One side of a walk: elements of the blob at place `blob`; packed bytes if that is 0.
struct Walk {
  u64 blob;
  u64 size;
  u64 size_reciprocal;  // wide
  u32 size_shift;
  u32 narrow;
  i64 extent;
  i64 origin;
};

struct Part {
  u32 kind;
  u32 width;       // 1, 2, 4, 8 or 16
  u32 warp_below;  // a warp moves each block where addresses allow only words of fewer bytes
  u32 ends_index;        // number of the pair of addresses
  u32 first_tile;  // number of tiles of the parts before
  u32 tile_bytes;
  u32 bytes;
  u32 dense;  // 1: `from` is contiguous; 2: `to` is
  u32 streaming;  // kind word, `from` contiguous: what is written leaves the cache first
  u32 levels;
  FastDivisor block;
  i64 from;
  i64 to;
  Level level[levels_max];
  // pieces: starts (u32, one more than pieces), offsets on either side (place 0: the start itself)
  u32 pieces;
  u32 hint_shift;
  u64 starts;
  u64 hints;  // hints[k]: the piece that holds byte k << hint_shift of a block
  u64 from_offsets;
  u64 to_offsets;
  u32 wide_offsets;
  // tile: columns along the level in which `from` runs fastest, rows along that of `to`
  u32 column_level;
  u32 row_level;
  u32 pitch;    // bytes from one line of a tile to the next in shared memory
  u32 columns;  // columns and rows of one tile
  u32 rows;
  FastDivisor column_tiles;
  FastDivisor row_tiles;
  FastDivisor column_bytes;  // columns * block
  FastDivisor row_bytes;     // rows * block
  // walk
  u64 first;  // packed byte of the message where the part begins
  Walk from_walk;
  Walk to_walk;
};

struct BriefLevel {
  FastDivisor count;
  i32 from_stride;
  i32 to_stride;
  u32 from_table;  // place of offsets of 32 bits, or 0: the stride counts
  u32 to_table;
};

// A part of a short message (kernel_brief.h), so small that it travels with the launch.
struct Brief {
  u32 bytes;
  u32 width;
  u32 levels;
  FastDivisor block;
  i64 from;
  i64 to;
  BriefLevel level[levels_max];
};

struct Ends {
  const u8* from;
  u8* to;
};

struct OneEnds {
  Ends ends[1];
};
struct ManyEnds {
  Ends ends[ends_max];
};

struct Arguments {
  const u8* arena;
  u64 tile_parts;  // place of the part of each tile (u32), or 0: there is one part
};

}  // namespace spinloom::gpu::kernel

#endif
