// The C calls of one-sided memory that wait for other ranks: notices, barriers, windows and locks (spinloom/rma.h).
#include <algorithm>
#include <span>
#include <tuple>

#include "ptl/rma.hpp"

namespace spinloom::ptl::one_sided {
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

Status check_notices(const spl_rma_memory& registered, const void* place, rma::Notices least) {
  if (place == nullptr) return fail(Code::invalid, "there is no place for the answer");
  if (registered.memory->notices() >= least) return {};
  return fail(Code::invalid, "the memory was registered without such notices");
}

}  // namespace
}  // namespace spinloom::ptl::one_sided

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::ptl::one_sided::context_of;
using spinloom::ptl::one_sided::with;
using spinloom::rma::Context;
using spinloom::rma::Notices;
using spinloom::rma::Window;
namespace one_sided = spinloom::ptl::one_sided;

extern "C" {

int spl_rma_notified(spl_rma_memory* registered, uint64_t* count) {
  return with("spl_rma_notified", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, count, Notices::counted));
    one_sided::look(*registered->rma);
    SPL_TRY(context.progress());
    *count = context.notified(*registered->memory);
    return {};
  });
}

int spl_rma_wait_notified(spl_rma_memory* registered, uint64_t count) {
  return with("spl_rma_wait_notified", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, registered, Notices::counted));
    SPL_TRY(context.watch_all());
    return context.wait_until("notices", Context::For::all_ranks,
                              [&] { return context.notified(*registered->memory) >= count; });
  });
}

int spl_rma_next_notice(spl_rma_memory* registered, spl_rma_notice* notice) {
  bool found = false;
  const int code = with("spl_rma_next_notice", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, notice, Notices::queued));
    one_sided::look(*registered->rma);
    SPL_TRY(context.progress());
    found = one_sided::take_notice(*registered, *notice);
    return {};
  });
  return code == PTL_OK && !found ? static_cast<int>(PTL_EQ_EMPTY) : code;
}

int spl_rma_wait_notice(spl_rma_memory* registered, spl_rma_notice* notice) {
  return with("spl_rma_wait_notice", context_of(registered), [&](Context& context) -> Status {
    SPL_TRY(one_sided::check_notices(*registered, notice, Notices::queued));
    SPL_TRY(context.watch_all());
    return context.wait_until("a notice", Context::For::all_ranks,
                              [&] { return one_sided::take_notice(*registered, *notice); });
  });
}

int spl_rma_barrier(spl_rma* rma) {
  return with("spl_rma_barrier", rma, [](Context& context) { return context.barrier(); });
}

int spl_rma_fence(spl_rma* rma) {
  return with("spl_rma_fence", rma, [](Context& context) -> Status {
    Status flushed = context.flush_all();
    SPL_TRY(context.barrier());
    return flushed;
  });
}

int spl_rma_window_make(spl_rma* rma, void* memory, uint64_t bytes, unsigned int rights, int notices,
                        spl_rma_window** window) {
  return with("spl_rma_window_make", rma, [&](Context& context) -> Status {
    if (window == nullptr || (memory == nullptr && bytes > 0) || notices < 0 || notices > SPL_RMA_QUEUED) {
      return fail(Code::invalid, "there is no place for the window, the memory is NULL, or notices are ", notices);
    }
    SPL_ASSIGN(auto made,
               Window::make(context, {{static_cast<uint8_t*>(memory), bytes}}, rights, static_cast<Notices>(notices)));
    spl_rma_window& added = rma->windows.emplace_back();
    added.rma = rma;
    added.memory = {rma, &made->memory()};
    for (const uint32_t node : rma->nodes) added.keys.push_back({rma, made->key(node)});
    added.window = std::move(made);
    *window = &added;
    return {};
  });
}

int spl_rma_window_free(spl_rma_window* window) {
  return with("spl_rma_window_free", context_of(window), [&](Context&) -> Status {
    if (window->window->is_open()) return fail(Code::invalid, "it has an open epoch or a lock; end it first");
    const Status freed = window->window->free();
    window->rma->windows.remove_if([window](const spl_rma_window& one) { return &one == window; });
    return freed;
  });
}

spl_rma_key* spl_rma_window_key(spl_rma_window* window, ptl_rank_t rank) {
  return window != nullptr && rank < window->keys.size() ? &window->keys[rank] : nullptr;
}

spl_rma_memory* spl_rma_window_memory(spl_rma_window* window) { return window != nullptr ? &window->memory : nullptr; }

int spl_rma_post(spl_rma_window* window, const ptl_rank_t* group, uint32_t size) {
  return with("spl_rma_post", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*window->rma, group, size));
    return window->window->post(nodes);
  });
}

int spl_rma_start(spl_rma_window* window, const ptl_rank_t* group, uint32_t size) {
  return with("spl_rma_start", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const auto nodes, one_sided::nodes_of(*window->rma, group, size));
    return window->window->start(nodes);
  });
}

int spl_rma_complete(spl_rma_window* window) {
  return with("spl_rma_complete", context_of(window), [&](Context&) { return window->window->complete(); });
}

int spl_rma_wait_completed(spl_rma_window* window) {
  return with("spl_rma_wait_completed", context_of(window), [&](Context&) { return window->window->wait_completed(); });
}

int spl_rma_test_completed(spl_rma_window* window, int* done) {
  return with("spl_rma_test_completed", context_of(window), [&](Context&) -> Status {
    if (done == nullptr) return fail(Code::invalid, "there is no place for the answer");
    one_sided::look(*window->rma);
    SPL_ASSIGN(const bool completed, window->window->test_completed());
    *done = completed ? 1 : 0;
    return {};
  });
}

int spl_rma_lock(spl_rma_window* window, ptl_rank_t rank, int kind) {
  return with("spl_rma_lock", context_of(window), [&](Context&) -> Status {
    if (kind != SPL_RMA_SHARED && kind != SPL_RMA_EXCLUSIVE) return fail(Code::invalid, "there is no lock ", kind);
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->lock(node, kind == SPL_RMA_SHARED ? Window::Lock::shared : Window::Lock::exclusive);
  });
}

int spl_rma_unlock(spl_rma_window* window, ptl_rank_t rank) {
  return with("spl_rma_unlock", context_of(window), [&](Context&) -> Status {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*window->rma, rank));
    return window->window->unlock(node);
  });
}

int spl_rma_lock_all(spl_rma_window* window) {
  return with("spl_rma_lock_all", context_of(window), [&](Context&) { return window->window->lock_all(); });
}

int spl_rma_unlock_all(spl_rma_window* window) {
  return with("spl_rma_unlock_all", context_of(window), [&](Context&) { return window->window->unlock_all(); });
}

}  // extern "C"
