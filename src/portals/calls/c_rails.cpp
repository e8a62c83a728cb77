// The C calls of rails (spinloom/rails.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "portals/calls/call.hpp"
#include "portals/calls/convert.hpp"
#include "portals/calls/meet.hpp"
#include "portals/rails/rails.hpp"
#include "spinloom/rails.h"

struct spl_rails {
  spinloom::calls::Process* process = nullptr;
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  std::unique_ptr<spinloom::rails::Rails> rails;
  std::string error;
};

namespace spinloom::calls {
namespace {

using rails::Rails;

constexpr ptl_pt_index_t rails_portal_usual = 58;
constexpr ptl_pt_index_t rails_portals = 3;

std::string& rails_opening_error() {
  static thread_local std::string error;
  return error;
}

int told_rails(spl_rails* rails, const Error& error) {
  (rails != nullptr ? rails->error : rails_opening_error()) = error.message;
  return error.code == Code::stalled ? static_cast<int>(PTL_IN_USE) : code_of(error);
}

// Calls work(rails) inside the library; work returns a Status.
template <class Work>
int within_rails(const char* name, spl_rails* rails, Work work) {
  if (rails == nullptr) return PTL_ARG_INVALID;
  return enter(name, [&](Process& process) -> int {
    if (process.interface_of(rails->interface) == nullptr) {
      return told_rails(rails, fail(Code::invalid, name, ": the network interface of the rails has been closed"));
    }
    try {
      const Status status = work(*rails->rails);
      return status ? static_cast<int>(PTL_OK) : told_rails(rails, status.error());
    } catch (const std::bad_alloc&) {
      return told_rails(rails, fail(Code::exhausted, name, ": there is not so much memory"));
    }
  });
}

Status take_request(Result<rails::RequestId> made, spl_rails_request* request) {
  if (!made) return made.error();
  *request = made->value;
  return {};
}

Result<std::vector<nic::IovecElement>> rails_pieces_of(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return fail(Code::invalid, "the list of pieces is NULL");
  auto made = list_of(list, count, std::numeric_limits<int>::max());
  if (!made) return fail(Code::invalid, "a piece has no memory, or they are too many");
  return std::move(*made);
}

void tell_status(const rails::Completion& completion, spl_rails_status* status) {
  if (status == nullptr) return;
  *status = {completion.source, completion.truncated ? 1 : 0, completion.tag, completion.bytes};
}

Result<rails::RailsOptions> rails_options_of(const spl_rails_options& given, Process& process,
                                             const NetworkInterface& interface) {
  rails::RailsOptions made;
  const auto is_choice = [](int value) { return value == 0 || value == 1; };
  if (!is_choice(given.matching) || !is_choice(given.progress) || !is_choice(given.rendezvous)) {
    return fail(Code::invalid, "spl_rails_open: matching is ", given.matching, ", progress ", given.progress,
                ", rendezvous ", given.rendezvous, "; each is 0 or 1");
  }
  Host& host = process.host();
  const uint32_t count = given.rails != 0 ? given.rails : std::min(host.rails(), Rails::rails_max);
  if (count > host.rails()) {
    return fail(Code::invalid, "spl_rails_open: ", count, " rails are wanted, this job has ", host.rails());
  }
  const ptl_pt_index_t portal = given.portal != 0 ? given.portal : rails_portal_usual;
  const auto index = [&](ptl_pt_index_t behind) { return portal_of(interface, portal + behind); };
  made.portals = {index(0), index(1), index(2)};
  made.mode = given.matching == SPL_RAILS_BY_TAG ? rails::Mode::tag : rails::Mode::word;
  made.by_put = given.rendezvous == SPL_RAILS_PUT;
  made.offloaded = given.progress == SPL_RAILS_NIC;
  made.home = given.home;
  if (given.eager_bytes != 0) made.eager_bytes = given.eager_bytes;
  if (given.stripe_bytes != 0) made.stripe_bytes = given.stripe_bytes;
  if (given.fragment_bytes != 0) made.fragment_bytes = given.fragment_bytes;
  if (given.window != 0) made.window = given.window;
  made.words = given.words != 0;
  made.ranks = host.size();
  for (uint32_t rail = 0; rail < count; ++rail) made.facts.push_back(host.rail_facts(rail));
  made.call = [&process] { process.host().call(); };
  made.pause = [&process]() -> Status {
    const Waiter waiter(process);  // PtlAbort wakes it
    const Blocked blocked{.call = "spl_rails_wait"};
    const Blocking waits(process, blocked);
    process.host().wait(Time::never());
    if (process.aborted()) return fail(Code::fault, "PtlAbort was called");
    return {};
  };
  return made;
}

Result<std::unique_ptr<spl_rails>> open_rails(Process& process, ptl_handle_ni_t handle,
                                              const spl_rails_options& given) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->logical() || !interface->matching()) {
    return fail(Code::invalid, "spl_rails_open: rails need a logical interface that matches");
  }
  const ptl_pt_index_t portal = given.portal != 0 ? given.portal : rails_portal_usual;
  for (ptl_pt_index_t behind = 0; behind < rails_portals; ++behind) {
    if (portal + behind >= portals_each || interface->portals[portal + behind]) {
      return fail(Code::invalid, "spl_rails_open: portal table entry ", portal + behind,
                  " is in use or does not exist; ",
                  "choose three others by spl_rails_options.portal, the same at all ranks");
    }
  }
  SPL_ASSIGN(rails::RailsOptions options, rails_options_of(given, process, *interface));
  std::vector<portals::Interface*> nics;
  for (uint32_t rail = 0; rail < options.facts.size(); ++rail) nics.push_back(&process.portals_of(rail));
  const Place place{"spl_rails_open", options.portals.keys, 0, options.call};
  auto made = std::make_unique<spl_rails>();
  made->process = &process;
  made->interface = handle;
  made->portal = portal;
  SPL_ASSIGN(made->rails, Rails::open(nics, std::move(options)));
  if (const Status met = meet_all(process, process.portals(), place); !met) {
    std::ignore = made->rails->close();
    return met.error();
  }
  for (ptl_pt_index_t behind = 0; behind < rails_portals; ++behind) interface->portals[portal + behind] = true;
  return made;
}

Status close_rails(Process& process, spl_rails& rails) {
  SPL_TRY(rails.rails->close());
  NetworkInterface* const interface = process.interface_of(rails.interface);
  for (ptl_pt_index_t behind = 0; behind < rails_portals; ++behind) interface->portals[rails.portal + behind] = false;
  return {};
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::Status;
using spinloom::calls::rails_pieces_of;
using spinloom::calls::take_request;
using spinloom::calls::within_rails;
using spinloom::rails::Rails;

extern "C" {

int spl_rails_open(ptl_handle_ni_t interface, const spl_rails_options* options, spl_rails** rails) {
  using namespace spinloom::calls;
  if (rails == nullptr) return PTL_ARG_INVALID;
  *rails = nullptr;
  return enter("spl_rails_open", [&](Process& process) -> int {
    try {
      auto made = open_rails(process, interface, options != nullptr ? *options : spl_rails_options{});
      if (!made) return told_rails(nullptr, made.error());
      *rails = made->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return told_rails(nullptr,
                        spinloom::fail(spinloom::Code::exhausted, "spl_rails_open: there is not so much memory"));
    }
  });
}

int spl_rails_close(spl_rails* rails) {
  const int code = within_rails("spl_rails_close", rails, [&](Rails&) -> Status {
    return spinloom::calls::close_rails(*rails->process, *rails);
  });
  if (code == PTL_OK) delete rails;
  return code;
}

const char* spl_rails_error(const spl_rails* rails) {
  return (rails != nullptr ? rails->error : spinloom::calls::rails_opening_error()).c_str();
}

int spl_rails_send(spl_rails* rails, const void* data, uint64_t bytes, uint32_t rank, uint64_t tag,
                   spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_send", rails, [&](Rails& over) -> Status {
    return take_request(over.send(static_cast<const uint8_t*>(data), bytes, rank, tag), request);
  });
}

int spl_rails_receive(spl_rails* rails, void* data, uint64_t bytes, uint32_t source, uint64_t tag, uint64_t ignore,
                      spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_receive", rails, [&](Rails& over) -> Status {
    return take_request(over.receive(static_cast<uint8_t*>(data), bytes, source, tag, ignore), request);
  });
}

int spl_rails_send_list(spl_rails* rails, const ptl_iovec_t* pieces, size_t count, uint32_t rank, uint64_t tag,
                        spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_send_list", rails, [&](Rails& over) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return take_request(over.send(list, rank, tag), request);
  });
}

int spl_rails_receive_list(spl_rails* rails, const ptl_iovec_t* pieces, size_t count, uint32_t source, uint64_t tag,
                           uint64_t ignore, spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_receive_list", rails, [&](Rails& over) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return take_request(over.receive(list, source, tag, ignore), request);
  });
}

int spl_rails_test(spl_rails* rails, spl_rails_request request, int* done, spl_rails_status* status) {
  if (done == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_test", rails, [&](Rails& over) -> Status {
    rails->process->host().poll();
    *done = 1;  // also if test() returns an Error
    SPL_ASSIGN(const auto completion, over.test({request}));
    *done = completion ? 1 : 0;
    if (completion) spinloom::calls::tell_status(*completion, status);
    return {};
  });
}

int spl_rails_wait(spl_rails* rails, spl_rails_request request, spl_rails_status* status) {
  return within_rails("spl_rails_wait", rails, [&](Rails& over) -> Status {
    SPL_ASSIGN(const auto completion, over.wait({request}));
    spinloom::calls::tell_status(completion, status);
    return {};
  });
}

int spl_rails_progress(spl_rails* rails) {
  return within_rails("spl_rails_progress", rails, [&](Rails& over) -> Status {
    rails->process->host().poll();
    const auto moved = over.progress();
    return moved ? Status{} : Status{moved.error()};
  });
}

int spl_rails_expose(spl_rails* rails, void* data, uint64_t bytes, int rights, uint64_t* key) {
  if (key == nullptr || (data == nullptr && bytes > 0) || (rights & ~(SPL_RAILS_READ | SPL_RAILS_WRITE)) != 0) {
    return PTL_ARG_INVALID;
  }
  return within_rails("spl_rails_expose", rails, [&](Rails& over) -> Status {
    SPL_ASSIGN(const auto made, over.expose(static_cast<uint8_t*>(data), bytes,
                                            {(rights & SPL_RAILS_READ) != 0, (rights & SPL_RAILS_WRITE) != 0}));
    *key = made.number;
    return {};
  });
}

int spl_rails_withdraw(spl_rails* rails, uint64_t key) {
  return within_rails("spl_rails_withdraw", rails, [&](Rails& over) -> Status { return over.withdraw({key}); });
}

int spl_rails_put(spl_rails* rails, const void* data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_put", rails, [&](Rails& over) -> Status {
    return take_request(over.put(static_cast<const uint8_t*>(data), bytes, rank, {key}, offset), request);
  });
}

int spl_rails_get(spl_rails* rails, void* data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_get", rails, [&](Rails& over) -> Status {
    return take_request(over.get(static_cast<uint8_t*>(data), bytes, rank, {key}, offset), request);
  });
}

int spl_rails_handle(spl_rails* rails, uint32_t id, spl_rails_handler handler, void* argument) {
  if (id >= Rails::words_max) return PTL_ARG_INVALID;
  return within_rails("spl_rails_handle", rails, [&](Rails& over) -> Status {
    Rails::Word word;
    if (handler != nullptr) {
      spinloom::calls::Host& host = rails->process->host();
      word = [handler, argument, &host](uint32_t source, std::span<const uint8_t> bytes) {
        host.end_call();  // the handler may make calls
        handler(argument, source, bytes.data(), bytes.size());
        host.begin_call();
      };
    }
    over.handle(id, std::move(word));
    return {};
  });
}

int spl_rails_word(spl_rails* rails, uint32_t rank, uint32_t id, const void* data, uint64_t bytes) {
  if (data == nullptr && bytes > 0) return PTL_ARG_INVALID;
  return within_rails("spl_rails_word", rails, [&](Rails& over) -> Status {
    return over.send_word(rank, id, {static_cast<const uint8_t*>(data), bytes});
  });
}

int spl_rails_word_list(spl_rails* rails, uint32_t rank, uint32_t id, const ptl_iovec_t* pieces, size_t count,
                        spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_word_list", rails, [&](Rails& over) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return take_request(over.send_word_from(list, rank, id), request);
  });
}

int spl_rails_flush(spl_rails* rails) {
  return within_rails("spl_rails_flush", rails, [&](Rails& over) -> Status { return over.flush(); });
}

int spl_rails_count(const spl_rails* rails, uint32_t* count) {
  if (rails == nullptr || count == nullptr) return PTL_ARG_INVALID;
  *count = rails->rails->rails();
  return PTL_OK;
}

int spl_rails_describe(const spl_rails* rails, uint32_t rail, spl_rails_fact* fact) {
  if (rails == nullptr || fact == nullptr || rail >= rails->rails->rails()) return PTL_ARG_INVALID;
  const spinloom::rails::Rail& one = rails->rails->rail(rail);
  *fact = {};
  one.facts().name.copy(fact->name, sizeof fact->name - 1);
  constexpr int64_t unit_bytes = 1 << 30;
  constexpr double ps_per_second = 1e12;
  const double unit_ps = static_cast<double>(one.byte_time().time_of(spinloom::Bytes{unit_bytes}).ps);
  fact->bytes_per_second = static_cast<uint64_t>(unit_bytes * ps_per_second / unit_ps);
  fact->carried_bytes = one.carried_bytes();
  return PTL_OK;
}

int spl_rails_reaches(const spl_rails* rails, uint32_t rail, uint32_t rank, int* reaches) {
  if (rails == nullptr || reaches == nullptr || rail >= rails->rails->rails() ||
      rank >= rails->rails->options().ranks) {
    return PTL_ARG_INVALID;
  }
  *reaches = rails->rails->rail(rail).reaches(rank) ? 1 : 0;
  return PTL_OK;
}

int spl_rails_repeated(const spl_rails* rails, uint64_t* fragments) {
  if (rails == nullptr || fragments == nullptr) return PTL_ARG_INVALID;
  *fragments = rails->rails->repeated_fragments();
  return PTL_OK;
}

}  // extern "C"
