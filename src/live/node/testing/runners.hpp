// Test runners - the scenario handlers as native objects, and a comparison of native handlers with their images.
//
// Contract: NativeObjects takes NAME.so of a folder. RecordingNic performs calls at once, on memory of its own, and
//   writes down each with the bytes it names. compare() runs a handler of NAME.so and of NAME.elf on the same frame,
//   each on memory of its own.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "live/node/handler_library.hpp"
#include "portals/interface/host_fetch.hpp"
#include "portals/testbed/loopback_testbed.hpp"
#include "spinloom/handler.h"

namespace spinloom::live {

class NativeObjects final : public testbed::ScenarioHandlers {
 public:
  explicit NativeObjects(std::string folder) : folder_(std::move(folder)) {}

  [[nodiscard]] Result<testbed::TestHandlers> find(std::string_view name) override {
    testbed::TestHandlers found;
    SPL_ASSIGN(found.image, native_.load(folder_ + "/" + std::string(name) + ".so"));
    if (const auto entry = native_.entry(found.image, "payload_handler")) found.payload_entry = *entry;
    if (const auto entry = native_.entry(found.image, "completion_handler")) found.completion_entry = *entry;
    return found;
  }
  [[nodiscard]] spin::HandlerRunner& runner() override { return native_; }

 private:
  std::string folder_;
  NativeRunner native_;
};

class RecordingNic final : public spin::HandlerCalls {
 public:
  explicit RecordingNic(uint64_t host_bytes) : host(host_bytes) {
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint8_t>(i * 31 + 7);
  }

  std::optional<uint32_t> call(const nic::HandlerCall& given) override {
    write_down(given);
    switch (given.call) {
      case SPL_CALL_DMA_TO_HOST_NB:
      case SPL_CALL_DMA_TO_HOST_B:
        if (!inside(given) || !reads(given)) return refused(given);
        if (given.length > 0) std::memcpy(host.data() + given.offset, given.local, given.length);
        return handle(given);
      case SPL_CALL_DMA_FROM_HOST_NB:
      case SPL_CALL_DMA_FROM_HOST_B:
        if (!inside(given) || given.local == nullptr) return refused(given);
        std::memcpy(given.local, host.data() + given.offset, given.length);
        return handle(given);
      case SPL_CALL_GET_FROM_DEVICE:
      case SPL_CALL_FETCH_ATOMIC_FROM_DEVICE:
        if (given.local == nullptr) return uint32_t{SEGV};
        for (uint64_t i = 0; i < given.length; ++i) given.local[i] = static_cast<uint8_t>(i + given.match_bits);
        return uint32_t{SUCCESS};
      case SPL_CALL_HPU_CAS:
      case SPL_CALL_HPU_FADD: {
        nic::LocalAtomic atomic;
        atomic.kind = given.call == SPL_CALL_HPU_CAS ? nic::AtomicKind::compare_swap : nic::AtomicKind::fetch_add;
        atomic.local = given.local;
        atomic.compare = given.compare;
        atomic.operand = given.operand;
        atomic.before = given.before;
        return given.local == nullptr ? uint32_t{SEGV} : portals::perform(atomic);
      }
      case SPL_CALL_CT_GET:
        if (given.local == nullptr) return uint32_t{SEGV};
        std::memset(given.local, 3, 16);
        return uint32_t{SUCCESS};
      case SPL_CALL_DMA_CAS_NB:
      case SPL_CALL_DMA_CAS_B:
      case SPL_CALL_DMA_FADD_NB:
      case SPL_CALL_DMA_FADD_B: {
        if (given.local == nullptr || given.offset + given.width > host.size()) return refused(given);
        nic::DmaAtomic atomic;
        atomic.kind = given.call <= SPL_CALL_DMA_CAS_B ? nic::AtomicKind::compare_swap : nic::AtomicKind::fetch_add;
        atomic.host = host.data() + given.offset;
        atomic.width = given.width;
        atomic.compare = given.compare;
        atomic.operand = given.operand;
        atomic.before = given.local;
        (void)portals::perform(atomic);
        return handle(given);
      }
      case SPL_CALL_DMA_TEST: return 1u;
      case 0xff: return std::nullopt;
      default: return uint32_t{SUCCESS};
    }
  }

  std::vector<uint8_t> host;
  std::vector<std::string> lines;

 private:
  void write_down(const nic::HandlerCall& given) {
    std::string line = text("call ", given.call, " options ", given.options, " memory ", int(given.local_memory),
                            " offset ", given.offset, " length ", given.length, " handle ", given.handle, " counts ",
                            given.success, " ", given.failure, " compare ", given.compare, " operand ", given.operand,
                            " width ", given.width, " before ", int(given.before_memory), " target ", given.target,
                            " bits ", given.match_bits, " remote ", given.remote_offset, " data ", given.hdr_data,
                            " user ", given.user_ptr, " atomic ", int(given.atomic), " of ", int(given.datatype));
    if (reads(given) && given.length > 0)
      line += " bytes " + std::string(reinterpret_cast<char*>(given.local), given.length);
    lines.push_back(std::move(line));
  }
  // True if the call reads its bytes. The bytes that a get will fill have no meaning yet.
  [[nodiscard]] static bool reads(const nic::HandlerCall& given) {
    const bool fills = given.call == SPL_CALL_GET_FROM_DEVICE || given.call == SPL_CALL_DMA_FROM_HOST_B ||
                       given.call == SPL_CALL_DMA_FROM_HOST_NB;
    return !fills && !nic::is_from_host(given.call) && (given.local != nullptr || given.length == 0);
  }
  [[nodiscard]] bool inside(const nic::HandlerCall& given) const {
    return given.offset <= host.size() && given.length <= host.size() - given.offset;
  }
  [[nodiscard]] static uint32_t refused(const nic::HandlerCall& given) {
    return blocks(given) ? uint32_t{SEGV} : UINT32_MAX;
  }
  [[nodiscard]] static uint32_t handle(const nic::HandlerCall& given) {
    return blocks(given) ? uint32_t{SUCCESS} : 17u;
  }
  [[nodiscard]] static bool blocks(const nic::HandlerCall& given) {
    return given.call == SPL_CALL_DMA_TO_HOST_B || given.call == SPL_CALL_DMA_FROM_HOST_B ||
           given.call == SPL_CALL_DMA_CAS_B || given.call == SPL_CALL_DMA_FADD_B;
  }
};

// The arguments of one handler: frame and memory.
struct Given {
  explicit Given(nic::HandlerKind kind) {
    for (size_t i = 0; i < packet.size(); ++i) packet[i] = static_cast<uint8_t>(i + 40);
    her.kind = kind;
    her.id = nic::HerId{0};
    her.hpu = nic::HpuId{2};
    her.vhpu = nic::VhpuId{77};
    her.offset = 640;
    her.entry_offset = 1000;
    her.message_length = 5000;
    her.request = nic::RequestType::get;
    her.target = nic::Rank{4};
    her.source = nic::Rank{6};
    her.match_bits = 1ull << 50;
    her.hdr_data = 1ull << 51;
    her.dropped_bytes = 321;
    her.flow_control = true;
  }
  void set_entries(uint32_t image, uint32_t entry) {
    context.image = image;
    context.header_entry = context.payload_entry = context.completion_entry = entry;
  }
  // A frame that refers to the members.
  [[nodiscard]] spin::HandlerFrame frame() {
    spin::HandlerFrame made;
    made.her = her;
    made.her.payload.bytes = packet.data();
    made.her.payload.length = packet.size();
    made.context = &context;
    made.packet = packet;
    made.constants = constants;
    made.state = state;
    made.hpu_count = 5;
    return made;
  }

  nic::Her her;
  nic::Context context;
  std::vector<uint8_t> packet = std::vector<uint8_t>(96);
  std::vector<uint8_t> constants = std::vector<uint8_t>(16, 9);
  std::vector<uint8_t> state = std::vector<uint8_t>(256);
  uint64_t host_bytes = 4096;
  std::vector<uint8_t> host;  // initial bytes; empty: those that RecordingNic makes
};

// The results of one handler.
struct Done {
  spin::HandlerOutcome outcome;
  std::vector<std::string> calls;
  std::vector<uint8_t> host;
  std::vector<uint8_t> packet;
  std::vector<uint8_t> state;

  // Compares without cycles, which differ between runners.
  friend bool operator==(const Done& a, const Done& b) {
    return a.outcome.end == b.outcome.end && a.outcome.code == b.outcome.code && a.calls == b.calls &&
           a.host == b.host && a.packet == b.packet && a.state == b.state;
  }
  friend void PrintTo(const Done& done, std::ostream* out) {
    *out << "end " << int(done.outcome.end) << " code " << done.outcome.code << ", " << done.calls.size() << " calls";
    for (const std::string& line : done.calls) *out << "\n  " << line.substr(0, 300);
  }
};

inline Done run_once(spin::HandlerRunner& runner, Given given) {
  RecordingNic nic(given.host_bytes);
  if (!given.host.empty()) nic.host = given.host;
  Done done;
  done.outcome = runner.run(given.frame(), nic);
  done.calls = std::move(nic.lines);
  done.host = std::move(nic.host);
  done.packet = std::move(given.packet);
  done.state = std::move(given.state);
  return done;
}

struct Compared {
  Done native;
  Done image;
};

inline Compared compare(const std::string& folder, const std::string& name, const Given& given) {
  static const auto library = HandlerLibrary::create().value();
  const char* const symbols[] = {"header_handler", "payload_handler", "completion_handler"};
  const auto run_as = [&](const char* suffix) {
    const auto image = library->load(folder + "/" + name + suffix);
    SPL_ASSERT(image.ok(), image.error().message);
    const auto entry = library->entry(*image, symbols[static_cast<size_t>(given.her.kind)]);
    SPL_ASSERT(entry.ok(), entry.error().message);
    Given mine = given;
    mine.set_entries(*image, *entry);
    return run_once(*library, std::move(mine));
  };
  return {run_as(".so"), run_as(".elf")};
}

}  // namespace spinloom::live
