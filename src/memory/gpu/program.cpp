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

static_assert(std::size(kernel_names) == kernel::kinds && ends_max == kernel::ends_max);

constexpr int64_t tile_bytes_max = 16384;
constexpr int64_t tiles_wanted = 1024;  // the number that a set should have: a few for each multiprocessor
constexpr int64_t tiles_max = (int64_t{1} << 31) - 1;
constexpr int64_t launch_bytes = int64_t{4} << 20;  // a launch takes as long as moving so many bytes

// Returns the kernel that is forced, or nothing. An unknown name is an Error.
Result<std::optional<uint32_t>> forced_kernel(const ProgramOptions& options) {
  std::string name = options.kernel;
  const char* const variable = std::getenv("SPINLOOM_GPU_KERNEL");
  const bool is_option = !name.empty();
  if (!is_option && variable != nullptr) name = variable;
  if (name.empty()) return std::optional<uint32_t>();
  for (uint32_t kind = 0; kind < kernel::kinds; ++kind) {
    if (name == kernel_names[kind]) return std::optional<uint32_t>(kind);
  }
  return fail(Code::invalid, is_option ? "" : "SPINLOOM_GPU_KERNEL: ", "there is no kernel '", name,
              "': word, warp, tile, pieces or walk");
}

}  // namespace

Result<Program> Program::make(std::span<const Message> messages, const ProgramOptions& options) {
  SPL_ASSIGN(const std::optional<uint32_t> forced, forced_kernel(options));
  DraftOptions draft_options;
  draft_options.only_pieces = forced == kernel::kind_pieces;
  draft_options.only_walk = forced == kernel::kind_walk;
  draft_options.allow_lists = messages.size() == 1 && !forced;
  draft_options.pieces_bytes_max = options.pieces_bytes_max;
  auto body = std::make_shared<Body>();
  std::vector<std::vector<Draft>> drafts;
  size_t parts = 0;
  for (const Message& message : messages) {
    if (message.ends_index >= ends_max) {
      return fail(Code::invalid, "a message names pair of addresses ", message.ends_index, ", a launch has at most ",
                  ends_max, ": give messages of one allocation offsets under one pair");
    }
    body->ends_count = std::max(body->ends_count, message.ends_index + 1);
    SPL_ASSIGN(std::vector<Draft> message_drafts, drafts_of(message, draft_options));
    for (const Draft& draft : message_drafts) body->bytes += draft.bytes();
    parts += message_drafts.size();
    drafts.push_back(std::move(message_drafts));
  }
  ProgramArena arena(kernel::parts_place + parts * sizeof(kernel::Part));
  int64_t tile_bytes = tile_bytes_max;
  while (body->bytes / tile_bytes < tiles_wanted && tile_bytes > kernel::threads) tile_bytes /= 2;
  int64_t tiles = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const Draft& draft : drafts[i]) {
      kernel::Part part = make_part(draft, messages[i], forced, arena);
      if (parts == 1 && !forced && prefers_brief(part)) {
        part = make_part(draft, messages[i], kernel::kind_word, arena);
      }
      part.streaming = options.streaming ? 1 : 0;
      set_tile_bytes(part, tile_bytes);
      part.first_tile = static_cast<uint32_t>(tiles);
      tiles += tiles_of(part);
      if (tiles > tiles_max) {
        return fail(Code::overflow, "a set of ", body->bytes, " bytes needs more than ", tiles_max,
                    " blocks of threads: make several plans of it");
      }
      body->bytes_touched += bytes_touched_by(draft, part);
      body->kind = body->parts.empty() || body->kind == part.kind ? part.kind : uint32_t{kernel::kinds};
      body->parts.push_back(part);
    }
  }
  body->tiles = static_cast<uint32_t>(tiles);
  if (parts == 1 && body->ends_count == 1 && !forced) body->brief = brief_of(body->parts[0]);
  if (body->parts.size() > 1) {
    std::vector<uint32_t> tile_parts;
    tile_parts.reserve(static_cast<size_t>(tiles));
    for (uint32_t part = 0; part < body->parts.size(); ++part) {
      tile_parts.insert(tile_parts.end(), static_cast<size_t>(tiles_of(body->parts[part])), part);
    }
    body->tile_parts = arena.add(tile_parts);
  }
  if (!body->parts.empty()) {
    std::memcpy(arena.at(kernel::parts_place), body->parts.data(), body->parts.size() * sizeof(kernel::Part));
  }
  body->arena = arena.finish();
  return Program(std::move(body));
}

int64_t Program::bytes() const { return body_->bytes; }
int64_t Program::bytes_touched() const { return body_->bytes_touched; }
int64_t Program::device_bytes() const { return static_cast<int64_t>(body_->arena.size() * sizeof(uint64_t)); }
int Program::launches() const { return body_->tiles == 0 ? 0 : 1; }
uint32_t Program::ends_count() const { return body_->ends_count; }

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

std::string Program::bottleneck() const {
  if (2 * body_->bytes <= launch_bytes) return "launch";
  return 2 * body_->bytes_touched > 3 * 2 * body_->bytes ? "sectors" : "bandwidth";
}

}  // namespace spinloom::gpu
