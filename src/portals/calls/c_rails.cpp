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

int record_rails_error(spl_rails* rails, const Error& error) {
  (rails != nullptr ? rails->error : rails_opening_error()) = error.message;
  return error.code == Code::stalled ? static_cast<int>(PTL_IN_USE) : code_of(error);
}

// Calls work(rails) inside the library; work returns a Status.
template <class Work>
int within_rails(const char* name, spl_rails* rails, Work work) {
  if (rails == nullptr) return PTL_ARG_INVALID;
  return enter(name, [&](Process& process) -> int {
    if (process.interface_of(rails->interface) == nullptr) {
      return record_rails_error(rails,
                                fail(Code::invalid, name, ": the network interface of the rails has been closed"));
    }
    try {
      const Status status = work(*rails->rails);
      return status ? static_cast<int>(PTL_OK) : record_rails_error(rails, status.error());
    } catch (const std::bad_alloc&) {
      return record_rails_error(rails, fail(Code::exhausted, name, ": there is not so much memory"));
    }
  });
}

Status return_request(Result<rails::RequestId> started, spl_rails_request* request) {
  if (!started) return started.error();
  *request = started->value;
  return {};
}

Result<std::vector<nic::IovecElement>> rails_pieces_of(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return fail(Code::invalid, "the list of pieces is NULL");
  auto elements = list_of(list, count, std::numeric_limits<int>::max());
  if (!elements) return fail(Code::invalid, "a piece has no memory, or they are too many");
  return std::move(*elements);
}

void fill_status(const rails::Completion& completion, spl_rails_status* status) {
  if (status == nullptr) return;
  *status = {completion.source, completion.truncated ? 1 : 0, completion.tag, completion.bytes};
}

Result<rails::RailsOptions> rails_options_of(const spl_rails_options& arguments, Process& process,
                                             const NetworkInterface& interface) {
  rails::RailsOptions options;
  const auto is_choice = [](int value) { return value == 0 || value == 1; };
  if (!is_choice(arguments.matching) || !is_choice(arguments.progress) || !is_choice(arguments.rendezvous)) {
    return fail(Code::invalid, "spl_rails_open: matching is ", arguments.matching, ", progress ", arguments.progress,
                ", rendezvous ", arguments.rendezvous, "; each is 0 or 1");
  }
  Host& host = process.host();
  const uint32_t count = arguments.rails != 0 ? arguments.rails : std::min(host.rails(), Rails::rails_max);
  if (count > host.rails()) {
    return fail(Code::invalid, "spl_rails_open: ", count, " rails are wanted, this job has ", host.rails());
  }
  const ptl_pt_index_t portal = arguments.portal != 0 ? arguments.portal : rails_portal_usual;
  const auto index = [&](ptl_pt_index_t offset) { return portal_of(interface, portal + offset); };
  options.portals = {index(0), index(1), index(2)};
  options.mode = arguments.matching == SPL_RAILS_BY_TAG ? rails::Mode::tag : rails::Mode::word;
  options.by_put = arguments.rendezvous == SPL_RAILS_PUT;
  options.offloaded = arguments.progress == SPL_RAILS_NIC;
  options.home = arguments.home;
  if (arguments.eager_bytes != 0) options.eager_bytes = arguments.eager_bytes;
  if (arguments.stripe_bytes != 0) options.stripe_bytes = arguments.stripe_bytes;
  if (arguments.fragment_bytes != 0) options.fragment_bytes = arguments.fragment_bytes;
  if (arguments.window != 0) options.window = arguments.window;
  options.words = arguments.words != 0;
  options.ranks = host.size();
  for (uint32_t rail = 0; rail < count; ++rail) options.facts.push_back(host.rail_facts(rail));
  options.spend_call_time = [&process] { process.host().spend_call_time(); };
  options.pause = [&process]() -> Status {
    const WaiterScope waiter_scope(process);  // PtlAbort wakes it
    const BlockedCall blocked{.call = "spl_rails_wait"};
    const BlockedScope blocked_scope(process, blocked);
    process.host().wait(Time::never());
    if (process.is_aborted()) return fail(Code::fault, "PtlAbort was called");
    return {};
  };
  return options;
}

Result<std::unique_ptr<spl_rails>> open_rails(Process& process, ptl_handle_ni_t handle,
                                              const spl_rails_options& arguments) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->is_logical() || !interface->is_matching()) {
    return fail(Code::invalid, "spl_rails_open: rails need a logical interface that matches");
  }
  const ptl_pt_index_t portal = arguments.portal != 0 ? arguments.portal : rails_portal_usual;
  for (ptl_pt_index_t offset = 0; offset < rails_portals; ++offset) {
    if (portal + offset >= portals_each || interface->portals[portal + offset]) {
      return fail(Code::invalid, "spl_rails_open: portal table entry ", portal + offset,
                  " is in use or does not exist; ",
                  "choose three others by spl_rails_options.portal, the same at all ranks");
    }
  }
  SPL_ASSIGN(rails::RailsOptions options, rails_options_of(arguments, process, *interface));
  std::vector<portals::Interface*> nics;
  for (uint32_t rail = 0; rail < options.facts.size(); ++rail) nics.push_back(&process.portals_of(rail));
  const MeetingPoint point{"spl_rails_open", options.portals.keys, 0, options.spend_call_time};
  auto opened = std::make_unique<spl_rails>();
  opened->process = &process;
  opened->interface = handle;
  opened->portal = portal;
  SPL_ASSIGN(opened->rails, Rails::open(nics, std::move(options)));
  if (const Status met = meet_all(process, process.portals(), point); !met) {
    std::ignore = opened->rails->close();
    return met.error();
  }
  for (ptl_pt_index_t offset = 0; offset < rails_portals; ++offset) interface->portals[portal + offset] = true;
  return opened;
}

Status close_rails(Process& process, spl_rails& rails) {
  SPL_TRY(rails.rails->close());
  NetworkInterface* const interface = process.interface_of(rails.interface);
  for (ptl_pt_index_t offset = 0; offset < rails_portals; ++offset) interface->portals[rails.portal + offset] = false;
  return {};
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::Status;
using spinloom::calls::rails_pieces_of;
using spinloom::calls::return_request;
using spinloom::calls::within_rails;
using spinloom::rails::Rails;

extern "C" {

int spl_rails_open(ptl_handle_ni_t interface, const spl_rails_options* options, spl_rails** rails) {
  using namespace spinloom::calls;
  if (rails == nullptr) return PTL_ARG_INVALID;
  *rails = nullptr;
  return enter("spl_rails_open", [&](Process& process) -> int {
    try {
      auto opened = open_rails(process, interface, options != nullptr ? *options : spl_rails_options{});
      if (!opened) return record_rails_error(nullptr, opened.error());
      *rails = opened->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return record_rails_error(
          nullptr, spinloom::fail(spinloom::Code::exhausted, "spl_rails_open: there is not so much memory"));
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
  return within_rails("spl_rails_send", rails, [&](Rails& layer) -> Status {
    return return_request(layer.send(static_cast<const uint8_t*>(data), bytes, rank, tag), request);
  });
}

int spl_rails_receive(spl_rails* rails, void* data, uint64_t bytes, uint32_t source, uint64_t tag, uint64_t ignore,
                      spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_receive", rails, [&](Rails& layer) -> Status {
    return return_request(layer.receive(static_cast<uint8_t*>(data), bytes, source, tag, ignore), request);
  });
}

int spl_rails_send_list(spl_rails* rails, const ptl_iovec_t* pieces, size_t count, uint32_t rank, uint64_t tag,
                        spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_send_list", rails, [&](Rails& layer) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return return_request(layer.send(list, rank, tag), request);
  });
}

int spl_rails_receive_list(spl_rails* rails, const ptl_iovec_t* pieces, size_t count, uint32_t source, uint64_t tag,
                           uint64_t ignore, spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_receive_list", rails, [&](Rails& layer) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return return_request(layer.receive(list, source, tag, ignore), request);
  });
}

int spl_rails_test(spl_rails* rails, spl_rails_request request, int* done, spl_rails_status* status) {
  if (done == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_test", rails, [&](Rails& layer) -> Status {
    rails->process->host().poll();
    *done = 1;  // it is 1, too, if test() returns an Error
    SPL_ASSIGN(const auto completion, layer.test({request}));
    *done = completion ? 1 : 0;
    if (completion) spinloom::calls::fill_status(*completion, status);
    return {};
  });
}

int spl_rails_wait(spl_rails* rails, spl_rails_request request, spl_rails_status* status) {
  return within_rails("spl_rails_wait", rails, [&](Rails& layer) -> Status {
    SPL_ASSIGN(const auto completion, layer.wait({request}));
    spinloom::calls::fill_status(completion, status);
    return {};
  });
}

int spl_rails_progress(spl_rails* rails) {
  return within_rails("spl_rails_progress", rails, [&](Rails& layer) -> Status {
    rails->process->host().poll();
    const auto progressed = layer.progress();
    return progressed ? Status{} : Status{progressed.error()};
  });
}

int spl_rails_expose(spl_rails* rails, void* data, uint64_t bytes, int rights, uint64_t* key) {
  if (key == nullptr || (data == nullptr && bytes > 0) || (rights & ~(SPL_RAILS_READ | SPL_RAILS_WRITE)) != 0) {
    return PTL_ARG_INVALID;
  }
  return within_rails("spl_rails_expose", rails, [&](Rails& layer) -> Status {
    SPL_ASSIGN(const auto exposed, layer.expose(static_cast<uint8_t*>(data), bytes,
                                                {(rights & SPL_RAILS_READ) != 0, (rights & SPL_RAILS_WRITE) != 0}));
    *key = exposed.number;
    return {};
  });
}

int spl_rails_withdraw(spl_rails* rails, uint64_t key) {
  return within_rails("spl_rails_withdraw", rails, [&](Rails& layer) -> Status { return layer.withdraw({key}); });
}

int spl_rails_put(spl_rails* rails, const void* data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_put", rails, [&](Rails& layer) -> Status {
    return return_request(layer.put(static_cast<const uint8_t*>(data), bytes, rank, {key}, offset), request);
  });
}

int spl_rails_get(spl_rails* rails, void* data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request* request) {
  if (request == nullptr || (data == nullptr && bytes > 0)) return PTL_ARG_INVALID;
  return within_rails("spl_rails_get", rails, [&](Rails& layer) -> Status {
    return return_request(layer.get(static_cast<uint8_t*>(data), bytes, rank, {key}, offset), request);
  });
}

int spl_rails_handle(spl_rails* rails, uint32_t id, spl_rails_handler handler, void* argument) {
  if (id >= Rails::words_max) return PTL_ARG_INVALID;
  return within_rails("spl_rails_handle", rails, [&](Rails& layer) -> Status {
    Rails::Word word;
    if (handler != nullptr) {
      spinloom::calls::Host& host = rails->process->host();
      word = [handler, argument, &host](uint32_t source, std::span<const uint8_t> bytes) {
        host.end_call();  // the handler may make calls
        handler(argument, source, bytes.data(), bytes.size());
        host.begin_call();
      };
    }
    layer.handle(id, std::move(word));
    return {};
  });
}

int spl_rails_word(spl_rails* rails, uint32_t rank, uint32_t id, const void* data, uint64_t bytes) {
  if (data == nullptr && bytes > 0) return PTL_ARG_INVALID;
  return within_rails("spl_rails_word", rails, [&](Rails& layer) -> Status {
    return layer.send_word(rank, id, {static_cast<const uint8_t*>(data), bytes});
  });
}

int spl_rails_word_list(spl_rails* rails, uint32_t rank, uint32_t id, const ptl_iovec_t* pieces, size_t count,
                        spl_rails_request* request) {
  if (request == nullptr) return PTL_ARG_INVALID;
  return within_rails("spl_rails_word_list", rails, [&](Rails& layer) -> Status {
    SPL_ASSIGN(const auto list, rails_pieces_of(pieces, count));
    return return_request(layer.send_word_from(list, rank, id), request);
  });
}

int spl_rails_flush(spl_rails* rails) {
  return within_rails("spl_rails_flush", rails, [&](Rails& layer) -> Status { return layer.flush(); });
}

int spl_rails_count(const spl_rails* rails, uint32_t* count) {
  if (rails == nullptr || count == nullptr) return PTL_ARG_INVALID;
  *count = rails->rails->rails();
  return PTL_OK;
}

int spl_rails_describe(const spl_rails* rails, uint32_t rail, spl_rails_fact* fact) {
  if (rails == nullptr || fact == nullptr || rail >= rails->rails->rails()) return PTL_ARG_INVALID;
  const spinloom::rails::Rail& described = rails->rails->rail(rail);
  *fact = {};
  described.facts().name.copy(fact->name, sizeof fact->name - 1);
  constexpr int64_t unit_bytes = 1 << 30;
  constexpr double ps_per_second = 1e12;
  const double unit_ps = static_cast<double>(described.byte_time().time_of(spinloom::Bytes{unit_bytes}).ps);
  fact->bytes_per_second = static_cast<uint64_t>(unit_bytes * ps_per_second / unit_ps);
  fact->carried_bytes = described.carried_bytes();
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
