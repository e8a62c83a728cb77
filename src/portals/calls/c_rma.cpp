// The C calls of one-sided memory: contexts, memory and keys (spinloom/rma.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "portals/calls/convert.hpp"
#include "portals/calls/meet.hpp"
#include "portals/calls/rma.hpp"

namespace spinloom::calls::one_sided {

std::string& opening_error() {
  static thread_local std::string error;
  return error;
}

Result<std::vector<nic::IovecElement>> pieces_of(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return fail(Code::invalid, "the list of pieces is NULL");
  auto elements = list_of(list, count, std::numeric_limits<int>::max());
  if (!elements) return fail(Code::invalid, "a piece has no memory, or they are too many");
  return std::move(*elements);
}

namespace {

// A context has two portal table entries: this one, unless the caller names another, and the one below it for notices.
constexpr ptl_pt_index_t default_portal = 62;
constexpr uint32_t message_bytes_max = 1 << 20;
constexpr uint32_t messages_max = 256;
constexpr uint32_t notices_max = 1 << 16;

bool wait_in_call(Process& process, const char* call, Time deadline) {
  if (deadline <= process.host().port().now()) return !process.is_aborted();
  const WaiterScope waiter_scope(process);
  const BlockedCall blocked{.call = call};
  const BlockedScope blocked_scope(process, blocked);
  process.host().wait(deadline);
  return !process.is_aborted();
}

Result<rma::Options> options_of(const spl_rma_options& arguments, Process& process, const NetworkInterface& interface) {
  if (arguments.way < 0 || arguments.way > SPL_RMA_EMULATED || arguments.above_limit < 0 ||
      arguments.above_limit > SPL_RMA_EMULATE) {
    return fail(Code::invalid, "spl_rma_open: way is ", arguments.way, " and above_limit ", arguments.above_limit,
                "; each is 0 or 1");
  }
  if (arguments.message_bytes > message_bytes_max || arguments.message_bytes % 64 != 0 ||
      arguments.messages > messages_max || arguments.notices > notices_max) {
    return fail(Code::invalid, "spl_rma_open: message_bytes is ", arguments.message_bytes, ", a multiple of 64 up to ",
                message_bytes_max, "; messages ", arguments.messages, ", up to ", messages_max, "; notices ",
                arguments.notices, ", up to ", notices_max);
  }
  const ptl_pt_index_t portal = arguments.portal != 0 ? arguments.portal : default_portal;
  if (portal >= portals_each || interface.portals[portal] || interface.portals[portal - 1]) {
    return fail(Code::invalid, "spl_rma_open: portal table entries ", portal - 1, " and ", portal,
                " are not both free; choose others by spl_rma_options.portal, the same at all ranks");
  }
  rma::Options options;
  options.portal = portal_of(interface, portal);
  options.notice_portal = portal_of(interface, portal - 1);
  options.emulated = arguments.way == SPL_RMA_EMULATED;
  options.emulate_above_limit = arguments.above_limit == SPL_RMA_EMULATE;
  if (arguments.message_bytes != 0) options.message_bytes = arguments.message_bytes;
  if (arguments.messages != 0) options.messages = arguments.messages;
  if (arguments.notices != 0) options.notices = arguments.notices;
  options.small_pieces = arguments.small_pieces;
  options.ranks = process.host().size();
  const uint64_t atomic_bytes_max = process.host().atomic_bytes();
  options.atomic_bytes = std::min<uint64_t>(atomic_bytes_max, interface.limits.max_atomic_size);
  options.fetch_bytes = std::min<uint64_t>(atomic_bytes_max, interface.limits.max_fetch_atomic_size);
  options.random = [&process] { return process.host().random(); };
  options.spend_call_time = [&process] { process.host().spend_call_time(); };
  options.pause = [&process](const char* call, Time deadline) { return wait_in_call(process, call, deadline); };
  options.has_ended = [&process](uint32_t rank) { return process.host().has_ended(rank); };
  options.meet = [&process, spend_call_time = options.spend_call_time](portals::Interface& host,
                                                                       nic::PortalIndex portal_index) {
    return meet_all(process, host,
                    {.call = "spl_rma_open", .portal = portal_index, .number = 0, .spend_call_time = spend_call_time});
  };
  return options;
}

Result<std::unique_ptr<spl_rma>> open(Process& process, ptl_handle_ni_t handle, const spl_rma_options* options) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->is_logical() || !interface->is_matching()) {
    return fail(Code::invalid, "spl_rma_open: a context needs a logical interface that matches");
  }
  if (interface->map.size() != process.host().size()) {
    return fail(Code::invalid, "spl_rma_open: the interface has ", interface->map.size(), " ranks, the job ",
                process.host().size());
  }
  const spl_rma_options arguments = options != nullptr ? *options : spl_rma_options{};
  SPL_ASSIGN(const rma::Options context_options, options_of(arguments, process, *interface));
  auto rma = std::make_unique<spl_rma>();
  rma->process = &process;
  rma->interface = handle;
  rma->portal = arguments.portal != 0 ? arguments.portal : default_portal;
  rma->ranks.resize(interface->map.size());
  for (ptl_rank_t rank = 0; rank < interface->map.size(); ++rank) {
    ptl_process_t member;
    member.rank = rank;
    const nic::Rank node = target_of(process, *interface, member);
    if (node.value >= rma->ranks.size()) return fail(Code::invalid, "spl_rma_open: rank ", rank, " has no node");
    rma->nodes.push_back(node.value);
    rma->ranks[node.value] = rank;
  }
  interface->portals[rma->portal] = interface->portals[rma->portal - 1] = true;
  auto context = rma::Context::open(process.portals(), context_options);
  if (!context) {
    interface->portals[rma->portal] = interface->portals[rma->portal - 1] = false;
    return context.error();
  }
  rma->context = std::move(*context);
  return rma;
}

Status add_memory(spl_rma& rma, std::vector<nic::IovecElement> pieces, int notices, spl_rma_memory** registered) {
  if (registered == nullptr || notices < 0 || notices > SPL_RMA_QUEUED) {
    return fail(Code::invalid, "notices are ", notices, ", or there is no place for the handle");
  }
  SPL_ASSIGN(rma::Memory* const memory, rma.context->add_memory(std::move(pieces), static_cast<rma::Notices>(notices)));
  rma.memories.push_back({&rma, memory});
  *registered = &rma.memories.back();
  return {};
}

rma::KeyText text_of(const spl_rma_key_text& text) {
  rma::KeyText copy{};
  std::memcpy(copy.data(), text.bytes, copy.size());
  return copy;
}

}  // namespace
}  // namespace spinloom::calls::one_sided

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::calls::one_sided::with_context;
using spinloom::rma::Context;
namespace one_sided = spinloom::calls::one_sided;

extern "C" {

int spl_rma_open(ptl_handle_ni_t interface, const spl_rma_options* options, spl_rma** rma) {
  return spinloom::calls::enter("spl_rma_open", [&](spinloom::calls::Process& process) -> int {
    if (rma == nullptr) return PTL_ARG_INVALID;
    try {
      auto opened = one_sided::open(process, interface, options);
      if (!opened) return one_sided::record_error(nullptr, opened.error());
      *rma = opened->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return one_sided::record_error(nullptr, fail(Code::exhausted, "spl_rma_open: there is not so much memory"));
    }
  });
}

int spl_rma_close(spl_rma* rma) {
  if (rma == nullptr) return PTL_ARG_INVALID;
  return spinloom::calls::enter("spl_rma_close", [&](spinloom::calls::Process& process) -> int {
    const std::unique_ptr<spl_rma> owned(rma);
    spinloom::calls::NetworkInterface* const interface = process.interface_of(rma->interface);
    if (interface == nullptr) return PTL_OK;  // the interface was closed with its portal table entries
    const Status status = rma->context->close();
    interface->portals[rma->portal] = interface->portals[rma->portal - 1] = false;
    return status ? static_cast<int>(PTL_OK) : one_sided::record_error(nullptr, status.error());
  });
}

const char* spl_rma_error(const spl_rma* rma) {
  return rma != nullptr ? rma->error.c_str() : one_sided::opening_error().c_str();
}

ptl_rank_t spl_rma_rank(const spl_rma* rma) { return rma != nullptr ? rma->ranks[rma->context->rank()] : PTL_RANK_ANY; }

uint32_t spl_rma_size(const spl_rma* rma) { return rma != nullptr ? rma->context->ranks() : 0; }

int spl_rma_progress(spl_rma* rma) {
  return with_context("spl_rma_progress", rma, [&](Context& context) -> Status {
    one_sided::spend_and_poll(*rma);
    return context.progress();
  });
}

int spl_rma_register(spl_rma* rma, void* memory, uint64_t bytes, int notices, spl_rma_memory** registered) {
  return with_context("spl_rma_register", rma, [&](Context&) -> Status {
    if (memory == nullptr && bytes > 0) return fail(Code::invalid, "the memory is NULL, and has ", bytes, " B");
    return one_sided::add_memory(*rma, {{static_cast<uint8_t*>(memory), bytes}}, notices, registered);
  });
}

int spl_rma_register_list(spl_rma* rma, const ptl_iovec_t* pieces, size_t count, int notices,
                          spl_rma_memory** registered) {
  return with_context("spl_rma_register_list", rma, [&](Context&) -> Status {
    SPL_ASSIGN(auto list, one_sided::pieces_of(pieces, count));
    return one_sided::add_memory(*rma, std::move(list), notices, registered);
  });
}

int spl_rma_export(spl_rma_memory* registered, unsigned int rights, spl_rma_key_text* key) {
  return with_context("spl_rma_export", one_sided::context_of(registered), [&](Context& context) -> Status {
    if (key == nullptr) return fail(Code::invalid, "there is no place for the key");
    SPL_ASSIGN(const auto shared, context.share(*registered->memory, rights));
    const auto text = spinloom::rma::encode_key(shared);
    std::memcpy(key->bytes, text.data(), text.size());
    return {};
  });
}

int spl_rma_revoke(spl_rma_memory* registered, const spl_rma_key_text* key) {
  return with_context("spl_rma_revoke", one_sided::context_of(registered), [&](Context& context) -> Status {
    if (key == nullptr) return fail(Code::invalid, "there is no key");
    SPL_ASSIGN(const auto decoded, spinloom::rma::decode_key(one_sided::text_of(*key)));
    return context.revoke(*registered->memory, decoded.bits);
  });
}

int spl_rma_deregister(spl_rma_memory* registered) {
  return with_context("spl_rma_deregister", one_sided::context_of(registered), [&](Context& context) -> Status {
    spl_rma* const rma = registered->rma;
    const auto is_this = [registered](const spl_rma_memory& one) { return &one == registered; };
    if (std::ranges::none_of(rma->memories, is_this)) return fail(Code::invalid, "the memory belongs to a window");
    const Status removed = context.remove(*registered->memory);
    rma->memories.remove_if(is_this);
    return removed;
  });
}

int spl_rma_import(spl_rma* rma, const spl_rma_key_text* text, spl_rma_key** key) {
  return with_context("spl_rma_import", rma, [&](Context& context) -> Status {
    if (text == nullptr || key == nullptr) return fail(Code::invalid, "there is no key, or no place for it");
    SPL_ASSIGN(const auto decoded, spinloom::rma::decode_key(one_sided::text_of(*text)));
    if (decoded.rank >= context.ranks() || decoded.portal != context.options().portal.value) {
      return fail(Code::invalid, "the key belongs to another context");
    }
    rma->keys.push_back({rma, decoded});
    *key = &rma->keys.back();
    return {};
  });
}

int spl_rma_forget(spl_rma_key* key) {
  return with_context("spl_rma_forget", one_sided::context_of(key), [&](Context&) -> Status {
    spl_rma* const rma = key->rma;
    const auto is_this = [key](const spl_rma_key& one) { return &one == key; };
    if (std::ranges::none_of(rma->keys, is_this)) return fail(Code::invalid, "the key belongs to a window");
    rma->keys.remove_if(is_this);
    return {};
  });
}

ptl_rank_t spl_rma_key_rank(const spl_rma_key* key) {
  return key != nullptr ? key->rma->ranks[key->key.rank] : PTL_RANK_ANY;
}
uint64_t spl_rma_key_bytes(const spl_rma_key* key) { return key != nullptr ? key->key.bytes : 0; }
unsigned int spl_rma_key_rights(const spl_rma_key* key) { return key != nullptr ? key->key.rights : 0; }

}  // extern "C"
