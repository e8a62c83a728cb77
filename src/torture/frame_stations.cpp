// The stations of a run: frames that they send to the NIC, and answers that come back.
#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

constexpr Time answer_time{120};  // rounds that a sender waits for an acknowledgement at first

slmp::SenderConfig sender_config(Random& random) {
  slmp::SenderConfig config;
  config.window = static_cast<uint32_t>(1 + random.below(8));
  config.fixed_window = random.chance(1, 3);
  config.gap = Time{static_cast<int64_t>(random.below(4))};
  config.tries_max = 60;
  config.timeout_first = answer_time;
  config.timeout_min = answer_time;
  config.timeout_max = answer_time * 20;
  return config;
}

}  // namespace

void FrameRun::send_frame(uint32_t station, Head head, std::span<const uint8_t> payload) {
  head.id = static_cast<uint32_t>(frames_.size());
  frames_.push_back(frame_of(station, head, payload));
  link_.send(now_, {0, frames_.back()});
}

// Begins a message to a random site that takes messages and has room for it, if there is one.
void FrameRun::send_message() {
  std::vector<uint32_t> candidates;
  const uint64_t bytes = random_.below(config_.size_max + 1);
  for (const ContextRecord& record : contexts_) {
    if (record.kind == Kind::message && record.memory.size() - record.used >= bytes)
      candidates.push_back(record.id.value);
  }
  if (candidates.empty()) return;
  auto message = std::make_unique<Message>();
  message->number = static_cast<uint32_t>(messages_.size());
  message->station = static_cast<uint32_t>(1 + random_.below(config_.ranks - 1));
  message->context = candidates[random_.below(candidates.size())];
  ContextRecord& record = contexts_[message->context];
  message->place = record.used;
  record.used += bytes;
  message->bytes.resize(bytes);
  for (uint8_t& byte : message->bytes) byte = static_cast<uint8_t>(random_.next());
  if (random_.chance(1, 6)) message->conduct = static_cast<Conduct>(random_.below(conduct_count));
  if (message->conduct != Conduct::good) message->may_fail = true;
  const slmp::Segments segments{message->number, bytes, payload_bytes_, slmp::Mode::segment};
  message->sender = std::make_unique<slmp::Sender>(sender_config(random_), segments);
  messages_.push_back(std::move(message));
}

bool FrameRun::send_next(Message& message) {
  const auto packet = message.sender->next(now_);
  message.is_over = message.sender->done() || !message.sender->status();
  if (!message.sender->status() && !message.may_fail) {
    on_trouble(text("message ", message.number, " is given up: ", message.sender->status().error().message));
  }
  if (!packet) return false;
  Head head;
  head.context = static_cast<uint8_t>(message.context);
  head.flags = packet->header.has(slmp::eom) ? Head::last : 0;
  head.offset = packet->header.offset;
  head.message = message.number;
  head.conduct = message.conduct;
  head.write_options = static_cast<uint8_t>(random_.next());
  send_frame(message.station, head, FrameView(message.bytes).subspan(packet->offset, packet->length));
  return true;
}

// Sends a frame that belongs to no message: random bytes of any length, some with a VLAN tag, or a frame that is cut in
// its head.
void FrameRun::send_stray() {
  const uint64_t longest = random_.chance(1, 4) ? largest_frame_ + 8 : 80;
  FrameBytes frame(random_.below(longest + 1));
  for (uint8_t& byte : frame) byte = static_cast<uint8_t>(random_.next());
  ContextRecord& record = contexts_[random_.below(contexts_.size())];
  if (record.kind != Kind::message && random_.chance(1, 2)) {
    Head head;
    head.context = static_cast<uint8_t>(record.id.value);
    frame = frame_of(1, head, {});
    frame.resize(head_offset + 3 + random_.below(sizeof head - 3));  // the rest has the context's number
    if (record.kind == Kind::ring) strays_in_ring_ = true;
  } else if (frame.size() >= 14 && random_.chance(1, 2)) {
    frame[12] = 0x81, frame[13] = 0;  // a VLAN tag
  }
  link_.send(now_, {0, frame});
}

void FrameRun::on_station_frame(const FrameBytes& frame) {
  const auto head = head_of(frame);
  if (!head || (head->flags & Head::answer) == 0) return;  // no answer of a handler
  if (head->id >= frames_.size() || frame != answer_to(frames_[head->id])) {
    return on_trouble(text("a station gets an answer that is not that to frame ", head->id));
  }
  if (Message* const message = message_of(head->message))
    on_acknowledgement(*message, *head, frame.size() - payload_offset);
}

// Checks that the acknowledged bytes are in host memory, and passes the acknowledgement to the sender.
void FrameRun::on_acknowledgement(Message& message, const Head& head, size_t bytes) {
  const uint8_t* const landed = contexts_[message.context].memory.data() + message.place + head.offset;
  if (!std::equal(landed, landed + bytes, message.bytes.begin() + head.offset)) {
    return on_trouble(text("message ", message.number, ": ", bytes, " B from ", head.offset,
                           " on were acknowledged, but are not in host memory"));
  }
  const uint16_t flags = static_cast<uint16_t>(slmp::syn | ((head.flags & Head::last) != 0 ? slmp::eom : 0));
  message.sender->on_acknowledgement(now_, slmp::acknowledgement({flags, head.message, head.offset}));
  message.is_over = message.sender->done();
}

}  // namespace spinloom::torture
