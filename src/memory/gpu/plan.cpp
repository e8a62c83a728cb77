#include "memory/gpu/plan.hpp"

#include <atomic>

#include "memory/gpu/device_state.hpp"
#include "memory/gpu/kernel_brief.h"
#include "memory/gpu/program_body.hpp"

namespace spinloom::gpu {
namespace {

std::atomic<int64_t> launch_counter{0};

}  // namespace

struct Plan::Resident {
  Memory arena;
  void* function = nullptr;
};

int64_t launch_count() { return launch_counter.load(std::memory_order_relaxed); }

Result<Plan> Plan::make(const Device& device, std::span<const Message> messages, const ProgramOptions& options) {
  SPL_ASSIGN(Program program, Program::make(messages, options));
  return make(device, std::move(program));
}

Result<Plan> Plan::make(const Device& device, Program program) {
  const Program::Body& body = program.body();
  auto resident = std::make_shared<Resident>();
  if (body.tiles > 0) {
    SPL_ASSIGN(resident->function, device.state().kernel(body.brief ? Program::Body::brief_entry : body.entry()));
    const size_t bytes = body.arena.size() * sizeof(uint64_t);
    SPL_ASSIGN(resident->arena, Memory::device(device, bytes));
    const Device::State& state = device.state();
    const ContextGuard guard(*state.driver, state.context);
    SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
    SPL_CUDA(*state.driver,
             state.driver->copy(reinterpret_cast<DeviceAddress>(resident->arena.data()),
                                reinterpret_cast<DeviceAddress>(body.arena.data()), bytes),
             "to upload a plan of ", bytes, " bytes to device ", state.ordinal);
  }
  return Plan(device, std::move(program), std::move(resident));
}

Status Plan::launch(std::span<const Ends> ends, Stream stream) const {
  const Program::Body& body = program_.body();
  if (body.tiles == 0) return {};
  if (ends.size() < body.ends_count) {
    return fail(Code::invalid, ends.size(), " pairs of addresses for a set that names ", body.ends_count);
  }
  for (uint32_t i = 0; i < body.ends_count; ++i) {
    if (ends[i].from == nullptr || ends[i].to == nullptr) {
      return fail(Code::invalid, "pair of addresses ", i, " has a null pointer");
    }
  }
  kernel::Arguments arguments = body.arguments(resident_->arena.data());
  kernel::OneEnds one_ends;
  kernel::ManyEnds many_ends;
  void* ends_parameter = &one_ends;
  if (body.ends_count == 1) {
    one_ends.ends[0] = {static_cast<const kernel::u8*>(ends[0].from), static_cast<kernel::u8*>(ends[0].to)};
  } else {
    for (uint32_t i = 0; i < body.ends_count; ++i) {
      many_ends.ends[i] = {static_cast<const kernel::u8*>(ends[i].from), static_cast<kernel::u8*>(ends[i].to)};
    }
    ends_parameter = &many_ends;
  }
  const Device::State& state = device_.state();
  // Kernels of many parts take the first two parameters only.
  void* parameters[] = {&arguments, ends_parameter, const_cast<kernel::Part*>(body.parts.data())};
  void* function = resident_->function;
  uint32_t blocks = body.tiles;
  if (body.brief) {
    if (kernel::width_of(*body.brief, one_ends.ends[0]) >= body.parts[0].warp_below) {
      parameters[2] = const_cast<kernel::Brief*>(&*body.brief);
      blocks = body.brief_blocks();
    } else {
      // The blocks are long and lie at addresses that are no multiples of a word, so that warps move them.
      SPL_ASSIGN(function, state.kernel(body.entry()));
    }
  }
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  SPL_CUDA(*state.driver,
           state.driver->launch(function, blocks, 1, 1, kernel::threads, 1, 1, 0, stream, parameters, nullptr),
           "to launch ", program_.kernel_name(), " of ", blocks, " blocks of threads on device ", state.ordinal);
  launch_counter.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<Event> Plan::begin(std::span<const Ends> ends, Stream stream) const {
  SPL_ASSIGN(Event mark, Event::make(device_));
  SPL_TRY(launch(ends, stream));
  SPL_TRY(mark.record(stream));
  return mark;
}

Status Plan::check(std::span<const Ends> ends) const {
  for (const Ends& pair : ends) {
    for (const void* const pointer : {pair.from, static_cast<const void*>(pair.to)}) {
      SPL_ASSIGN(const Pointer found, inspect(pointer));
      if (found.kind == PointerKind::host) {
        return fail(
            Code::invalid, "address ", pointer,
            " is host memory that the device cannot reach, or memory of a device that was freed: give memory of "
            "device ",
            device_.ordinal(), ", or pinned host memory");
      }
      if (found.kind == PointerKind::device && found.ordinal != device_.ordinal()) {
        return fail(Code::invalid, "address ", pointer, " is memory of device ", found.ordinal,
                    ", the plan is for device ", device_.ordinal(), ": make a plan there");
      }
    }
  }
  return {};
}

}  // namespace spinloom::gpu
