// Program - a program's context on a NIC of another process: what the C functions of spinloom/ethernet.h stand on.
//
// Contract: connect() reaches the NIC and installs the context. A question to the NIC waits for its answer for
//   answer_time at most; functions that look for requests, notices or frames wait for `patience` at most. A NIC that
//   has gone is an Error of Code::environment.
// Threads: one owner; respond() by several, each for its own HPUs. Time: host time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ethernet/host/desk_record.hpp"
#include "ethernet/host/shared_memory.hpp"

namespace spinloom::host {

class Program {
 public:
  static constexpr std::chrono::seconds answer_time{10};

  static Result<std::unique_ptr<Program>> connect(const std::string& nic, const Request& install);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] Result<Answer> ask(Request request);

  [[nodiscard]] uint32_t context() const { return context_; }
  [[nodiscard]] std::span<uint8_t> host_memory() const { return host_.bytes(); }
  [[nodiscard]] int host_descriptor() const { return host_.descriptor(); }
  [[nodiscard]] std::span<uint8_t> state() const { return state_; }
  [[nodiscard]] std::span<uint8_t> constants() const { return constants_; }

  // program_requests.cpp
  struct HostRequest {
    uint8_t* payload;
    uint64_t flag;
  };
  [[nodiscard]] std::optional<HostRequest> pop_request(uint32_t hpu);
  [[nodiscard]] std::optional<HostRequest> next_request(std::chrono::microseconds patience);
  [[nodiscard]] Status respond(uint64_t flag, uint32_t value);
  [[nodiscard]] std::optional<spl_eth_notice> next_notice(std::chrono::microseconds patience);
  struct Frame {
    std::span<const uint8_t> bytes;
    uint32_t message;
  };
  [[nodiscard]] std::optional<Frame> next_frame(std::chrono::microseconds patience);
  [[nodiscard]] Result<spl_eth_notice> counter(unsigned which, bool clear);  // its sum as argument, its count as value

 private:
  Program() = default;
  [[nodiscard]] Status check_host_data() const;

  uint32_t context_ = 0;
  int socket_ = -1;
  SharedMemory nic_;
  SharedMemory host_;
  std::span<uint8_t> state_;
  std::span<uint8_t> constants_;
  std::array<uint8_t, 32> newest_request_{};  // each HPU's newest request that has been returned
  uint32_t next_hpu_ = 0;
  uint32_t notices_ = 0;
  uint64_t frames_ = 0;  // frames that the program has taken
  uint32_t unreported_frames_ = 0;  // frames among these that have not been reported to the NIC yet
};

}  // namespace spinloom::host
