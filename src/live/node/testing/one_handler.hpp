// OneHandler - one handler of an image or object, run on memory that the test gives, by itself or in the middle of
// another.
//
// Contract: run() runs it on a packet, a state and constants; `calls` answers its calls. Answers lets every call
//   succeed and keeps the bytes of puts and frames. Interrupted calls a function of the test before the sandbox's
//   access number `at` to shared memory.
// Threads: run() on several threads at once. Time: none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "live/node/handler_library.hpp"
#include "live/node/testing/frame_bytes.hpp"
#include "spinloom/frame.h"

namespace spinloom::live {

class OneHandler final {
 public:
  OneHandler(const std::string& path, spin::HandlerKind kind)
      : library_(HandlerLibrary::create().value()), kind_(kind) {
    context_.image = library_->load(path).value();
    const bool header = kind == spin::HandlerKind::header;
    std::optional<uint32_t>& entry = header ? context_.header_entry : context_.payload_entry;
    entry = library_->entry(context_.image, header ? "header_handler" : "payload_handler").value();
  }

  template <class Constants>
  spin::HandlerOutcome run(const Bytes& packet, Bytes& state, const Constants& constants, spin::HandlerCalls& calls) {
    Bytes mine = packet;  // a frame may be changed in place
    spin::HandlerFrame frame;
    frame.her.id = spin::HerId{0};
    frame.her.kind = kind_;
    frame.her.hpu = spin::HpuId{0};
    frame.her.vhpu = spin::VhpuId{0};
    frame.her.source = spin::Rank{6};
    frame.her.hdr_data = 99;
    frame.her.writes_packet = kind_ == spin::HandlerKind::payload;
    frame.her.payload.bytes = mine.data();
    frame.her.payload.length = mine.size();
    frame.context = &context_;
    frame.packet = mine;
    frame.constants = {reinterpret_cast<const uint8_t*>(&constants), sizeof constants};
    frame.state = state;
    return library_->run(frame, calls);
  }

 private:
  std::shared_ptr<HandlerLibrary> library_;
  spin::HandlerKind kind_;
  spin::Context context_;
};

class Answers : public spin::HandlerCalls {
 public:
  std::optional<uint32_t> call(const spin::HandlerCall& given) override {
    if (given.call == SPL_CALL_PUT_FROM_DEVICE || given.call == SPL_CALL_SEND_FRAME) {
      last.assign(given.local, given.local + given.length);
      sent.push_back(last);
      last_call = given;
    }
    return uint32_t{SUCCESS};
  }
  Bytes last;
  Frames sent;
  spin::HandlerCall last_call;  // the last call of those that sent
};

class Interrupted final : public Answers {
 public:
  Interrupted(int at, std::function<void()> other) : at_(at), other_(std::move(other)) {}
  [[nodiscard]] bool given_up() const override {
    if (accesses_++ == at_) other_();
    return false;
  }
  std::optional<uint32_t> call(const spin::HandlerCall& given) override {
    if (given.call == SPL_CALL_YIELD) return std::nullopt;  // it waits for the interrupted one, which cannot go on
    return Answers::call(given);
  }
  [[nodiscard]] bool was_interrupted() const { return accesses_ > at_; }

 private:
  mutable int accesses_ = 0;
  int at_;
  std::function<void()> other_;
};

}  // namespace spinloom::live
