// The C calls of one-sided memory that wait for other ranks: notices, barriers, windows and locks (spinloom/rma.h).
#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "portals/calls/rma.hpp"

namespace spinloom::calls::one_sided {
namespace {

Result<std::vector<uint32_t>> nodes_of(const spl_rma& rma, const ptl_rank_t* group, uint32_t size) {
  if (group == nullptr && size > 0) return fail(Code::invalid, "the group is NULL, and has ", size, " ranks");
  std::vector<uint32_t> nodes;
  for (const ptl_rank_t rank : std::span(group, size)) {
    SPL_ASSIGN(const uint32_t node, node_of(rma, rank));
    nodes.push_back(node);
  }
  return nodes;
}

bool take_notice(spl_rma_memory& registered, spl_rma_notice& notice) {
  const auto found = registered.rma->context->next_notice(*registered.memory);
  if (!found) return false;
  notice = {found->value, found->offset, found->bytes, registered.rma->ranks.at(found->rank)};
  return true;
}

// Adds a handle for a window, or for this rank's part of one that has not been joined yet.
spl_rma_window* add_window(spl_rma& rma, std::unique_ptr<rma::Window> window) {
  spl_rma_window& added = rma.windows.emplace_back();
  added.rma = &rma;
  added.memory = {&rma, &window->memory()};
  added.window = std::move(window);
  return &added;
}

void find_keys(spl_rma_window& window) {
  for (const uint32_t node : window.rma->nodes) {
    const bool has_key = window.window->has_member(node);
    window.keys.push_back({has_key ? window.rma : nullptr, has_key ? window.window->key(node) : rma::Key{}});
  }
}

void remove_window(spl_rma_window* window) {
  window->rma->windows.remove_if([window](const spl_rma_window& one) { return &one == window; });
}

Status check_window(const void* memory, uint64_t bytes, int notices, const void* place) {
  if (place != nullptr && (memory != nullptr || bytes == 0) && notices >= 0 && notices <= SPL_RMA_QUEUED) return {};
  return fail(Code::invalid, "there is no place for the window, the memory is NULL, or notices are ", notices);
}

Result<rma::Window::Lock> lock_of(int kind) {
  if (kind == SPL_RMA_SHARED) return rma::Window::Lock::shared;
  if (kind == SPL_RMA_EXCLUSIVE) return rma::Window::Lock::exclusive;
  return fail(Code::invalid, "there is no lock ", kind);
}

// Does a call that looks, without waiting, whether something has ended.
template <class Test>
int test(const char* name, spl_rma* rma, int* done, Test is_done) {
  return with_context(name, rma, [&](rma::Context&) -> Status {
    if (done == nullptr) return fail(Code::invalid, "there is no place for the answer");
    spend_and_poll(*rma);
    SPL_ASSIGN(const bool has_ended, is_done());
    *done = has_ended ? 1 : 0;
    return {};
  });
}

Status check_notices(const spl_rma_memory& registered, const void* place, rma::Notices least) {
  if (place == nullptr) return fail(Code::invalid, "there is no place for the answer");
  if (registered.memory->notices() >= least) return {};
  return fail(Code::invalid, "the memory was registered without such notices");
}

}  // namespace
}  // namespace spinloom::calls::one_sided

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::calls::one_sided::context_of;
using spinloom::calls::one_sided::with_context;
using spinloom::rma::Context;
using spinloom::rma::Notices;
using spinloom::rma::Window;
namespace one_sided = spinloom::calls::one_sided;

extern "C" {

int spl_rma_notified(spl_rma_memory* registered, uint64_t* count) {
  return with_context("spl_rma_notified", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, count, Notices::counted));
    one_sided::spend_and_poll(*registered->rma);
    SPL_TRY(context.progress());
    *count = context.notified(*registered->memory);
    return {};
  });
}

int spl_rma_wait_notified(spl_rma_memory* registered, uint64_t count) {
  return with_context("spl_rma_wait_notified", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, registered, Notices::counted));
    SPL_TRY(context.watch_all());
    return context.wait_until("notices", Context::WaitFor::all_ranks,
                              [&] { return context.notified(*registered->memory) >= count; });
  });
}

int spl_rma_next_notice(spl_rma_memory* registered, spl_rma_notice* notice) {
  bool found = false;
  const int code = with_context("spl_rma_next_notice", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, notice, Notices::queued));
    one_sided::spend_and_poll(*registered->rma);
    SPL_TRY(context.progress());
    found = one_sided::take_notice(*registered, *notice);
    return {};
  });
  return code == PTL_OK && !found ? static_cast<int>(PTL_EQ_EMPTY) : code;
}

int spl_rma_wait_notice(spl_rma_memory* registered, spl_rma_notice* notice) {
  return with_context("spl_rma_wait_notice", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, notice, Notices::queued));
    SPL_TRY(context.watch_all());
    return context.wait_until("a notice", Context::WaitFor::all_ranks,
                              [&] { return one_sided::take_notice(*registered, *notice); });
  });
}

int spl_rma_flush_test(spl_rma* rma, ptl_rank_t rank, int* done) {
  return one_sided::test("spl_rma_flush_test", rma, done, [&]() -> spinloom::Result<bool> {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*rma, rank));
    SPL_TRY(rma->context->progress());
    if (!rma->context->is_quiet(node)) return false;
    SPL_TRY(rma->context->flush(node));
    return true;
  });
}

int spl_rma_barrier(spl_rma* rma) {
  return with_context("spl_rma_barrier", rma, [](Context& context) { return context.barrier(); });
}

int spl_rma_fence(spl_rma* rma) {
  return with_context("spl_rma_fence", rma, [](Context& context) -> Status {
    Status flushed = context.flush_all();
    SPL_TRY(context.barrier());
    return flushed;
  });
}

int spl_rma_window_make(spl_rma* rma, void* memory, uint64_t bytes, unsigned int rights, int notices,
                        spl_rma_window** window) {
  return with_context("spl_rma_window_make", rma, [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_window(memory, bytes, notices, window));
    SPL_ASSIGN(auto created,
               Window::make(context, {{static_cast<uint8_t*>(memory), bytes}}, rights, static_cast<Notices>(notices)));
    *window = one_sided::add_window(*rma, std::move(created));
    one_sided::find_keys(**window);
    return {};
  });
}

int spl_rma_window_part(spl_rma* rma, const ptl_rank_t* group, uint32_t size, void* memory, uint64_t bytes,
                        unsigned int rights, int notices, spl_rma_window** window, spl_rma_part_text* text) {
  return with_context("spl_rma_window_part", rma, [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_window(memory, bytes, notices, window));
    if (text == nullptr) return fail(Code::invalid, "there is no place for the text");
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*rma, group, size));
    SPL_ASSIGN(auto part, Window::make_part(context, nodes, {{static_cast<uint8_t*>(memory), bytes}}, rights,
                                            static_cast<Notices>(notices)));
    static_assert(sizeof(*text) == sizeof(part.text), "a part's text is told as it is");
    std::memcpy(text->bytes, part.text.data(), part.text.size());
    *window = one_sided::add_window(*rma, std::move(part.window));
    return {};
  });
}

int spl_rma_window_join(spl_rma_window* window, const spl_rma_part_text* texts) {
  return with_context("spl_rma_window_join", context_of(window), [&](Context&) -> Status {
    if (texts == nullptr) return fail(Code::invalid, "there are no texts");
    std::vector<Window::Text> all(window->window->members().size());
    std::memcpy(all.data(), texts, all.size() * sizeof(Window::Text));
    SPL_TRY(window->window->join(all));
    one_sided::find_keys(*window);
    return {};
  });
}

int spl_rma_window_free(spl_rma_window* window) {
  return with_context("spl_rma_window_free", context_of(window), [&](Context&) -> Status {
    if (window->window->is_open()) return fail(Code::invalid, "it has an open epoch, fence or lock; end it first");
    const Status freed = window->window->free();
    one_sided::remove_window(window);
    return freed;
  });
}

int spl_rma_window_drop(spl_rma_window* window) {
  return with_context("spl_rma_window_drop", context_of(window), [&](Context&) -> Status {
    if (window->window->is_open()) return fail(Code::invalid, "it has an open epoch, fence or lock; end it first");
    const Status dropped = window->window->drop();
    one_sided::remove_window(window);
    return dropped;
  });
}

int spl_rma_window_fence(spl_rma_window* window) {
  return with_context("spl_rma_window_fence", context_of(window), [&](Context&) { return window->window->fence(); });
}

int spl_rma_window_fence_begin(spl_rma_window* window) {
  return with_context("spl_rma_window_fence_begin", context_of(window),
                      [&](Context&) { return window->window->begin_fence(); });
}

int spl_rma_window_fence_test(spl_rma_window* window, int* done) {
  return one_sided::test("spl_rma_window_fence_test", context_of(window), done,
                         [&] { return window->window->test_fence(); });
}

spl_rma_key* spl_rma_window_key(spl_rma_window* window, ptl_rank_t rank) {
  if (window == nullptr || rank >= window->keys.size()) return nullptr;
  spl_rma_key& key = window->keys[rank];
  return key.rma != nullptr ? &key : nullptr;
}

spl_rma_memory* spl_rma_window_memory(spl_rma_window* window) { return window != nullptr ? &window->memory : nullptr; }

int spl_rma_post(spl_rma_window* window, const ptl_rank_t* group, uint32_t size) {
  return with_context("spl_rma_post", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*window->rma, group, size));
    return window->window->post(nodes);
  });
}

int spl_rma_start(spl_rma_window* window, const ptl_rank_t* group, uint32_t size) {
  return with_context("spl_rma_start", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*window->rma, group, size));
    return window->window->start(nodes);
  });
}

int spl_rma_complete(spl_rma_window* window) {
  return with_context("spl_rma_complete", context_of(window), [&](Context&) { return window->window->complete(); });
}

int spl_rma_wait_completed(spl_rma_window* window) {
  return with_context("spl_rma_wait_completed", context_of(window),
                      [&](Context&) { return window->window->wait_completed(); });
}

int spl_rma_start_test(spl_rma_window* window, const ptl_rank_t* group, uint32_t size, int* done) {
  return one_sided::test("spl_rma_start_test", context_of(window), done, [&]() -> spinloom::Result<bool> {
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*window->rma, group, size));
    return window->window->test_start(nodes);
  });
}

int spl_rma_test_completed(spl_rma_window* window, int* done) {
  return one_sided::test("spl_rma_test_completed", context_of(window), done,
                         [&] { return window->window->test_completed(); });
}

int spl_rma_lock(spl_rma_window* window, ptl_rank_t rank, int kind) {
  return with_context("spl_rma_lock", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto lock, one_sided::lock_of(kind));
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->lock(node, lock);
  });
}

int spl_rma_lock_begin(spl_rma_window* window, ptl_rank_t rank, int kind) {
  return with_context("spl_rma_lock_begin", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto lock, one_sided::lock_of(kind));
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->begin_lock(node, lock);
  });
}

int spl_rma_lock_test(spl_rma_window* window, ptl_rank_t rank, int* done) {
  return one_sided::test("spl_rma_lock_test", context_of(window), done, [&]() -> spinloom::Result<bool> {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->test_lock(node);
  });
}

int spl_rma_unlock(spl_rma_window* window, ptl_rank_t rank) {
  return with_context("spl_rma_unlock", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->unlock(node);
  });
}

int spl_rma_lock_all(spl_rma_window* window) {
  return with_context("spl_rma_lock_all", context_of(window), [&](Context&) { return window->window->lock_all(); });
}

int spl_rma_unlock_all(spl_rma_window* window) {
  return with_context("spl_rma_unlock_all", context_of(window), [&](Context&) { return window->window->unlock_all(); });
}

}  // extern "C"
