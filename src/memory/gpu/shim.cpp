#include "memory/gpu/shim.hpp"

#include <array>
#include <cstddef>

#include "memory/gpu/kernel_bodies.h"
#include "memory/gpu/kernel_brief.h"
#include "memory/gpu/program_body.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::gpu {
namespace {

// True if the kernels' nodes are laid out like those of the blob.
template <class U, class S, class W>
constexpr bool same_nodes() {
  using N = kernel::Node<U, S>;
  using M = typename W::Node;
  return sizeof(N) == sizeof(M) && offsetof(N, kind) == offsetof(M, kind) && offsetof(N, shift) == offsetof(M, shift) &&
         offsetof(N, child) == offsetof(M, child) && offsetof(N, count) == offsetof(M, count) &&
         offsetof(N, size) == offsetof(M, size) && offsetof(N, block) == offsetof(M, block) &&
         offsetof(N, reciprocal) == offsetof(M, reciprocal) && offsetof(N, stride) == offsetof(M, stride) &&
         sizeof(kernel::Run<U, S>) == sizeof(typename W::Run) &&
         sizeof(kernel::Member<U, S>) == sizeof(typename W::Member);
}
static_assert(same_nodes<kernel::u32, kernel::i32, layout::Narrow>());
static_assert(same_nodes<kernel::u64, kernel::i64, layout::Wide>());
static_assert(sizeof(spl_layout_header) == kernel::root_place);

template <uint32_t kind>
void run_tiles(const Program::Body& body, std::span<const Ends> ends) {
  const kernel::Arguments arguments = body.arguments(body.arena.data());
  alignas(16) std::array<kernel::u8, kernel::shared_bytes> shared{};
  for (uint32_t tile = 0; tile < body.tiles; ++tile) {
    const kernel::Part& part = kernel::part_of(arguments, tile);
    const Ends& pair = ends[part.ends_index];
    const kernel::Ends here{static_cast<const kernel::u8*>(pair.from), static_cast<kernel::u8*>(pair.to)};
    const uint32_t phases = part.kind == kernel::kind_tile ? 2 : 1;
    for (uint32_t phase = 0; phase < phases; ++phase) {
      for (uint32_t thread = 0; thread < kernel::threads; ++thread) {
        kernel::run<kind>(arguments, part, here, tile, thread, phase, shared.data());
      }
    }
  }
}

// Does what the kernel of a Brief does. False: a launch would take another kernel.
bool run_in_brief(const Program::Body& body, std::span<const Ends> ends) {
  if (!body.brief) return false;
  const kernel::Ends here{static_cast<const kernel::u8*>(ends[0].from), static_cast<kernel::u8*>(ends[0].to)};
  if (kernel::width_of(*body.brief, here) < body.parts[0].warp_below) return false;
  const kernel::Arguments arguments = body.arguments(body.arena.data());
  for (uint32_t block = 0; block < body.brief_blocks(); ++block) {
    for (uint32_t thread = 0; thread < kernel::threads; ++thread) {
      kernel::run_brief(*body.brief, arguments.arena, here, block, thread);
    }
  }
  return true;
}

}  // namespace

Status run_on_host(const Program& program, std::span<const Ends> ends) {
  const Program::Body& body = program.body();
  if (ends.size() < body.ends_count) {
    return fail(Code::invalid, ends.size(), " pairs of addresses for a set that names ", body.ends_count);
  }
  if (run_in_brief(body, ends)) return {};
  // Runs what the entry that a launch would take runs.
  switch (body.entry()) {
    case kernel::kind_word:
    case kernel::kinds + 2: run_tiles<kernel::kind_word>(body, ends); break;
    case kernel::kind_warp: run_tiles<kernel::kind_warp>(body, ends); break;
    case kernel::kind_tile: run_tiles<kernel::kind_tile>(body, ends); break;
    case kernel::kind_pieces: run_tiles<kernel::kind_pieces>(body, ends); break;
    case kernel::kind_walk: run_tiles<kernel::kind_walk>(body, ends); break;
    default: run_tiles<kernel::kinds>(body, ends); break;
  }
  return {};
}

}  // namespace spinloom::gpu
