#include "predict/trace/text_requests.hpp"

#include <algorithm>
#include <ranges>

namespace spinloom::trace {

std::vector<std::pair<uint64_t, uint32_t>> TextRequests::at(uint64_t place, int64_t count) const {
  std::vector<std::pair<uint64_t, uint32_t>> found;
  const uint64_t bytes = static_cast<uint64_t>(count) * handle_bytes_;
  for (auto at = open_.lower_bound(place); at != open_.end() && at->first - place < bytes; ++at) {
    if ((at->first - place) % handle_bytes_ == 0) found.push_back(*at);
  }
  return found;
}

// Notes that the request ended in the last call that named its place. A request that no call named never ended.
void TextRequests::end(uint32_t number) {
  Request& request = requests_[number];
  if (!request.is_active) return;
  if (request.named == none) {
    ++never_ended_;
  } else {
    touches_.push_back({request.named, Touch::Kind::ends, number});
  }
  request.is_active = false;
  request.named = none;
}

// Ends the request in this place, which is now used for another one.
void TextRequests::close(uint32_t call, uint64_t place) {
  const auto found = open_.find(place);
  if (found == open_.end()) return;
  const uint32_t number = found->second;
  open_.erase(found);
  const bool ended = requests_[number].named != none;
  end(number);
  // The request's slot is free again, whether or not a call has ended the request.
  if (requests_[number].is_persistent || !ended) touches_.push_back({call, Touch::Kind::frees, number});
}

void TextRequests::make(uint32_t call, uint64_t place, bool is_persistent) {
  close(call, place);
  const auto number = static_cast<uint32_t>(requests_.size());
  requests_.push_back({none, is_persistent, !is_persistent});
  open_[place] = number;
  touches_.push_back({call, Touch::Kind::makes, number});
}

void TextRequests::start(uint32_t call, uint64_t place, int64_t count) {
  for (const auto& [where, number] : at(place, count)) {
    if (!requests_[number].is_persistent) continue;
    end(number);
    requests_[number].is_active = true;
    touches_.push_back({call, Touch::Kind::names, number});
  }
}

void TextRequests::complete(uint32_t call, uint64_t place, int64_t count, bool is_certain) {
  for (const auto& [where, number] : at(place, count)) {
    if (!requests_[number].is_active) continue;
    requests_[number].named = call;
    if (!is_certain) continue;
    end(number);
    if (!requests_[number].is_persistent) open_.erase(where);
  }
}

void TextRequests::cancel(uint32_t call, uint64_t place) {
  for (const auto& [where, number] : at(place, 1)) touches_.push_back({call, Touch::Kind::names, number});
}

// A request that a test has ended cannot be freed, unless it is persistent.
void TextRequests::free(uint32_t call, uint64_t place) {
  for (const auto& [where, number] : at(place, 1)) {
    if (requests_[number].is_persistent) end(number);
    touches_.push_back({call, Touch::Kind::names, number});
    touches_.push_back({call, Touch::Kind::frees, number});
    open_.erase(where);
  }
}

std::vector<std::vector<uint32_t>> TextRequests::solve(uint32_t calls) {
  while (!open_.empty()) close(calls, open_.begin()->first);
  // Within a call, requests that end come before the one that is made, and after those that the call names.
  std::vector<std::vector<Touch>> by_call(size_t{calls} + 1);
  for (const Touch& touch : touches_) by_call[touch.call].push_back(touch);
  std::vector<std::vector<uint32_t>> found(by_call.size());
  std::vector<uint32_t> slots(requests_.size(), none);
  std::vector<bool> is_free;
  const auto release = [&](uint32_t request) {
    if (slots[request] != none) is_free[slots[request]] = true;
    slots[request] = none;
  };
  for (const Touch& touch : by_call | std::views::join) {
    if (touch.kind == Touch::Kind::makes) {
      const auto lowest = static_cast<size_t>(std::ranges::find(is_free, true) - is_free.begin());
      if (lowest == is_free.size()) is_free.push_back(false);
      is_free[lowest] = false;
      slots[touch.request] = static_cast<uint32_t>(lowest);
    }
    const uint32_t slot = slots[touch.request];
    if (touch.kind != Touch::Kind::frees && slot != none) found[touch.call].push_back(slot);
    const bool is_over = touch.kind == Touch::Kind::ends && !requests_[touch.request].is_persistent;
    if (is_over || touch.kind == Touch::Kind::frees) release(touch.request);
  }
  return found;
}

}  // namespace spinloom::trace
