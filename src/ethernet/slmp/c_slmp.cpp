// The C face of SLMP: include/spinloom/slmp.h over send_message() and ReceiveMessage.
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "ethernet/slmp/receive_message.hpp"
#include "ethernet/slmp/send_message.hpp"
#include "spinloom/slmp.h"

using namespace spinloom;  // NOLINT: one translation unit, C names outside

struct slmp_state {
  slmp::SendOptions options;
  int port = SLMP_PORT;
  std::mutex mutex;  // guards `last`
  slmp::SenderCounts last;
};

struct slmp_receiver {
  explicit slmp_receiver(const slmp::ReceiverConfig& config) : receive(config) {}
  slmp::ReceiveMessage receive;
};

namespace {

thread_local std::string slmp_sentence;
thread_local const char* slmp_last = "";

int status_of(Code code) {
  switch (code) {
    case Code::invalid:
    case Code::unsupported:
    case Code::mismatch: return SLMP_ERR_INVALID;
    case Code::overflow: return SLMP_ERR_TOO_LARGE;
    case Code::stalled: return SLMP_ERR_TIMEOUT;
    case Code::environment: return SLMP_ERR_SYSTEM;
    case Code::exhausted: return SLMP_ERR_MEMORY;
    case Code::fault: return SLMP_ERR_STOPPED;
  }
  return SLMP_ERR_INTERNAL;
}

// Calls `work`, keeps the sentence of its failure, and lets no exception out.
template <class Work>
int slmp_guarded(Work&& work) noexcept {
  try {
    const Status status = work();
    if (status) return SLMP_OK;
    slmp_sentence = status.error().message;
    slmp_last = slmp_sentence.c_str();
    return status_of(status.error().code);
  } catch (const std::bad_alloc&) {
    slmp_last = "there is not enough memory for this call";
    return SLMP_ERR_MEMORY;
  } catch (const std::exception&) {
    slmp_last = "the library met an exception that it does not expect; please report it";
    return SLMP_ERR_INTERNAL;
  }
}

Status slmp_given(const void* argument, const char* name) {
  if (argument == nullptr) return fail(Code::invalid, name, " is NULL");
  return {};
}

Status slmp_open(const slmp_sock_t* sock) {
  SPL_TRY(slmp_given(sock, "sock"));
  return slmp_given(sock->state, "the socket's state (call slmp_socket first)");
}

Status slmp_in_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(Code::invalid, name, " is ", value, ", it must lie from ", least, " to ", most);
}

// The window that SLMP_MODE_SEGMENT has when slmp_set() chooses it after a window of 0.
constexpr uint32_t window_of_free_segments = 64;
constexpr int64_t tries_max = 1000;

Time milliseconds_of(int count) { return count < 0 ? Time::never() : Time{int64_t{count} * 1'000'000'000}; }

void set_tries(slmp::SenderConfig& sender, int64_t tries) {
  sender.retransmit = tries > 0;
  sender.tries_max = tries > 0 ? static_cast<uint32_t>(tries) : 1;
}

Status set_option(slmp::SendOptions& options, int option, int64_t value) {
  switch (option) {
    case SLMP_OPT_MODE:
      SPL_TRY(slmp_in_range("SLMP_OPT_MODE", value, SLMP_MODE_NONE, SLMP_MODE_SEGMENT));
      options.mode = static_cast<slmp::Mode>(value);
      return {};
    case SLMP_OPT_TRIES:
      SPL_TRY(slmp_in_range("SLMP_OPT_TRIES", value, 0, tries_max));
      set_tries(options.sender, value);
      return {};
    case SLMP_OPT_FIXED_WINDOW:
      SPL_TRY(slmp_in_range("SLMP_OPT_FIXED_WINDOW", value, 0, 1));
      options.sender.fixed_window = value == 1;
      return {};
    case SLMP_OPT_POLLING:
      SPL_TRY(slmp_in_range("SLMP_OPT_POLLING", value, SLMP_POLL_WAIT, SLMP_POLL_BUSY));
      options.polling = static_cast<slmp::Polling>(value);
      return {};
    case SLMP_OPT_SILENCE_MS:
      SPL_TRY(slmp_in_range("SLMP_OPT_SILENCE_MS", value, 1, 3'600'000));
      options.sender.silence_max = milliseconds_of(static_cast<int>(value));
      options.sender.drain_max = options.sender.silence_max * 2;
      return {};
    case SLMP_OPT_REPORTS:
      SPL_TRY(slmp_in_range("SLMP_OPT_REPORTS", value, 0, 1));
      options.sender.reports = value == 1;
      return {};
    case SLMP_OPT_AS_ORIGINAL:
      SPL_TRY(slmp_in_range("SLMP_OPT_AS_ORIGINAL", value, 0, 1));
      set_tries(options.sender, value == 1 ? 0 : slmp::SenderConfig().tries_max);
      options.sender.fixed_window = value == 1;
      options.polling = value == 1 ? slmp::Polling::original : slmp::Polling::wait;
      return {};
    default: return fail(Code::invalid, "there is no option ", option, " of slmp_set");
  }
}

sockaddr_in address_of(in_addr_t host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

extern "C" {

const char* slmp_last_error(void) { return slmp_last; }

const char* slmp_strerror(int status) {
  switch (status) {
    case SLMP_OK: return "success";
    case SLMP_ERR_INVALID: return "an argument is wrong";
    case SLMP_ERR_TOO_LARGE: return "the message is larger than 4 GiB, the most that SLMP's offsets reach";
    case SLMP_ERR_TIMEOUT: return "nothing came in time: a packet was not acknowledged, or there was no message";
    case SLMP_ERR_SYSTEM: return "the operating system refused a call";
    case SLMP_ERR_MEMORY: return "there is not enough memory";
    case SLMP_ERR_STOPPED: return "the progress function has ended the message";
    case SLMP_ERR_INTERNAL: return "an error of the library itself";
    default: return "this is no code of SLMP";
  }
}

int slmp_socket(slmp_sock_t* sock, int wnd_sz, int align, int fc_us, int num_threads) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(sock, "sock"));
    SPL_TRY(slmp_in_range("wnd_sz", wnd_sz, 0, slmp::SenderConfig::window_max));
    SPL_TRY(slmp_in_range("fc_us", fc_us, 0, 1'000'000));
    SPL_TRY(slmp_in_range("num_threads", num_threads, 1, slmp::SendOptions::threads_max));
    auto state = std::make_unique<slmp_state>();
    SPL_ASSIGN(state->options.payload_bytes, slmp::payload_of(align));
    state->options.mode = wnd_sz > 0 ? slmp::Mode::segment : slmp::Mode::message;
    state->options.sender.window = wnd_sz > 0 ? static_cast<uint32_t>(wnd_sz) : window_of_free_segments;
    state->options.sender.gap = Time{int64_t{fc_us} * 1'000'000};
    state->options.threads = static_cast<uint32_t>(num_threads);
    sock->state = state.release();
    return {};
  });
}

int slmp_set(slmp_sock_t* sock, int option, int64_t value) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_open(sock));
    if (option != SLMP_OPT_PORT) return set_option(sock->state->options, option, value);
    SPL_TRY(slmp_in_range("SLMP_OPT_PORT", value, 1, 65535));
    sock->state->port = static_cast<int>(value);
    return {};
  });
}

int slmp_on_progress(slmp_sock_t* sock, slmp_progress call, void* context) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_open(sock));
    sock->state->options.progress = nullptr;
    if (call != nullptr) {
      sock->state->options.progress = [call, context](uint64_t bytes, uint64_t total) {
        return call(context, bytes, total) == 0;
      };
    }
    return {};
  });
}

int slmp_sendmsg(slmp_sock_t* sock, in_addr_t server, int msgid, const void* buf, size_t size) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_open(sock));
    if (size > 0) SPL_TRY(slmp_given(buf, "buf"));
    slmp_state& state = *sock->state;
    slmp::SenderCounts counts;
    const Status status =
        slmp::send_message(state.options, address_of(server, state.port), static_cast<uint32_t>(msgid),
                           {static_cast<const uint8_t*>(buf), size}, counts);
    const std::lock_guard lock(state.mutex);
    state.last = counts;
    return status;
  });
}

int slmp_last_sent(const slmp_sock_t* sock, slmp_sent_t* out) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_open(sock));
    SPL_TRY(slmp_given(out, "out"));
    const std::lock_guard lock(sock->state->mutex);
    const slmp::SenderCounts& last = sock->state->last;
    *out = {last.sent, last.retransmitted, last.acknowledged, last.duplicates};
    return {};
  });
}

int slmp_close(slmp_sock_t* sock) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_open(sock));
    delete sock->state;
    sock->state = nullptr;
    return {};
  });
}

uint64_t slmp_window(uint64_t receive_buffer, uint64_t send_rate, uint64_t receive_rate) {
  return slmp::window_of(receive_buffer, send_rate, receive_rate).value_or(0);
}

int slmp_listen(slmp_receiver_t** out, in_addr_t address, int port, uint64_t bytes_max) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(out, "out"));
    SPL_TRY(slmp_in_range("port", port, 0, 65535));
    slmp::ReceiverConfig config;
    config.bytes_max = bytes_max;
    auto receiver = std::make_unique<slmp_receiver>(config);
    SPL_TRY(receiver->receive.listen(address_of(address, port)));
    *out = receiver.release();
    return {};
  });
}

int slmp_receiver_port(const slmp_receiver_t* receiver) {
  int port = 0;
  const int status = slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(receiver, "receiver"));
    port = receiver->receive.own_port();
    return {};
  });
  return status == SLMP_OK ? port : status;
}

int slmp_receive(slmp_receiver_t* receiver, slmp_message_t* out, int timeout_ms) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(receiver, "receiver"));
    SPL_TRY(slmp_given(out, "out"));
    SPL_ASSIGN(auto message, receiver->receive.receive(milliseconds_of(timeout_ms)));
    if (!message) return fail(Code::stalled, "no message of SLMP has become whole within ", timeout_ms, " ms");
    auto owner = std::make_unique<slmp::Receiver::Message>(std::move(*message));
    *out = {};
    out->data = owner->bytes.data();
    out->size = owner->bytes.size();
    out->msgid = owner->id;
    out->port = static_cast<uint16_t>(owner->peer);
    out->from = htonl(static_cast<uint32_t>(owner->peer >> 16));
    out->ns = static_cast<uint64_t>((owner->ended - owner->began).ps / 1000);
    out->owner = owner.release();
    return {};
  });
}

void slmp_message_free(slmp_message_t* message) {
  if (message == nullptr) return;
  delete static_cast<slmp::Receiver::Message*>(message->owner);
  *message = {};
}

int slmp_answer(slmp_receiver_t* receiver, int quiet_ms) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(receiver, "receiver"));
    SPL_TRY(slmp_in_range("quiet_ms", quiet_ms, 0, 3'600'000));
    return receiver->receive.answer_until_quiet(milliseconds_of(quiet_ms));
  });
}

int slmp_receiver_counts(const slmp_receiver_t* receiver, slmp_received_t* out) {
  return slmp_guarded([&]() -> Status {
    SPL_TRY(slmp_given(receiver, "receiver"));
    SPL_TRY(slmp_given(out, "out"));
    const slmp::ReceiverCounts& counts = receiver->receive.counts();
    *out = {counts.packets, counts.repeated, counts.malformed, counts.refused, counts.messages};
    return {};
  });
}

int slmp_receiver_close(slmp_receiver_t* receiver) {
  delete receiver;
  return SLMP_OK;
}

}  // extern "C"
