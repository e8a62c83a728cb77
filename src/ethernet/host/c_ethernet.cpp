// The C face of a program's side (spinloom/ethernet.h). Functions that ask the NIC let no exception out.
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "ethernet/host/program.hpp"
#include "nic/frames/nic.hpp"
#include "spinloom/ethernet.h"
#include "spinloom/frame.h"

using spinloom::Code;
using spinloom::Error;
using spinloom::host::Program;
using spinloom::host::Request;
using spinloom::host::RequestKind;

struct spl_eth {
  std::unique_ptr<Program> program;
  bool has_handlers = false;
};

namespace {

thread_local std::string last_error;

int refuse(const Error& error) {
  last_error = error.message;
  switch (error.code) {
    case Code::environment: return SPL_ETH_NO_NIC;
    case Code::exhausted: return SPL_ETH_EXHAUSTED;
    default: return SPL_ETH_INVALID;
  }
}

template <class Call>
auto guarded(Call call, decltype(call()) otherwise) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    last_error = "there is not enough memory";
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return otherwise;
}

int ask(spl_eth* eth, const Request& request) {
  if (eth == nullptr) return refuse(spinloom::fail(Code::invalid, "the spl_eth is NULL"));
  return guarded(
      [&] {
        const auto answer = eth->program->ask(request);
        return answer ? static_cast<int>(SPL_ETH_OK) : refuse(answer.error());
      },
      static_cast<int>(SPL_ETH_INTERNAL));
}

std::chrono::microseconds patience(uint64_t us) {
  constexpr uint64_t longest = 3'600'000'000;
  return std::chrono::microseconds(std::min(us, longest));
}

void* memory_of(std::span<uint8_t> bytes, size_t* length) {
  if (length != nullptr) *length = bytes.size();
  return bytes.data();
}

}  // namespace

int spl_eth_open(spl_eth** out, const spl_eth_options* options) {
  if (out == nullptr || options == nullptr) {
    return refuse(spinloom::fail(Code::invalid, "spl_eth_open needs a place for the result, and options"));
  }
  *out = nullptr;
  return guarded(
      [&] {
        Request request;
        request.kind = RequestKind::install;
        request.context = options->context;
        request.constants_bytes = options->constants_bytes;
        request.state_bytes = options->state_bytes == 0 ? 64 << 10 : options->state_bytes;
        request.host_bytes =
            options->host_bytes == 0 ? SPL_HOST_BYTES + 64 * spinloom::frames::ring_entry_bytes : options->host_bytes;
        const std::string handlers = options->handlers == nullptr ? "" : options->handlers;
        std::string path = handlers;
        if (!path.empty() && path.front() != '/') {  // the NIC runs elsewhere
          char* const here = realpath(path.c_str(), nullptr);
          if (here == nullptr) return refuse(spinloom::fail(Code::invalid, handlers, ": ", std::strerror(errno)));
          path = here;
          std::free(here);
        }
        if (path.size() >= request.handlers.size()) {
          return refuse(spinloom::fail(Code::invalid, "the path of the handlers is too long: ", path));
        }
        path.copy(request.handlers.data(), path.size());
        auto program = Program::connect(options->nic == nullptr ? "spinloom0" : options->nic, request);
        if (!program) return refuse(program.error());
        *out = new spl_eth{std::move(*program), !path.empty()};
        return static_cast<int>(SPL_ETH_OK);
      },
      static_cast<int>(SPL_ETH_INTERNAL));
}

uint32_t spl_eth_context(const spl_eth* eth) { return eth->program->context(); }

int spl_eth_activate(spl_eth* eth, const spl_eth_rules* rules) {
  if (rules == nullptr) return refuse(spinloom::fail(Code::invalid, "spl_eth_activate needs rules"));
  Request request;
  request.kind = RequestKind::activate;
  request.rules = *rules;
  return ask(eth, request);
}

int spl_eth_deactivate(spl_eth* eth) {
  Request request;
  request.kind = RequestKind::deactivate;
  return ask(eth, request);
}

void spl_eth_close(spl_eth* eth) {
  if (eth == nullptr) return;
  Request request;
  request.kind = RequestKind::remove;
  (void)ask(eth, request);
  delete eth;
}

int spl_eth_invoke(spl_eth* eth, uint32_t message) {
  Request request;
  request.kind = RequestKind::invoke;
  request.message = message;
  return ask(eth, request);
}

void* spl_eth_host_memory(spl_eth* eth, size_t* bytes) { return memory_of(eth->program->host_memory(), bytes); }
void* spl_eth_state(spl_eth* eth, size_t* bytes) { return memory_of(eth->program->state(), bytes); }
void* spl_eth_constants(spl_eth* eth, size_t* bytes) { return memory_of(eth->program->constants(), bytes); }

void* spl_eth_pop_request(spl_eth* eth, uint32_t hpu, uint64_t* flag) {
  const auto request = eth->program->pop_request(hpu);
  if (!request) return nullptr;
  if (flag != nullptr) *flag = request->flag;
  return request->payload;
}

void* spl_eth_next_request(spl_eth* eth, uint64_t timeout_us, uint64_t* flag) {
  const auto request = eth->program->next_request(patience(timeout_us));
  if (!request) return nullptr;
  if (flag != nullptr) *flag = request->flag;
  return request->payload;
}

int spl_eth_push_response(spl_eth* eth, uint64_t flag, uint32_t value) {
  const auto done = eth->program->respond(flag, value);
  return done.ok() ? SPL_ETH_OK : refuse(done.error());
}

int spl_eth_next_notice(spl_eth* eth, uint64_t timeout_us, spl_eth_notice* out) {
  const auto notice = eth->program->next_notice(patience(timeout_us));
  if (!notice) return 0;
  if (out != nullptr) *out = *notice;
  return 1;
}

const void* spl_eth_next_frame(spl_eth* eth, uint64_t timeout_us, size_t* bytes, uint32_t* message) {
  if (eth->has_handlers) {
    last_error = "this context has handlers: its frames go to them";
    return nullptr;
  }
  return guarded(
      [&]() -> const void* {
        const auto frame = eth->program->next_frame(patience(timeout_us));
        if (!frame) return nullptr;
        if (bytes != nullptr) *bytes = frame->bytes.size();
        if (message != nullptr) *message = frame->message;
        return frame->bytes.data();
      },
      nullptr);
}

int spl_eth_counter(spl_eth* eth, unsigned counter, uint32_t* sum, uint32_t* count) {
  const auto result = eth->program->counter(counter, false);
  if (!result) return refuse(result.error());
  if (sum != nullptr) *sum = static_cast<uint32_t>(result->argument);
  if (count != nullptr) *count = result->value;
  return SPL_ETH_OK;
}

int spl_eth_clear_counter(spl_eth* eth, unsigned counter) {
  const auto result = eth->program->counter(counter, true);
  return result ? SPL_ETH_OK : refuse(result.error());
}

int spl_eth_counts(spl_eth* eth, uint64_t* values, unsigned count) {
  return guarded(
      [&] {
        const auto answer = eth->program->ask(Request{});
        if (!answer) return refuse(answer.error());
        for (unsigned which = 0; which < count && which < spinloom::frames::count_kinds; ++which) {
          values[which] = answer->counts[which];
        }
        return static_cast<int>(spinloom::frames::count_kinds);
      },
      static_cast<int>(SPL_ETH_INTERNAL));
}

const char* spl_eth_count_name(unsigned which) {
  return which < spinloom::frames::count_kinds ? name_of(static_cast<spinloom::frames::Count>(which)) : nullptr;
}

const char* spl_eth_error(void) { return last_error.c_str(); }
