#include "predict/trace/text_requests.hpp"

#include <algorithm>
#include <ranges>

namespace spinloom::trace {

std::vector<std::pair<uint64_t, uint32_t>> TextRequests::requests_at(uint64_t place, int64_t count) const {
  std::vector<std::pair<uint64_t, uint32_t>> requests;
  const uint64_t bytes = static_cast<uint64_t>(count) * handle_bytes_;
  for (auto at = by_place_.lower_bound(place); at != by_place_.end() && at->first - place < bytes; ++at) {
    if ((at->first - place) % handle_bytes_ == 0) requests.push_back(*at);
  }
  return requests;
}

// Notes that the request ended in the last call that named its place. A request that no call named never ended.
void TextRequests::end(uint32_t number) {
  Request& request = requests_[number];
  if (!request.is_active) return;
  if (request.last_naming_call == none) {
    ++never_ended_;
  } else {
    uses_.push_back({request.last_naming_call, RequestUse::Kind::ends, number});
  }
  request.is_active = false;
  request.last_naming_call = none;
}

// Ends the request in this place, which is now used for another one.
void TextRequests::reuse_place(uint32_t call, uint64_t place) {
  const auto open = by_place_.find(place);
  if (open == by_place_.end()) return;
  const uint32_t number = open->second;
  by_place_.erase(open);
  const bool ended = requests_[number].last_naming_call != none;
  end(number);
  // The request's slot is free again, whether or not a call has ended the request.
  if (requests_[number].is_persistent || !ended) uses_.push_back({call, RequestUse::Kind::frees, number});
}

void TextRequests::make(uint32_t call, uint64_t place, bool is_persistent) {
  reuse_place(call, place);
  const auto number = static_cast<uint32_t>(requests_.size());
  requests_.push_back({none, is_persistent, !is_persistent});
  by_place_[place] = number;
  uses_.push_back({call, RequestUse::Kind::makes, number});
}

void TextRequests::start(uint32_t call, uint64_t place, int64_t count) {
  for (const auto& [where, number] : requests_at(place, count)) {
    if (!requests_[number].is_persistent) continue;
    end(number);
    requests_[number].is_active = true;
    uses_.push_back({call, RequestUse::Kind::names, number});
  }
}

void TextRequests::complete(uint32_t call, uint64_t place, int64_t count, bool is_certain) {
  for (const auto& [where, number] : requests_at(place, count)) {
    if (!requests_[number].is_active) continue;
    requests_[number].last_naming_call = call;
    if (!is_certain) continue;
    end(number);
    if (!requests_[number].is_persistent) by_place_.erase(where);
  }
}

void TextRequests::cancel(uint32_t call, uint64_t place) {
  for (const auto& [where, number] : requests_at(place, 1)) uses_.push_back({call, RequestUse::Kind::names, number});
}

// A request that a test has ended cannot be freed, unless it is persistent.
void TextRequests::free(uint32_t call, uint64_t place) {
  for (const auto& [where, number] : requests_at(place, 1)) {
    if (requests_[number].is_persistent) end(number);
    uses_.push_back({call, RequestUse::Kind::names, number});
    uses_.push_back({call, RequestUse::Kind::frees, number});
    by_place_.erase(where);
  }
}

std::vector<std::vector<uint32_t>> TextRequests::solve(uint32_t calls) {
  while (!by_place_.empty()) reuse_place(calls, by_place_.begin()->first);
  // Within a call, requests that end come before the one that is made, and after those that the call names.
  std::vector<std::vector<RequestUse>> by_call(size_t{calls} + 1);
  for (const RequestUse& use : uses_) by_call[use.call].push_back(use);
  std::vector<std::vector<uint32_t>> slots_of_calls(by_call.size());
  std::vector<uint32_t> slots(requests_.size(), none);
  std::vector<bool> is_free;
  const auto release = [&](uint32_t request) {
    if (slots[request] != none) is_free[slots[request]] = true;
    slots[request] = none;
  };
  for (const RequestUse& use : by_call | std::views::join) {
    if (use.kind == RequestUse::Kind::makes) {
      const auto lowest = static_cast<size_t>(std::ranges::find(is_free, true) - is_free.begin());
      if (lowest == is_free.size()) is_free.push_back(false);
      is_free[lowest] = false;
      slots[use.request] = static_cast<uint32_t>(lowest);
    }
    const uint32_t slot = slots[use.request];
    if (use.kind != RequestUse::Kind::frees && slot != none) slots_of_calls[use.call].push_back(slot);
    const bool is_over = use.kind == RequestUse::Kind::ends && !requests_[use.request].is_persistent;
    if (is_over || use.kind == RequestUse::Kind::frees) release(use.request);
  }
  return slots_of_calls;
}

}  // namespace spinloom::trace
