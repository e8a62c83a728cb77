// A program's reads of the memory that it shares with the NIC: requests, notices, frames, counters.
#include <atomic>
#include <cstring>
#include <thread>

#include "ethernet/host/program.hpp"
#include "nic/frames/nic.hpp"
#include "spinloom/frame.h"

namespace spinloom::host {
namespace {

template <class Word>
Word load(const void* at) {
  return __atomic_load_n(static_cast<const Word*>(at), __ATOMIC_ACQUIRE);
}

// Calls `look` until it gives something or `patience` is over; sleeps a little when there has been nothing for long.
template <class Look>
auto poll_for(std::chrono::microseconds patience, Look look) -> decltype(look()) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (int round = 0;; ++round) {
    if (auto found = look()) return found;
    if (std::chrono::steady_clock::now() >= until) return std::nullopt;
    if (round >= 64) std::this_thread::sleep_for(std::chrono::microseconds(round < 1024 ? 20 : 200));
  }
}

}  // namespace

Status Program::check_host_data() const {
  if (state_.size() >= sizeof(spl_host_data)) return {};
  return fail(Code::invalid, "the state of the context has ", state_.size(),
              " B: requests and counters need a spl_host_data of ", sizeof(spl_host_data), " B at its beginning");
}

std::optional<Program::HostRequest> Program::pop_request(uint32_t hpu) {
  const uint64_t at = uint64_t{hpu} * SPL_HOST_PAGE_BYTES;
  if (hpu >= newest_request_.size() || at + SPL_HOST_PAGE_BYTES > host_.bytes().size()) return std::nullopt;
  uint8_t* const page = host_.bytes().data() + at;
  const auto flag = load<uint64_t>(page);
  if (SPL_HOST_FLAG_ID(flag) == newest_request_[hpu]) return std::nullopt;
  newest_request_[hpu] = SPL_HOST_FLAG_ID(flag);
  return HostRequest{page + SPL_HOST_PAGE_PAYLOAD, flag};
}

std::optional<Program::HostRequest> Program::next_request(std::chrono::microseconds patience) {
  return poll_for(patience, [this]() -> std::optional<HostRequest> {
    // The search goes on from where the last one was found, so that all have their turn.
    for (uint32_t tried = 0; tried < newest_request_.size(); ++tried) {
      next_hpu_ = (next_hpu_ + 1) % static_cast<uint32_t>(newest_request_.size());
      if (const auto found = pop_request(next_hpu_)) return found;
    }
    return std::nullopt;
  });
}

Status Program::respond(uint64_t flag, uint32_t value) {
  SPL_TRY(check_host_data());
  const uint32_t hpu = SPL_HOST_FLAG_HPU(flag);
  if (hpu >= SPL_HOST_HPUS) return fail(Code::invalid, "no HPU has number ", hpu, ": the flag is not one of a request");
  auto* const data = reinterpret_cast<spl_host_data*>(state_.data());
  __atomic_store_n(&data->response[hpu], SPL_HOST_FLAG(SPL_HOST_FLAG_ID(flag), value, hpu), __ATOMIC_RELEASE);
  return {};
}

std::optional<spl_eth_notice> Program::next_notice(std::chrono::microseconds patience) {
  if (!check_host_data().ok() || host_.bytes().size() < SPL_HOST_BYTES) return std::nullopt;
  const uint8_t* const ring = host_.bytes().data() + SPL_HOST_RING_OFFSET;
  return poll_for(patience, [&]() -> std::optional<spl_eth_notice> {
    const uint8_t* const entry = ring + notices_ % SPL_HOST_RING_NOTICES * sizeof(spl_host_notice);
    const auto last = load<uint64_t>(entry + offsetof(spl_host_notice, value));  // value and sequence, written at once
    if (static_cast<uint32_t>(last >> 32) != notices_ + 1) return std::nullopt;
    spl_eth_notice found{static_cast<uint32_t>(last), load<uint64_t>(entry)};
    ++notices_;
    auto* const data = reinterpret_cast<spl_host_data*>(state_.data());
    __atomic_store_n(&data->notices_read, notices_, __ATOMIC_RELEASE);
    return found;
  });
}

std::optional<Program::Frame> Program::next_frame(std::chrono::microseconds patience) {
  const uint64_t entries = host_.bytes().size() / frames::ring_entry_bytes;
  if (entries == 0) return std::nullopt;
  if (unreported_frames_ >= std::max<uint64_t>(entries / 4, 1)) {
    Request request;
    request.kind = RequestKind::frames_read;
    request.message = unreported_frames_;
    if (ask(request)) unreported_frames_ = 0;
  }
  return poll_for(patience, [&]() -> std::optional<Frame> {
    const uint8_t* const entry = host_.bytes().data() + frames_ % entries * frames::ring_entry_bytes;
    if (load<uint32_t>(entry) != static_cast<uint32_t>(frames_ + 1)) return std::nullopt;
    frames::RingHeader header;
    std::memcpy(&header, entry, sizeof header);
    if (header.length > frames::ring_entry_bytes - sizeof header) return std::nullopt;
    ++frames_;
    ++unreported_frames_;
    return Frame{{entry + sizeof header, header.length}, header.message};
  });
}

Result<spl_eth_notice> Program::counter(unsigned which, bool clear) {
  SPL_TRY(check_host_data());
  if (which >= SPL_HOST_COUNTERS) {
    return fail(Code::invalid, "counter ", which, "; they are 0 to ", SPL_HOST_COUNTERS - 1);
  }
  auto* const data = reinterpret_cast<spl_host_data*>(state_.data());
  if (clear) {
    __atomic_store_n(&data->counter[which].sum, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&data->counter[which].count, 0u, __ATOMIC_RELAXED);
  }
  return spl_eth_notice{load<uint32_t>(&data->counter[which].count), load<uint32_t>(&data->counter[which].sum)};
}

}  // namespace spinloom::host
