#include "ethernet/slmp/receive_message.hpp"

#include <algorithm>
#include <array>

namespace spinloom::slmp {
namespace {

uint64_t number_of_peer(const sockaddr_in& from) {
  return uint64_t{ntohl(from.sin_addr.s_addr)} << 16 | ntohs(from.sin_port);
}

}  // namespace

Time ReceiveMessage::now() const {
  const auto since = std::chrono::steady_clock::now() - began_;
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000};
}

// Takes what has come, at most a batch, and answers it. An answer that the system does not take is lost.
Result<size_t> ReceiveMessage::receive_batch() {
  SPL_ASSIGN(const size_t count, port_.receive(*received_));
  std::array<std::array<uint8_t, header_bytes>, UdpPort::batch> headers;
  std::array<std::array<uint8_t, report_bytes>, UdpPort::batch> reports;
  std::array<Datagram, UdpPort::batch> answers;
  size_t answer_count = 0;
  const Time time = now();
  for (size_t i = 0; i < count; ++i) {
    auto outcome = receiver_.on_datagram(time, number_of_peer(received_->from[i]), received_->datagram(i));
    if (!outcome) continue;  // the receiver has counted it
    if (outcome->message) complete_messages_.push_back(std::move(*outcome->message));
    if (!outcome->acknowledgement) continue;
    headers[answer_count] = write(*outcome->acknowledgement);
    reports[answer_count] = write_report(*outcome->acknowledgement);
    const size_t report_length = has_report(*outcome->acknowledgement) ? report_bytes : 0;
    answers[answer_count] = {headers[answer_count], std::span(reports[answer_count]).first(report_length),
                             &received_->from[i]};
    ++answer_count;
  }
  for (size_t left = 0; left < answer_count;) {
    const Result<size_t> sent = port_.send({answers.data() + left, answer_count - left});
    if (!sent || *sent == 0) break;
    left += *sent;
  }
  return count;
}

Result<std::optional<Receiver::Message>> ReceiveMessage::receive(Time timeout) {
  const Time end = timeout == Time::never() ? timeout : now() + timeout;
  while (complete_messages_.empty()) {
    SPL_ASSIGN(const size_t count, receive_batch());
    if (count > 0 || !complete_messages_.empty()) continue;
    const Time time = now();
    if (time >= end) return std::optional<Receiver::Message>();
    port_.wait(std::min(end - time, Time{1'000'000'000'000}), -1, false);
  }
  std::optional<Receiver::Message> message = std::move(complete_messages_.front());
  complete_messages_.pop_front();
  return message;
}

Status ReceiveMessage::answer_until_quiet(Time quiet) {
  for (Time end = now() + quiet; now() < end && complete_messages_.empty();) {
    SPL_ASSIGN(const size_t count, receive_batch());
    if (count > 0) {
      end = now() + quiet;
    } else {
      port_.wait(end - now(), -1, false);
    }
  }
  return {};
}

}  // namespace spinloom::slmp
