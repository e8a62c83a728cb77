// Rma - the records behind the handles of spinloom/rma.h.
//
// Contract: a context belongs to a logical matching interface of a Process, and must not outlive the Process.
//   with_context() finds the Process, and turns an Error into a return code and the text of spl_rma_error(). Programs
//   count in ranks of the interface, the code in portals/rma in nodes.
// Threads: the rank's. Time: that of the host.
#pragma once

#include <list>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "portals/calls/call.hpp"
#include "portals/rma/window.hpp"
#include "spinloom/rma.h"

struct spl_rma_memory {
  spl_rma* rma = nullptr;
  spinloom::rma::Memory* memory = nullptr;
};

struct spl_rma_key {
  spl_rma* rma = nullptr;  // null in a window's list, for a rank that is not a member
  spinloom::rma::Key key;
};

struct spl_rma_request {
  spl_rma* rma = nullptr;
  spinloom::rma::Request* request = nullptr;
};

struct spl_rma_window {
  spl_rma* rma = nullptr;
  std::unique_ptr<spinloom::rma::Window> window;
  std::vector<spl_rma_key> keys;  // one for each rank
  spl_rma_memory memory;
};

struct spl_rma {
  spinloom::calls::Process* process = nullptr;
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  std::vector<uint32_t> nodes;  // each rank's node
  std::vector<uint32_t> ranks;  // each node's rank
  std::list<spl_rma_memory> memories;
  std::list<spl_rma_key> keys;
  std::list<spl_rma_request> requests;
  std::list<spl_rma_window> windows;
  std::string error;
  std::unique_ptr<spinloom::rma::Context> context;  // destroyed first: its entries are over memory of the windows
};

namespace spinloom::calls::one_sided {

// The message of this thread's latest spl_rma_open() or spl_rma_close() that failed.
[[nodiscard]] std::string& opening_error();

inline int record_error(spl_rma* rma, const Error& error) {
  (rma != nullptr ? rma->error : opening_error()) = error.message;
  return code_of(error);
}

// Calls work(context) inside the library; work returns a Status. Returns an error code if `rma` is null or its
// interface has been closed.
template <class Work>
int with_context(const char* name, spl_rma* rma, Work work) {
  if (rma == nullptr) return PTL_ARG_INVALID;
  return enter(name, [&](Process& process) -> int {
    if (process.interface_of(rma->interface) == nullptr) {
      return record_error(rma, fail(Code::invalid, name, ": the context's network interface has been closed"));
    }
    try {
      const Status status = work(*rma->context);
      if (status) return PTL_OK;
      return record_error(rma, Error{status.error().code, text(name, ": ", status.error().message)});
    } catch (const std::bad_alloc&) {
      return record_error(rma, fail(Code::exhausted, name, ": there is not so much memory"));
    }
  });
}

// The elements of a list of pieces, without empty ones; an Error if the list or a piece is null, or they are too many.
[[nodiscard]] Result<std::vector<nic::IovecElement>> pieces_of(const ptl_iovec_t* list, size_t count);

// The context of a handle, or null.
template <class Handle>
spl_rma* context_of(const Handle* handle) {
  return handle != nullptr ? handle->rma : nullptr;
}

// Spends the time of a call and polls the driver, for calls that look without waiting: what has come so far is then
// readable, and a program that calls them in a loop lets time go on.
inline void spend_and_poll(spl_rma& rma) {
  rma.process->host().spend_call_time();
  rma.process->host().poll();
}

// The node of a rank; an Error if there is none.
[[nodiscard]] inline Result<uint32_t> node_of(const spl_rma& rma, ptl_rank_t rank) {
  if (rank < rma.nodes.size()) return rma.nodes[rank];
  return fail(Code::invalid, "there is no rank ", rank, " among ", rma.nodes.size());
}

}  // namespace spinloom::calls::one_sided
