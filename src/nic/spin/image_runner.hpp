// ImageHandlers - runs RV32 handler images functionally, for drivers without a notion of time.
//
// Contract: a context's image is the number that add() returned, its entries are addresses in that image. The handler
//   sees only the address map of spinloom/hpu_map.h; its budget counts instructions.
// Invariants: (1) a handler that leaves its memory, executes an illegal instruction or runs past its budget ends as
//   such; the runner and its host go on; (2) the same frame gives the same outcome, unless handlers that run at the
//   same time change memory that it shares; (3) accesses to one line (64 B) of writable memory that handlers share,
//   atomics among them, happen one at a time.
// Threads: any number of threads may call run() at once, each with its own frame, and add() meanwhile. Time: none;
//   one cycle is one instruction.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>

#include "nic/hpu/core.hpp"
#include "nic/spin/handler_runner.hpp"

namespace spinloom::spin {

class ImageHandlers final : public HandlerRunner {
 public:
  static Result<std::unique_ptr<ImageHandlers>> create();

  // Returns the image number to put into a context.
  uint32_t add(hpu::Image image);
  [[nodiscard]] const hpu::Image& image(uint32_t number) const;
  HandlerOutcome run(const HandlerFrame& frame, HandlerCalls& calls) override;

 private:
  // The core on which one handler runs. While a handler waits for another rank, others run on cores of their own.
  struct Machine {
    explicit Machine(hpu::Core core_) : core(std::move(core_)) {}
    hpu::Core core;
    hpu::AddressSpace memory;
    std::vector<uint8_t> stack = std::vector<uint8_t>(limits::handler_stack_bytes);
  };
  ImageHandlers() = default;
  [[nodiscard]] static Result<std::unique_ptr<Machine>> make_machine();
  [[nodiscard]] HandlerOutcome run_on(Machine& machine, const hpu::Image& image, const HandlerFrame& frame,
                                      HandlerCalls& calls);
  // Executes the access to shared memory before which a handler stopped, and goes on to the next stop or branch.
  [[nodiscard]] hpu::Stop run_shared_access(Machine& machine, uint32_t address);

  mutable std::mutex pool_mutex_;  // guards the two fields below
  std::vector<std::unique_ptr<Machine>> idle_;  // machines on which no handler runs
  std::deque<hpu::Image> images_;  // addresses are stable
  std::array<std::mutex, 64> line_mutexes_;  // mutexes of lines of shared memory, by line number modulo 64
};

}  // namespace spinloom::spin
