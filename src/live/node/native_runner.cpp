#include "live/node/native_runner.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <csetjmp>

#include "base/log.hpp"
#include "live/node/host_counter.hpp"
#include "nic/spin/handler_abi.hpp"
#include "spinloom/frame.h"
#include "spinloom/handler.h"

namespace spinloom::live {

struct NativeRunner::Function {
  void* address = nullptr;
  void (*bind)(spl_hpu*) = nullptr;
  uint32_t image = 0;
  std::string name;  // the file and the symbol, for messages
  mutable std::atomic<bool> is_reported{false};
};

namespace {

using spin::HandlerFrame;
using spin::HandlerOutcome;

// One handler on its thread, and the state that its object sees.
struct Running : spl_hpu {
  const HandlerFrame* handler_frame = nullptr;
  spin::HandlerCalls* calls = nullptr;
  void (*bind)(spl_hpu*) = nullptr;
  uintptr_t stack_top = 0;
  uint64_t in_calls = 0;  // host cycles
  std::jmp_buf stop{};
};

// The memory that a handler's pointers may name: the memory that it would have on an HPU.
class PointedMemory final : public spin::CallMemory {
 public:
  PointedMemory(const Running& running, uintptr_t stack_bottom) : running_(running), stack_bottom_(stack_bottom) {}

  [[nodiscard]] bool is_nonnull(unsigned word) const override { return running_.pointers[word] != nullptr; }
  [[nodiscard]] Range range(unsigned word, uint64_t length) const override {
    auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(running_.pointers[word]));
    const spin::LocalMemory memory = kind_of(reinterpret_cast<uintptr_t>(bytes), length);
    if (memory == spin::LocalMemory::outside && length > 0) return {};
    return {bytes, memory};
  }
  // Returns a byte of a debug line's text, which may also lie among the object's constants: nothing is checked but
  // null.
  [[nodiscard]] const uint8_t* byte(unsigned word, uint64_t index) const override {
    return is_nonnull(word) ? static_cast<const uint8_t*>(running_.pointers[word]) + index : nullptr;
  }

 private:
  [[nodiscard]] spin::LocalMemory kind_of(uintptr_t address, uint64_t length) const {
    const HandlerFrame& frame = *running_.handler_frame;
    const auto in = [address, length](uintptr_t start, uint64_t size) {
      return address >= start && address - start <= size && length <= size - (address - start);
    };
    const auto in_span = [&in](const auto& span) { return in(reinterpret_cast<uintptr_t>(span.data()), span.size()); };
    if (in_span(frame.packet)) return spin::LocalMemory::packet;
    if (in_span(frame.constants)) return spin::LocalMemory::constants;
    if (in_span(frame.state)) return spin::LocalMemory::state;
    if (in(stack_bottom_, running_.stack_top - stack_bottom_)) return spin::LocalMemory::stack;
    return spin::LocalMemory::outside;
  }

  const Running& running_;
  uintptr_t stack_bottom_;
};

uint32_t issue(spl_hpu* hpu) {
  auto* const running = static_cast<Running*>(hpu);
  const uint64_t since = host_cycles();
  spin::CallWords words{};
  std::copy(std::begin(running->words), std::end(running->words), words.begin());
  // The handler's frames lie between this frame and that of enter().
  const auto bottom = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto answer = running->calls->call(spin::decode_call(words, PointedMemory(*running, bottom)));
  // NOLINTNEXTLINE(cert-err52-cpp): between here and run() there are frames of C only
  if (!answer) std::longjmp(running->stop, 1);
  running->bind(running);  // another handler may have run on this thread
  running->in_calls += host_cycles() - since;
  return *answer;
}

ptl_process_t process_of(spin::Rank rank) {
  ptl_process_t process{};
  process.rank = rank.value;
  return process;
}

__attribute__((noinline)) uint32_t enter(void* function, Running& running) {
  running.stack_top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const HandlerFrame& frame = *running.handler_frame;
  const spin::Her& her = frame.her;
  void* const state = frame.state.data();
  int code = 0;
  switch (her.kind) {
    case spin::HandlerKind::header: {
      ptl_header_t header{};
      header.type = static_cast<ptl_request_type_t>(her.request);
      header.length = her.message_length;
      header.target_id = process_of(her.target);
      header.source_id = process_of(her.source);
      header.match_bits = her.match_bits;
      header.offset = her.entry_offset;
      header.hdr_data = her.hdr_data;
      header.user_hdr = frame.packet.data();
      header.user_hdr_length = static_cast<uint32_t>(her.payload.length);
      code = reinterpret_cast<int (*)(ptl_header_t, void*)>(function)(header, state);
      break;
    }
    case spin::HandlerKind::payload: {
      const ptl_payload_t payload{her.payload.length, her.offset, frame.packet.data(), her.entry_offset};
      code = reinterpret_cast<int (*)(ptl_payload_t, void*)>(function)(payload, state);
      break;
    }
    case spin::HandlerKind::completion:
      code = reinterpret_cast<int (*)(int, bool, void*)>(function)(static_cast<int>(her.dropped_bytes),
                                                                   her.flow_control, state);
      break;
    case spin::HandlerKind::mail: {
      const auto [argument, value, context] = spin::mail_of(her);
      code = reinterpret_cast<int (*)(spl_mail_t, void*)>(function)({argument, value, context}, state);
      break;
    }
    case spin::HandlerKind::initialise: code = reinterpret_cast<int (*)(void*)>(function)(state); break;
  }
  return static_cast<uint32_t>(code);
}

template <class Pointer>
Pointer symbol_of(void* handle, const char* name) {
  return reinterpret_cast<Pointer>(dlsym(handle, name));
}

}  // namespace

NativeRunner::NativeRunner(uint32_t first_image) : first_image_(first_image) {}
NativeRunner::~NativeRunner() = default;  // objects stay loaded: a handler that never returned may still run in one

Result<uint32_t> NativeRunner::load(const std::string& path) {
  const std::lock_guard lock(loading_);
  // A name without a slash would be searched for among the system's libraries.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(Code::environment, "native handlers: ", dlerror());
  for (uint32_t image = 0; image < objects_.size(); ++image) {
    if (objects_[image].handle != handle) continue;
    dlclose(handle);
    return first_image_ + image;
  }
  const auto* const abi = symbol_of<const uint32_t*>(handle, "spl_hpu_abi");
  const auto bind = symbol_of<void (*)(spl_hpu*)>(handle, "spl_hpu_bind");
  if (abi == nullptr || bind == nullptr || *abi != SPL_HPU_ABI) {
    const std::string found = abi == nullptr ? "has none" : text("has ", *abi);
    dlclose(handle);
    return fail(Code::invalid, path, " is not an object of native handlers of version ", SPL_HPU_ABI, " (it ", found,
                "): build it with spinloom handler build --native");
  }
  objects_.push_back({path, handle, bind});
  return first_image_ + static_cast<uint32_t>(objects_.size() - 1);
}

Result<uint32_t> NativeRunner::entry(uint32_t image, const std::string& symbol) {
  const std::lock_guard lock(loading_);
  if (image < first_image_ || image - first_image_ >= objects_.size()) {
    return fail(Code::invalid, "there is no native image ", image);
  }
  const Object& object = objects_[image - first_image_];
  void* const address = dlsym(object.handle, symbol.c_str());
  if (address == nullptr) return fail(Code::invalid, object.path, " has no function ", symbol);
  for (uint32_t number = 0; number < functions_.size(); ++number) {
    if (functions_[number]->address == address && functions_[number]->image == image) return number;
  }
  auto made = std::make_unique<Function>();
  made->address = address;
  made->bind = object.bind;
  made->image = image;
  made->name = object.path + ": " + symbol;
  functions_.push_back(std::move(made));
  auto table = std::make_unique<Functions>();
  for (const auto& function : functions_) table->push_back(function.get());
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
  return static_cast<uint32_t>(functions_.size() - 1);
}

spin::HandlerOutcome NativeRunner::run(const HandlerFrame& frame, spin::HandlerCalls& calls) {
  const auto entry = frame.context->entry_of(frame.her.kind);
  SPL_ASSERT(entry.has_value(), "HER ", frame.her.id, " has no handler");
  const Functions* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr || *entry >= table->size() || (*table)[*entry]->image != frame.context->image) {
    return {spin::HandlerEnd::fault, 0};
  }
  const Function& function = *(*table)[*entry];
  Running running{};
  running.constants = frame.constants.data();
  running.hpu = frame.her.hpu.value;
  running.vhpu = frame.her.vhpu.value;
  running.hpu_count = frame.hpu_count;
  running.frame = const_cast<uint8_t*>(frame.packet.data());
  running.frame_bytes = static_cast<uint32_t>(frame.packet.size());
  running.message = frame.her.message;
  running.rule_set = frame.her.rule_set;
  running.flags = frame.her.flags;
  running.issue = issue;
  running.cycles = host_cycles;
  running.handler_frame = &frame;
  running.calls = &calls;
  running.bind = function.bind;
  function.bind(&running);
  const uint64_t since = host_cycles();
  // NOLINTNEXTLINE(cert-err52-cpp): a handler is C, and a call that stops it does not come back
  if (setjmp(running.stop) != 0) return {spin::HandlerEnd::fault, 0};
  const uint32_t code = enter(function.address, running);
  const uint64_t cycles = host_cycles() - since - running.in_calls;
  if (cycles > frame.context->budget_cycles) report_overrun(function, cycles, frame.context->budget_cycles);
  return {spin::HandlerEnd::returned, code, cycles};
}

void NativeRunner::report_overrun(const Function& function, uint64_t cycles, uint64_t budget) {
  overruns_.fetch_add(1, std::memory_order_relaxed);
  if (function.is_reported.exchange(true)) return;
  log::emit(log::Level::warning, "live",
            text("a native handler took ", cycles, " host cycles, its budget is ", budget,
                 "; native handlers are trusted and not stopped (", function.name, ")"));
}

}  // namespace spinloom::live
