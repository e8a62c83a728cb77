#include "portals/testbed/loopback_testbed.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "spinloom/handler.h"

namespace spinloom::testbed {
namespace {

constexpr spin::HandlerOutcome returned(uint32_t code) { return {nic::HandlerEnd::returned, code}; }

spin::HandlerOutcome scatter(spin::NativeHandler& handler) {
  const spin::HandlerFrame& frame = handler.frame();
  uint32_t words[2];
  if (frame.constants.size() < sizeof words) return {nic::HandlerEnd::segv, 0};
  std::memcpy(words, frame.constants.data(), sizeof words);
  const uint64_t block = words[0];
  const uint64_t stride = words[1];
  for (uint64_t done = 0; done < frame.packet.size();) {
    const uint64_t position = frame.her.offset + done;
    const uint64_t piece = std::min(block - position % block, frame.packet.size() - done);
    handler.dma_to_host(frame.packet.data() + done, position / block * stride + position % block, piece,
                        PTL_DMA_NO_EVENT);
    done += piece;
  }
  return returned(SUCCESS);
}

spin::HandlerOutcome gather(spin::NativeHandler& handler) {
  const spin::HandlerFrame& frame = handler.frame();
  uint32_t words[2];
  if (frame.constants.size() < sizeof words) return {nic::HandlerEnd::segv, 0};
  std::memcpy(words, frame.constants.data(), sizeof words);
  const uint64_t block = words[0];
  const uint64_t stride = words[1];
  for (uint64_t done = 0; done < frame.packet.size();) {
    const uint64_t position = frame.her.offset + done;
    const uint64_t piece = std::min(block - position % block, frame.packet.size() - done);
    handler.dma_into_packet(position / block * stride + position % block, done, piece);
    done += piece;
  }
  return returned(SUCCESS);
}

spin::HandlerOutcome tell_completion(spin::NativeHandler& handler) {
  handler.dma_to_host(nullptr, 0, 0, PTL_ME_HOST_MEM);
  return returned(SUCCESS);
}

// A call on memory of the handler itself.
uint32_t ask(spin::NativeHandler& handler, uint32_t number, uint8_t* local, uint64_t length, uint64_t bits,
             uint64_t offset) {
  uint32_t words[2];
  std::memcpy(words, handler.frame().constants.data(), sizeof words);
  nic::HandlerCall call;
  call.call = number;
  call.local = local;
  call.local_memory = nic::LocalMemory::stack;
  call.length = length;
  call.target = words[0];
  call.match_bits = words[1] + bits;
  call.remote_offset = offset;
  call.atomic = nic::AtomicOperation::sum;
  call.datatype = nic::Datatype::uint64;
  return handler.call(call);
}

spin::HandlerOutcome exchange(spin::NativeHandler& handler) {
  const spin::HandlerFrame& frame = handler.frame();
  std::vector<uint8_t> theirs(frame.packet.size());
  uint64_t one = 1;
  const uint64_t at = frame.her.offset;
  if (ask(handler, SPL_CALL_GET_FROM_DEVICE, theirs.data(), theirs.size(), 0, at) != SUCCESS) return returned(FAIL);
  for (size_t i = 0; i < theirs.size(); ++i) theirs[i] ^= frame.packet[i];
  nic::HandlerCall write;
  write.call = SPL_CALL_DMA_TO_HOST_B;
  write.options = PTL_DMA_NO_EVENT;
  write.local = theirs.data();
  write.local_memory = nic::LocalMemory::stack;
  write.offset = at;
  write.length = theirs.size();
  if (handler.call(write) != SUCCESS) return returned(FAIL);
  auto* const word = reinterpret_cast<uint8_t*>(&one);
  if (ask(handler, SPL_CALL_ATOMIC_FROM_DEVICE, word, sizeof one, 1, 0) != SUCCESS) return returned(FAIL);
  if (ask(handler, SPL_CALL_FETCH_ATOMIC_FROM_DEVICE, word, sizeof one, 1, 8) != SUCCESS) return returned(FAIL);
  return returned(one > 1000 ? FAIL : SUCCESS);
}

spin::HandlerOutcome drop(spin::NativeHandler&) { return returned(DROP); }

spin::HandlerOutcome fail_later(spin::NativeHandler& handler) {
  return returned(handler.frame().her.offset > 0 ? FAIL : SUCCESS);
}

spin::HandlerOutcome unknown_call(spin::NativeHandler& handler) {
  nic::HandlerCall call;
  call.call = 0xff;
  handler.call(call);
  return returned(SUCCESS);
}

}  // namespace

NativeScenarioHandlers::NativeScenarioHandlers() {
  const uint32_t telling = runner_.add(tell_completion);
  named_handlers_ = {
      {"scatter", {0, runner_.add(scatter), telling}},      {"gather", {0, runner_.add(gather), std::nullopt}},
      {"drop", {0, runner_.add(drop), std::nullopt}},       {"exchange", {0, runner_.add(exchange), std::nullopt}},
      {"fail", {0, runner_.add(fail_later), std::nullopt}}, {"fault", {0, runner_.add(unknown_call), telling}}};
}

Result<TestHandlers> NativeScenarioHandlers::find(std::string_view name) {
  for (const NamedHandlers& named : named_handlers_) {
    if (named.name == name) return named.handlers;
  }
  return fail(Code::unsupported, "there are no scenario handlers called ", name);
}

Result<ScenarioImage> load_scenario_image(const std::string& folder, std::string_view name) {
  const std::string path = folder + "/" + std::string(name) + ".elf";
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::environment, "scenario handlers: cannot read ", path);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  SPL_ASSIGN(hpu::Image image, hpu::load_elf(bytes));
  TestHandlers handlers;
  if (const auto entry = image.address_of("payload_handler")) handlers.payload_entry = *entry;
  if (const auto entry = image.address_of("completion_handler")) handlers.completion_entry = *entry;
  return ScenarioImage{std::move(image), handlers};
}

Result<std::unique_ptr<ImageScenarioHandlers>> ImageScenarioHandlers::create(const std::string& folder) {
  auto made = std::make_unique<ImageScenarioHandlers>();
  made->folder_ = folder;
  SPL_ASSIGN(made->runner_, spin::ImageHandlers::create());
  return made;
}

Result<TestHandlers> ImageScenarioHandlers::find(std::string_view name) {
  SPL_ASSIGN(ScenarioImage loaded, load_scenario_image(folder_, name));
  loaded.handlers.image = runner_->add(std::move(loaded.image));
  return loaded.handlers;
}

Result<std::unique_ptr<LoopbackTestbed>> LoopbackTestbed::create(uint32_t ranks, const nic::NicLimits& limits,
                                                                 std::optional<uint64_t> racy_seed,
                                                                 std::unique_ptr<ScenarioHandlers> handlers) {
  std::unique_ptr<LoopbackTestbed> created(new LoopbackTestbed);
  created->handlers_ = std::move(handlers);
  LoopbackOptions options;
  options.ranks = ranks;
  options.nic = limits;
  options.handlers = &created->handlers_->runner();
  options.racy_seed = racy_seed;
  SPL_ASSIGN(created->loopback_, Loopback::create(options));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    created->interfaces_.push_back(std::make_unique<portals::Interface>(created->loopback_->port(rank)));
  }
  return created;
}

}  // namespace spinloom::testbed
