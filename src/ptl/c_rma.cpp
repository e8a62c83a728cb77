// The C calls of one-sided memory: contexts, memory, keys and operations (spinloom/rma.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "collective/meeting.hpp"
#include "ptl/convert.hpp"
#include "ptl/rma.hpp"

namespace spinloom::ptl::one_sided {

using rma::Operation;

std::string& opening_error() {
  static thread_local std::string error;
  return error;
}

namespace {

constexpr ptl_pt_index_t usual_portal = 62;
constexpr uint32_t message_most = 1 << 20;
constexpr uint32_t messages_most = 256;
constexpr uint32_t notices_most = 1 << 16;

bool wait_in(Process& process, const char* what, Time deadline) {
  if (deadline <= process.host().port().now()) return !process.aborted();
  const Waiter waiter(process);
  const Blocked blocked{.call = what, .counter = {}, .test = 0, .count = 0};
  process.block(&blocked);
  process.host().wait(deadline);
  process.block(nullptr);
  return !process.aborted();
}

// Waits until the entries of all ranks are there.
Status meet_all(Process& process, portals::Interface& interface, nic::PortalIndex portal) {
  constexpr Time shortest{20'000'000};  // 20 us
  constexpr Time longest{1'000'000'000};
  const uint32_t ranks = process.host().size();
  SPL_ASSIGN(collective::Meeting meeting,
             collective::Meeting::begin(interface, portal, ranks, 0, [&process] { process.host().call(); }));
  for (Time pause = shortest;; pause = std::min(longest, pause + pause)) {
    Result<bool> all = meeting.step();
    for (uint32_t rank = 0; all && !*all && rank < ranks; ++rank) {
      if (process.host().has_ended(rank))
        all = fail(Code::fault, "rank ", rank, " is gone, and all ranks open together");
    }
    if (all && !*all && !wait_in(process, "spl_rma_open", process.host().port().now() + pause)) {
      all = fail(Code::fault, "PtlAbort was called");
    }
    if (all && !*all) continue;
    meeting.end();
    return all ? Status{} : all.error();
  }
}

Result<rma::Options> options_of(const spl_rma_options& given, Process& process, const NetworkInterface& interface) {
  if (given.way < 0 || given.way > SPL_RMA_EMULATED || given.above_limit < 0 || given.above_limit > SPL_RMA_EMULATE) {
    return fail(Code::invalid, "spl_rma_open: way is ", given.way, " and above_limit ", given.above_limit,
                "; each is 0 or 1");
  }
  if (given.message_bytes > message_most || given.message_bytes % 64 != 0 || given.messages > messages_most ||
      given.notices > notices_most) {
    return fail(Code::invalid, "spl_rma_open: message_bytes is ", given.message_bytes, ", a multiple of 64 up to ",
                message_most, "; messages ", given.messages, ", up to ", messages_most, "; notices ", given.notices,
                ", up to ", notices_most);
  }
  const ptl_pt_index_t portal = given.portal != 0 ? given.portal : usual_portal;
  if (portal >= portals_each || interface.portals[portal] || interface.portals[portal - 1]) {
    return fail(Code::invalid, "spl_rma_open: portal table entries ", portal - 1, " and ", portal,
                " are not both free; choose others by spl_rma_options.portal, the same at all ranks");
  }
  rma::Options made;
  made.portal = portal_of(interface, portal);
  made.notice_portal = portal_of(interface, portal - 1);
  made.emulated = given.way == SPL_RMA_EMULATED;
  made.emulate_above_limit = given.above_limit == SPL_RMA_EMULATE;
  if (given.message_bytes != 0) made.message_bytes = given.message_bytes;
  if (given.messages != 0) made.messages = given.messages;
  if (given.notices != 0) made.notices = given.notices;
  made.ranks = process.host().size();
  const uint64_t most = process.host().atomic_bytes();
  made.atomic_bytes = std::min<uint64_t>(most, interface.limits.max_atomic_size);
  made.fetch_bytes = std::min<uint64_t>(most, interface.limits.max_fetch_atomic_size);
  made.random = [&process] { return process.host().random(); };
  made.call = [&process] { process.host().call(); };
  made.pause = [&process](const char* what, Time deadline) { return wait_in(process, what, deadline); };
  made.has_ended = [&process](uint32_t rank) { return process.host().has_ended(rank); };
  made.meet = [&process](portals::Interface& to, nic::PortalIndex at) { return meet_all(process, to, at); };
  return made;
}

Result<std::unique_ptr<spl_rma>> open(Process& process, ptl_handle_ni_t handle, const spl_rma_options* options) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->logical() || !interface->matching()) {
    return fail(Code::invalid, "spl_rma_open: a context needs a logical interface that matches");
  }
  if (interface->map.size() != process.host().size()) {
    return fail(Code::invalid, "spl_rma_open: the interface has ", interface->map.size(), " ranks, the job ",
                process.host().size());
  }
  const spl_rma_options wanted = options != nullptr ? *options : spl_rma_options{};
  SPL_ASSIGN(const rma::Options made, options_of(wanted, process, *interface));
  auto rma = std::make_unique<spl_rma>();
  rma->process = &process;
  rma->interface = handle;
  rma->portal = wanted.portal != 0 ? wanted.portal : usual_portal;
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
  auto context = rma::Context::open(process.portals(), made);
  if (!context) {
    interface->portals[rma->portal] = interface->portals[rma->portal - 1] = false;
    return context.error();
  }
  rma->context = std::move(*context);
  return rma;
}

Result<std::vector<nic::IovecElement>> pieces_of(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return fail(Code::invalid, "the list of pieces is NULL");
  auto made = list_of(list, count, std::numeric_limits<int>::max());
  if (!made) return fail(Code::invalid, "a piece has no memory, or they are too many");
  return std::move(*made);
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
  rma::KeyText made{};
  std::memcpy(made.data(), text.bytes, made.size());
  return made;
}

// An operation on `bytes` of the key's memory.
Operation operation_of(Operation::Kind kind, const spl_rma_key& key, uint64_t offset, uint64_t bytes) {
  Operation made;
  made.kind = kind;
  made.key = key.key;
  made.offset = offset;
  made.bytes = bytes;
  return made;
}

Result<Operation> on_elements(Operation::Kind kind, const spl_rma_key& key, uint64_t offset, uint64_t count, int op,
                              ptl_datatype_t type) {
  if (type >= PTL_DATATYPE_LAST) return fail(Code::invalid, "there is no type of elements ", static_cast<int>(type));
  const auto datatype = static_cast<spin::Datatype>(type);
  const uint64_t element = spin::bytes_of(datatype);
  if (op < 0 || count > UINT64_MAX / element) return fail(Code::invalid, "operation ", op, ", ", count, " elements");
  Operation made = operation_of(kind, key, offset, count * element);
  made.op = static_cast<uint32_t>(op);
  made.type = datatype;
  return made;
}

template <class Memory>
auto* bytes_at(Memory* memory) {
  if constexpr (std::is_const_v<Memory>) {
    return static_cast<const uint8_t*>(memory);
  } else {
    return static_cast<uint8_t*>(memory);
  }
}

// Begins the operation, with a request if there is a place for one.
Status begin(spl_rma& rma, Operation operation, spl_rma_request** request, bool wants_request) {
  const bool needs_from = operation.kind == Operation::Kind::put || operation.kind == Operation::Kind::accumulate ||
                          (operation.kind == Operation::Kind::fetch && operation.op != SPL_RMA_NO_OP) ||
                          operation.kind == Operation::Kind::compare_swap;
  const bool needs_to = operation.kind != Operation::Kind::put && operation.kind != Operation::Kind::accumulate;
  if (operation.bytes > 0 && !operation.list &&
      ((needs_from && operation.from == nullptr) || (needs_to && operation.to == nullptr))) {
    return fail(Code::invalid, "the memory is NULL, and has ", operation.bytes, " B");
  }
  if (!wants_request) return rma.context->begin(operation);
  if (request == nullptr) return fail(Code::invalid, "there is no place for the request");
  SPL_ASSIGN(operation.request, rma.context->make_request(operation.key.rank));
  const Status begun = rma.context->begin(operation);
  if (!begun) {
    std::ignore = rma.context->wait(operation.request);
    return begun;
  }
  rma.requests.push_back({&rma, operation.request});
  *request = &rma.requests.back();
  return {};
}

void forget(spl_rma_request* request) {
  request->rma->requests.remove_if([request](const spl_rma_request& one) { return &one == request; });
}

int put(const char* name, spl_rma_key* key, uint64_t offset, const void* from, uint64_t bytes,
        std::optional<uint64_t> notice, bool wants_request, spl_rma_request** request) {
  return with(name, context_of(key), [&](rma::Context&) -> Status {
    Operation operation = operation_of(Operation::Kind::put, *key, offset, bytes);
    operation.from = bytes_at(from);
    operation.notice = notice;
    return begin(*key->rma, std::move(operation), request, wants_request);
  });
}

int get(const char* name, spl_rma_key* key, uint64_t offset, void* to, uint64_t bytes, std::optional<uint64_t> notice,
        bool wants_request, spl_rma_request** request) {
  return with(name, context_of(key), [&](rma::Context&) -> Status {
    Operation operation = operation_of(Operation::Kind::get, *key, offset, bytes);
    operation.to = bytes_at(to);
    operation.notice = notice;
    return begin(*key->rma, std::move(operation), request, wants_request);
  });
}

int move_list(const char* name, Operation::Kind kind, spl_rma_key* key, uint64_t offset, const ptl_iovec_t* list,
              size_t count) {
  return with(name, context_of(key), [&](rma::Context&) -> Status {
    SPL_ASSIGN(auto pieces, pieces_of(list, count));
    uint64_t bytes = 0;
    for (const nic::IovecElement& piece : pieces) bytes += piece.length;
    Operation operation = operation_of(kind, *key, offset, bytes);
    operation.list = nic::Descriptor::make(std::move(pieces));
    return begin(*key->rma, std::move(operation), nullptr, false);
  });
}

struct Elements {
  const void* from = nullptr;
  void* result = nullptr;
  uint64_t count = 1;
  int op = 0;
  ptl_datatype_t type = PTL_INT8_T;
};

int change(const char* name, Operation::Kind kind, spl_rma_key* key, uint64_t offset, const Elements& elements,
           const void* compare, bool wants_request, spl_rma_request** request) {
  return with(name, context_of(key), [&](rma::Context&) -> Status {
    SPL_ASSIGN(Operation operation, on_elements(kind, *key, offset, elements.count, elements.op, elements.type));
    operation.from = bytes_at(elements.from);
    operation.to = bytes_at(elements.result);
    if (kind == Operation::Kind::compare_swap) {
      if (compare == nullptr) return fail(Code::invalid, "there is nothing to compare with");
      operation.operand = spin::operand_of(operation.type, compare);
    }
    return begin(*key->rma, std::move(operation), request, wants_request);
  });
}

}  // namespace
}  // namespace spinloom::ptl::one_sided

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::ptl::one_sided::with;
using spinloom::rma::Context;
using Action = spinloom::rma::Operation::Kind;
namespace one_sided = spinloom::ptl::one_sided;

extern "C" {

int spl_rma_open(ptl_handle_ni_t interface, const spl_rma_options* options, spl_rma** rma) {
  return spinloom::ptl::enter("spl_rma_open", [&](spinloom::ptl::Process& process) -> int {
    if (rma == nullptr) return PTL_ARG_INVALID;
    try {
      auto made = one_sided::open(process, interface, options);
      if (!made) return one_sided::told(nullptr, made.error());
      *rma = made->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return one_sided::told(nullptr, fail(Code::exhausted, "spl_rma_open: there is not so much memory"));
    }
  });
}

int spl_rma_close(spl_rma* rma) {
  if (rma == nullptr) return PTL_ARG_INVALID;
  return spinloom::ptl::enter("spl_rma_close", [&](spinloom::ptl::Process& process) -> int {
    const std::unique_ptr<spl_rma> closed(rma);
    spinloom::ptl::NetworkInterface* const interface = process.interface_of(rma->interface);
    if (interface == nullptr) return PTL_OK;  // its portal table entries are gone, and nothing comes
    const Status status = rma->context->close();
    interface->portals[rma->portal] = interface->portals[rma->portal - 1] = false;
    return status ? static_cast<int>(PTL_OK) : one_sided::told(nullptr, status.error());
  });
}

const char* spl_rma_error(const spl_rma* rma) {
  return rma != nullptr ? rma->error.c_str() : one_sided::opening_error().c_str();
}

ptl_rank_t spl_rma_rank(const spl_rma* rma) { return rma != nullptr ? rma->ranks[rma->context->rank()] : PTL_RANK_ANY; }

uint32_t spl_rma_size(const spl_rma* rma) { return rma != nullptr ? rma->context->ranks() : 0; }

int spl_rma_progress(spl_rma* rma) {
  return with("spl_rma_progress", rma, [&](Context& context) -> Status {
    one_sided::look(*rma);
    return context.progress();
  });
}

int spl_rma_register(spl_rma* rma, void* memory, uint64_t bytes, int notices, spl_rma_memory** registered) {
  return with("spl_rma_register", rma, [&](Context&) -> Status {
    if (memory == nullptr && bytes > 0) return fail(Code::invalid, "the memory is NULL, and has ", bytes, " B");
    return one_sided::add_memory(*rma, {{static_cast<uint8_t*>(memory), bytes}}, notices, registered);
  });
}

int spl_rma_register_list(spl_rma* rma, const ptl_iovec_t* pieces, size_t count, int notices,
                          spl_rma_memory** registered) {
  return with("spl_rma_register_list", rma, [&](Context&) -> Status {
    SPL_ASSIGN(auto list, one_sided::pieces_of(pieces, count));
    return one_sided::add_memory(*rma, std::move(list), notices, registered);
  });
}

int spl_rma_export(spl_rma_memory* registered, unsigned int rights, spl_rma_key_text* key) {
  return with("spl_rma_export", one_sided::context_of(registered), [&](Context& context) -> Status {
    if (key == nullptr) return fail(Code::invalid, "there is no place for the key");
    SPL_ASSIGN(const auto made, context.share(*registered->memory, rights));
    const auto text = spinloom::rma::write(made);
    std::memcpy(key->bytes, text.data(), text.size());
    return {};
  });
}

int spl_rma_revoke(spl_rma_memory* registered, const spl_rma_key_text* key) {
  return with("spl_rma_revoke", one_sided::context_of(registered), [&](Context& context) -> Status {
    if (key == nullptr) return fail(Code::invalid, "there is no key");
    SPL_ASSIGN(const auto found, spinloom::rma::read(one_sided::text_of(*key)));
    return context.revoke(*registered->memory, found.bits);
  });
}

int spl_rma_deregister(spl_rma_memory* registered) {
  return with("spl_rma_deregister", one_sided::context_of(registered), [&](Context& context) -> Status {
    spl_rma* const rma = registered->rma;
    const auto is_this = [registered](const spl_rma_memory& one) { return &one == registered; };
    if (std::ranges::none_of(rma->memories, is_this)) return fail(Code::invalid, "the memory belongs to a window");
    const Status removed = context.remove(*registered->memory);
    rma->memories.remove_if(is_this);
    return removed;
  });
}

int spl_rma_import(spl_rma* rma, const spl_rma_key_text* text, spl_rma_key** key) {
  return with("spl_rma_import", rma, [&](Context& context) -> Status {
    if (text == nullptr || key == nullptr) return fail(Code::invalid, "there is no key, or no place for it");
    SPL_ASSIGN(const auto found, spinloom::rma::read(one_sided::text_of(*text)));
    if (found.rank >= context.ranks() || found.portal != context.options().portal.value) {
      return fail(Code::invalid, "the key belongs to another context");
    }
    rma->keys.push_back({rma, found});
    *key = &rma->keys.back();
    return {};
  });
}

int spl_rma_forget(spl_rma_key* key) {
  return with("spl_rma_forget", one_sided::context_of(key), [&](Context&) -> Status {
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

int spl_rma_put(spl_rma_key* key, uint64_t offset, const void* from, uint64_t bytes) {
  return one_sided::put("spl_rma_put", key, offset, from, bytes, {}, false, nullptr);
}

int spl_rma_get(spl_rma_key* key, uint64_t offset, void* to, uint64_t bytes) {
  return one_sided::get("spl_rma_get", key, offset, to, bytes, {}, false, nullptr);
}

int spl_rma_accumulate(spl_rma_key* key, uint64_t offset, const void* from, uint64_t count, int op,
                       ptl_datatype_t type) {
  return one_sided::change("spl_rma_accumulate", Action::accumulate, key, offset, {from, nullptr, count, op, type},
                           nullptr, false, nullptr);
}

int spl_rma_get_accumulate(spl_rma_key* key, uint64_t offset, const void* from, void* result, uint64_t count, int op,
                           ptl_datatype_t type) {
  return one_sided::change("spl_rma_get_accumulate", Action::fetch, key, offset, {from, result, count, op, type},
                           nullptr, false, nullptr);
}

int spl_rma_fetch_and_op(spl_rma_key* key, uint64_t offset, const void* from, void* result, int op,
                         ptl_datatype_t type) {
  return one_sided::change("spl_rma_fetch_and_op", Action::fetch, key, offset, {from, result, 1, op, type}, nullptr,
                           false, nullptr);
}

int spl_rma_compare_and_swap(spl_rma_key* key, uint64_t offset, const void* value, const void* compare, void* result,
                             ptl_datatype_t type) {
  return one_sided::change("spl_rma_compare_and_swap", Action::compare_swap, key, offset, {value, result, 1, 0, type},
                           compare, false, nullptr);
}

int spl_rma_put_list(spl_rma_key* key, uint64_t offset, const ptl_iovec_t* from, size_t pieces) {
  return one_sided::move_list("spl_rma_put_list", Action::put, key, offset, from, pieces);
}

int spl_rma_get_list(spl_rma_key* key, uint64_t offset, const ptl_iovec_t* to, size_t pieces) {
  return one_sided::move_list("spl_rma_get_list", Action::get, key, offset, to, pieces);
}

int spl_rma_put_request(spl_rma_key* key, uint64_t offset, const void* from, uint64_t bytes,
                        spl_rma_request** request) {
  return one_sided::put("spl_rma_put_request", key, offset, from, bytes, {}, true, request);
}

int spl_rma_get_request(spl_rma_key* key, uint64_t offset, void* to, uint64_t bytes, spl_rma_request** request) {
  return one_sided::get("spl_rma_get_request", key, offset, to, bytes, {}, true, request);
}

int spl_rma_accumulate_request(spl_rma_key* key, uint64_t offset, const void* from, uint64_t count, int op,
                               ptl_datatype_t type, spl_rma_request** request) {
  return one_sided::change("spl_rma_accumulate_request", Action::accumulate, key, offset,
                           {from, nullptr, count, op, type}, nullptr, true, request);
}

int spl_rma_get_accumulate_request(spl_rma_key* key, uint64_t offset, const void* from, void* result, uint64_t count,
                                   int op, ptl_datatype_t type, spl_rma_request** request) {
  return one_sided::change("spl_rma_get_accumulate_request", Action::fetch, key, offset,
                           {from, result, count, op, type}, nullptr, true, request);
}

int spl_rma_put_notify(spl_rma_key* key, uint64_t offset, const void* from, uint64_t bytes, uint64_t value) {
  return one_sided::put("spl_rma_put_notify", key, offset, from, bytes, value, false, nullptr);
}

int spl_rma_get_notify(spl_rma_key* key, uint64_t offset, void* to, uint64_t bytes, uint64_t value) {
  return one_sided::get("spl_rma_get_notify", key, offset, to, bytes, value, false, nullptr);
}

int spl_rma_test(spl_rma_request* request, int* done) {
  return with("spl_rma_test", one_sided::context_of(request), [&](Context& context) -> Status {
    if (done == nullptr) return fail(Code::invalid, "there is no place for the answer");
    one_sided::look(*request->rma);
    SPL_TRY(context.progress());
    *done = context.is_done(*request->request) ? 1 : 0;
    if (*done == 0) return {};
    const Status ended = context.retire(request->request);
    one_sided::forget(request);
    return ended;
  });
}

int spl_rma_wait(spl_rma_request* request) {
  return with("spl_rma_wait", one_sided::context_of(request), [&](Context& context) -> Status {
    const Status ended = context.wait(request->request);
    one_sided::forget(request);
    return ended;
  });
}

int spl_rma_flush(spl_rma* rma, ptl_rank_t rank) {
  return with("spl_rma_flush", rma, [&](Context& context) -> Status {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*rma, rank));
    return context.flush(node);
  });
}

int spl_rma_flush_all(spl_rma* rma) {
  return with("spl_rma_flush_all", rma, [](Context& context) { return context.flush_all(); });
}

int spl_rma_count(spl_rma* rma, ptl_rank_t rank, spl_rma_counts* counts) {
  return with("spl_rma_count", rma, [&](Context& context) -> Status {
    if (counts == nullptr) return fail(Code::invalid, "there is no place for the counts");
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*rma, rank));
    const Context::Counts found = context.counts(node);
    *counts = {found.begun, found.ended, found.failed};
    return {};
  });
}

}  // extern "C"
