// The C calls of one-sided memory that begin operations and wait for their ends (spinloom/rma.h).
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "portals/calls/rma.hpp"

namespace spinloom::calls::one_sided {

using rma::Operation;

namespace {

// An operation on `bytes` of the key's memory.
Operation operation_of(Operation::Kind kind, const spl_rma_key& key, uint64_t offset, uint64_t bytes) {
  Operation operation;
  operation.kind = kind;
  operation.key = key.key;
  operation.offset = offset;
  operation.bytes = bytes;
  return operation;
}

Result<Operation> on_elements(Operation::Kind kind, const spl_rma_key& key, uint64_t offset, uint64_t count, int op,
                              ptl_datatype_t type) {
  if (type >= PTL_DATATYPE_LAST) return fail(Code::invalid, "there is no type of elements ", static_cast<int>(type));
  const auto datatype = static_cast<spin::Datatype>(type);
  const uint64_t element = spin::bytes_of(datatype);
  if (op < 0) return fail(Code::invalid, "there is no operation ", op);
  if (count > UINT64_MAX / element) return fail(Code::invalid, count, " elements are more bytes than can be counted");
  Operation operation = operation_of(kind, key, offset, count * element);
  operation.op = static_cast<uint32_t>(op);
  operation.type = datatype;
  return operation;
}

template <class Memory>
auto* bytes_at(Memory* memory) {
  if constexpr (std::is_const_v<Memory>) {
    return static_cast<const uint8_t*>(memory);
  } else {
    return static_cast<uint8_t*>(memory);
  }
}

// Begins the operation, with a new request in `*request` if the caller wants one.
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
  Status begun = rma.context->begin(operation);
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
  return with_context(name, context_of(key), [&](rma::Context&) -> Status {
    Operation operation = operation_of(Operation::Kind::put, *key, offset, bytes);
    operation.from = bytes_at(from);
    operation.notice = notice;
    return begin(*key->rma, std::move(operation), request, wants_request);
  });
}

int get(const char* name, spl_rma_key* key, uint64_t offset, void* to, uint64_t bytes, std::optional<uint64_t> notice,
        bool wants_request, spl_rma_request** request) {
  return with_context(name, context_of(key), [&](rma::Context&) -> Status {
    Operation operation = operation_of(Operation::Kind::get, *key, offset, bytes);
    operation.to = bytes_at(to);
    operation.notice = notice;
    return begin(*key->rma, std::move(operation), request, wants_request);
  });
}

int move_list(const char* name, Operation::Kind kind, spl_rma_key* key, uint64_t offset, const ptl_iovec_t* list,
              size_t count) {
  return with_context(name, context_of(key), [&](rma::Context&) -> Status {
    SPL_ASSIGN(auto pieces, pieces_of(list, count));
    uint64_t bytes = 0;
    for (const nic::IovecElement& piece : pieces) bytes += piece.length;
    Operation operation = operation_of(kind, *key, offset, bytes);
    operation.list = nic::Descriptor::make(std::move(pieces));
    return begin(*key->rma, std::move(operation), nullptr, false);
  });
}

int move_pieces(const char* name, Operation::Kind kind, spl_rma_key* key, const spl_rma_piece* parts, size_t count,
                const ptl_iovec_t* list, size_t pieces) {
  return with_context(name, context_of(key), [&](rma::Context& context) -> Status {
    if (parts == nullptr && count > 0) return fail(Code::invalid, "the list of parts is NULL");
    SPL_ASSIGN(auto own, pieces_of(list, pieces));
    std::vector<rma::Piece> theirs;
    for (const spl_rma_piece& part : std::span(parts, count)) {
      if (part.bytes > 0) theirs.push_back({part.offset, part.bytes});
    }
    Operation operation = operation_of(kind, *key, 0, 0);
    operation.list = nic::Descriptor::make(std::move(own));
    return context.begin_pieces(std::move(operation), theirs);
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
  return with_context(name, context_of(key), [&](rma::Context&) -> Status {
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
}  // namespace spinloom::calls::one_sided

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::calls::one_sided::with_context;
using spinloom::rma::Context;
using Action = spinloom::rma::Operation::Kind;
namespace one_sided = spinloom::calls::one_sided;

extern "C" {

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

int spl_rma_put_pieces(spl_rma_key* key, const spl_rma_piece* parts, size_t count, const ptl_iovec_t* from,
                       size_t pieces) {
  return one_sided::move_pieces("spl_rma_put_pieces", Action::put, key, parts, count, from, pieces);
}

int spl_rma_get_pieces(spl_rma_key* key, const spl_rma_piece* parts, size_t count, const ptl_iovec_t* to,
                       size_t pieces) {
  return one_sided::move_pieces("spl_rma_get_pieces", Action::get, key, parts, count, to, pieces);
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
  return with_context("spl_rma_test", one_sided::context_of(request), [&](Context& context) -> Status {
    if (done == nullptr) return fail(Code::invalid, "there is no place for the answer");
    one_sided::spend_and_poll(*request->rma);
    SPL_TRY(context.progress());
    *done = context.is_done(*request->request) ? 1 : 0;
    if (*done == 0) return {};
    const Status ended = context.retire(request->request);
    one_sided::forget(request);
    return ended;
  });
}

int spl_rma_wait(spl_rma_request* request) {
  return with_context("spl_rma_wait", one_sided::context_of(request), [&](Context& context) -> Status {
    const Status ended = context.wait(request->request);
    one_sided::forget(request);
    return ended;
  });
}

int spl_rma_flush(spl_rma* rma, ptl_rank_t rank) {
  return with_context("spl_rma_flush", rma, [&](Context& context) -> Status {
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*rma, rank));
    return context.flush(node);
  });
}

int spl_rma_flush_all(spl_rma* rma) {
  return with_context("spl_rma_flush_all", rma, [](Context& context) { return context.flush_all(); });
}

int spl_rma_count(spl_rma* rma, ptl_rank_t rank, spl_rma_counts* counts) {
  return with_context("spl_rma_count", rma, [&](Context& context) -> Status {
    if (counts == nullptr) return fail(Code::invalid, "there is no place for the counts");
    SPL_ASSIGN(const uint32_t node, one_sided::node_of(*rma, rank));
    const Context::Counts found = context.counts(node);
    *counts = {found.begun, found.ended, found.failed};
    return {};
  });
}

}  // extern "C"
