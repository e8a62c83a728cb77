#include "memory/gpu/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include "memory/gpu/program_body.hpp"
#include "memory/gpu/program_brief.hpp"
#include "memory/gpu/program_part.hpp"

namespace spinloom::gpu {
namespace {

static_assert(std::size(kernel_names) == kernel::kinds && ends_max == kernel::many_ends);

constexpr int64_t tile_bytes_max = 16384;
constexpr int64_t tiles_wanted = 1024;  // for a set: a few for each multiprocessor
constexpr int64_t tiles_max = (int64_t{1} << 31) - 1;
constexpr int64_t launch_bytes = int64_t{4} << 20;  // a launch takes as long as moving so many bytes

// Returns the kernel that is forced, or nothing. An unknown name is an Error.
Result<std::optional<uint32_t>> forced_kernel(const ProgramOptions& options) {
  std::string name = options.kernel;
  const char* const variable = std::getenv("SPINLOOM_GPU_KERNEL");
  const bool given = !name.empty();
  if (!given && variable != nullptr) name = variable;
  if (name.empty()) return std::optional<uint32_t>();
  for (uint32_t kind = 0; kind < kernel::kinds; ++kind) {
    if (name == kernel_names[kind]) return std::optional<uint32_t>(kind);
  }
  return fail(Code::invalid, given ? "" : "SPINLOOM_GPU_KERNEL: ", "there is no kernel '", name,
              "': word, warp, tile, pieces or walk");
}

}  // namespace

Result<Program> Program::make(std::span<const Message> messages, const ProgramOptions& options) {
  SPL_ASSIGN(const std::optional<uint32_t> forced, forced_kernel(options));
  DraftOptions how;
  how.pieces = forced == kernel::kind_pieces;
  how.walk = forced == kernel::kind_walk;
  how.lists = messages.size() == 1 && !forced;
  how.pieces_bytes_max = options.pieces_bytes_max;
  auto body = std::make_shared<Body>();
  std::vector<std::vector<Draft>> drafts;
  size_t parts = 0;
  for (const Message& message : messages) {
    if (message.ends >= ends_max) {
      return fail(Code::invalid, "a message names pair of addresses ", message.ends, ", a launch has at most ",
                  ends_max, ": give messages of one allocation offsets under one pair");
    }
    body->ends = std::max(body->ends, message.ends + 1);
    SPL_ASSIGN(std::vector<Draft> made, drafts_of(message, how));
    for (const Draft& draft : made) body->bytes += draft.bytes();
    parts += made.size();
    drafts.push_back(std::move(made));
  }
  ProgramArena arena(kernel::parts_place + parts * sizeof(kernel::Part));
  int64_t tile_bytes = tile_bytes_max;
  while (body->bytes / tile_bytes < tiles_wanted && tile_bytes > kernel::threads) tile_bytes /= 2;
  int64_t tiles = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const Draft& draft : drafts[i]) {
      kernel::Part part = lay_down(draft, messages[i], forced, arena);
      if (parts == 1 && !forced && prefers_brief(part)) {
        part = lay_down(draft, messages[i], kernel::kind_word, arena);
      }
      part.streaming = options.streaming ? 1 : 0;
      cut(part, tile_bytes);
      part.first_tile = static_cast<uint32_t>(tiles);
      tiles += tiles_of(part);
      if (tiles > tiles_max) {
        return fail(Code::overflow, "a set of ", body->bytes, " bytes needs more than ", tiles_max,
                    " blocks of threads: make several plans of it");
      }
      body->touched += touched_by(draft, part);
      body->kind = body->parts.empty() || body->kind == part.kind ? part.kind : uint32_t{kernel::kinds};
      body->parts.push_back(part);
    }
  }
  body->tiles = static_cast<uint32_t>(tiles);
  if (parts == 1 && body->ends == 1 && !forced) body->brief = brief_of(body->parts[0]);
  if (body->parts.size() > 1) {
    std::vector<uint32_t> of_tile;
    of_tile.reserve(static_cast<size_t>(tiles));
    for (uint32_t part = 0; part < body->parts.size(); ++part) {
      of_tile.insert(of_tile.end(), static_cast<size_t>(tiles_of(body->parts[part])), part);
    }
    body->tile_parts = arena.add(of_tile);
  }
  if (!body->parts.empty()) {
    std::memcpy(arena.at(kernel::parts_place), body->parts.data(), body->parts.size() * sizeof(kernel::Part));
  }
  body->arena = arena.finish();
  return Program(std::move(body));
}

int64_t Program::bytes() const { return body_->bytes; }
int64_t Program::bytes_touched() const { return body_->touched; }
int64_t Program::memory() const { return static_cast<int64_t>(body_->arena.size() * sizeof(uint64_t)); }
int Program::launches() const { return body_->tiles == 0 ? 0 : 1; }
uint32_t Program::ends() const { return body_->ends; }

std::string Program::kernel_name() const {
  if (body_->parts.empty()) return "none";
  if (body_->kind != kernel::kinds) return std::string(kernel_names[body_->kind]);
  std::string names;
  for (uint32_t kind = 0; kind < kernel::kinds; ++kind) {
    const auto is_kind = [&](const kernel::Part& part) { return part.kind == kind; };
    if (std::none_of(body_->parts.begin(), body_->parts.end(), is_kind)) continue;
    names += text(names.empty() ? "" : ", ", kernel_names[kind]);
  }
  return "set(" + names + ")";
}

std::string Program::bound() const {
  if (2 * body_->bytes <= launch_bytes) return "launch";
  return 2 * body_->touched > 3 * 2 * body_->bytes ? "sectors" : "bandwidth";
}

}  // namespace spinloom::gpu
