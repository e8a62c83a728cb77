#include "portals/model/state.hpp"

#include <type_traits>

namespace spinloom::model {
namespace {

class KeyWriter {
 public:
  template <class... Numbers>
  void add(Numbers... numbers) {
    (add_one(static_cast<uint16_t>(numbers)), ...);
  }
  void add(const std::vector<uint8_t>& bytes) {
    add(bytes.size());
    key_.append(bytes.begin(), bytes.end());
  }
  void add(const std::vector<uint16_t>& numbers) {
    add(numbers.size());
    for (const uint16_t number : numbers) add(number);
  }
  void add(const Event& event) {
    add(event.kind, event.fail, event.list, event.atomic, event.initiator, event.user, event.match_bits,
        event.requested, event.moved, event.remote_offset, event.start, event.hdr_data, event.user_ptr);
  }
  void add(const Returned& returned) {
    add(returned.code, returned.count.success, returned.count.failure, returned.event.has_value());
    if (returned.event) add(*returned.event);
  }
  void add(const Queue& queue) {
    add(queue.posted, queue.taken, queue.events.size());
    for (const Event& event : queue.events) add(event);
  }
  void add(const Header& header) {
    add(header.name.rank, header.name.place, header.entry, header.offset, header.moved);
  }
  void add(const Process& process);
  void add(const Message& message);
  [[nodiscard]] std::string take() { return std::move(key_); }

 private:
  void add_one(uint16_t number) {
    if (number < 0xf0) {
      key_.push_back(static_cast<char>(number));
    } else {
      key_.append({'\xff', static_cast<char>(number & 0xff), static_cast<char>(number >> 8)});
    }
  }
  std::string key_;
};

void KeyWriter::add(const Process& process) {
  add(process.is_alive, process.next, process.is_disabling, process.is_enabled, process.reports_disabled,
      process.dropped, process.permission_violations, process.operation_violations, process.entries.size());
  for (const ListedEntry& entry : process.entries) {
    add(entry.appended_by, entry.list, entry.is_linked, entry.is_link_reported, entry.is_unlink_reported,
        entry.local_offset);
  }
  add(process.headers.size());
  for (const Header& header : process.headers) add(header);
  add(process.claims.size());
  for (const Claim& claim : process.claims) {
    add(claim.taken_by);
    add(claim.header);
  }
  for (const Counter& counter : process.counters) {
    add(counter.value.success, counter.value.failure);
    add(counter.waiting);
  }
  add(process.bundles, process.bundle_result);
  add(process.deferred);
  add(process.cancelled);
  add(process.fired);
  for (const Queue& queue : process.queues) add(queue);
  add(process.memory);
  add(process.returned.size());
  for (const Returned& returned : process.returned) add(returned);
}

void KeyWriter::add(const Message& message) {
  add(message.name.rank, message.name.place, message.target, message.stage, message.elements_read,
      message.elements_moved, message.is_read, message.is_sent, message.is_send_counted, message.is_loss_sent,
      message.answer, message.fail, message.list, message.entry, message.offset, message.moved);
  add(message.bytes);
}

}  // namespace

std::string State::key() const {
  KeyWriter writer;
  for (const Process& process : processes) writer.add(process);
  for (const Message& message : messages) writer.add(message);
  return writer.take();
}

}  // namespace spinloom::model
