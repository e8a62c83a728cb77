#include "mpi/abi/exchange.hpp"

#include <algorithm>

#include "mpi/abi/batch.hpp"
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
Place Exchange::Part::place(const char* call) const { return {buffer, count, type, form, layer.teams.comm(), call}; }

Exchange::Part Exchange::make_part(void* buffer, int64_t count, Datatype type, int rank) {
  if (count < 0 || (count > 0 && type == handles().type_null)) is_wrong_ = true;
  Part part{buffer, count, type, rank, layer.types.form(type)};
  choose_means(part);
  return part;
}

void Exchange::keep_types() {
  for (std::vector<Part>* const parts : {&sends_, &receives_}) {
    for (Part& part : *parts) {
      auto kept_type = std::make_unique<KeptType>();
      kept_type->is_held = real.Type_dup(part.type, &kept_type->type) == success;
      if (!kept_type->is_held) continue;
      part.type = kept_type->type;
      kept_types_.push_back(std::move(kept_type));
    }
  }
}

int Exchange::post(const Part& part, bool sends) {
  requests_.push_back(handles().request_null);
  Request* const request = &requests_.back();
  const Comm comm = layer.teams.comm();
  if (!sends) {
    if (part.count <= INT32_MAX) {
      return Irecv<int>(part.buffer, static_cast<int>(part.count), part.type, part.rank, tag_, comm, request);
    }
    return Irecv<Count>(part.buffer, part.count, part.type, part.rank, tag_, comm, request);
  }
  const Place place = part.place(call_);
  const auto pending = pending_send_for(place, part.rank);
  if (pending) return layer.announce(*pending, place, Mode::standard, part.rank, tag_, request);
  return post_to_mpi(part);
}

std::optional<PendingSend> Exchange::pending_send_for(const Place& place, int rank) const {
  const Lock lock;
  return layer.pending_send_for(place, rank, is_swap_ ? Layer::AllowedOffers::none : Layer::AllowedOffers::mapped);
}

int Exchange::post_to_mpi(const Part& part) {
  Request* const request = &requests_.back();
  const Comm comm = layer.teams.comm();
  if (is_swap_) {
    Layer::SentCopy copy{handles().request_null, std::make_unique<std::vector<uint8_t>>()};
    if (!layer.copy(part.place(call_), *copy.bytes)) return error_other;
    const auto bytes = static_cast<Count>(copy.bytes->size());
    const int code = bytes <= INT32_MAX ? real.Isend(copy.bytes->data(), static_cast<int>(bytes), handles().byte,
                                                     part.rank, tag_, comm, &copy.request)
                                        : real.wide.Isend(copy.bytes->data(), bytes, handles().byte, part.rank, tag_,
                                                          comm, &copy.request);
    const Lock lock;
    if (code == success) layer.outbox.push_back(std::move(copy));
    return code;
  }
  if (part.count <= INT32_MAX) {
    return real.Isend(part.buffer, static_cast<int>(part.count), part.type, part.rank, tag_, comm, request);
  }
  return real.wide.Isend(part.buffer, part.count, part.type, part.rank, tag_, comm, request);
}

int Exchange::copy_to_self() {
  const auto of_self = [](const Part& part) { return part.rank == layer.teams.rank() && !part.is_empty(); };
  auto to = receives_.begin();
  for (const Part& from : sends_) {
    if (!of_self(from)) continue;
    to = std::find_if(to, receives_.end(), of_self);
    const bool is_met = to != receives_.end();
    if (is_met && copy_here(from.message(), to->message())) {
      ++to;
      continue;
    }
    int code = is_met ? post(*to, false) : success;
    if (code == success) code = post(from, true);
    if (code != success) return code;
    if (is_met) ++to;
  }
  return success;
}

int Exchange::post_all(const std::vector<Part>& parts, bool sends) {
  for (const Part& part : parts) {
    if (part.rank == layer.teams.rank() || part.is_empty()) continue;
    if (const int code = post(part, sends); code != success) return code;
  }
  return success;
}

// Posts all messages: receives first, unless they take the place of what is sent. What a rank sends to itself is copied
// while these are under way.
int Exchange::begin_all() {
  requests_.clear();
  requests_.reserve(sends_.size() + receives_.size());
  if (const int code = is_swap_ ? post_all(sends_, true) : post_all(receives_, false); code != success) return code;
  if (const int code = is_swap_ ? post_all(receives_, false) : post_all(sends_, true); code != success) return code;
  return copy_to_self();
}

int Exchange::begin() {
  const int code = begin_all();
  statuses_.assign(requests_.size(), {});
  return code == success ? code : end(code);
}

void Exchange::begin(Request request, std::shared_ptr<const Packing> packing) {
  requests_.assign(1, request);
  statuses_.assign(1, {});
  packing_ = std::move(packing);
}

int Exchange::wait() {
  const auto count = static_cast<int>(requests_.size());
  if (count == 0) return success;
  return end(Waitall(count, requests_.data(), statuses_.data()));
}

bool Exchange::test(int& code) {
  const auto count = static_cast<int>(requests_.size());
  code = success;
  if (count == 0) return true;
  {
    Batch batch(count, requests_.data());
    int flag = 0;
    code = real.Testall(count, batch.requests(), &flag, statuses_.data());
    if (code == success && flag == 0) return false;
    code = finish_all(batch, count, statuses_.data(), code);
  }
  code = end(code);
  return true;
}

// Ends the call: returns the first error, and leaves no request.
int Exchange::end(int code) {
  if (code == error_in_status) {
    const auto failed = std::ranges::find_if(
        statuses_, [](const Status& status) { return status.error != success && status.error != error_pending; });
    if (failed != statuses_.end()) code = failed->error;
  }
  for (Request& request : requests_) {
    if (code != success && request != handles().request_null) Request_free(&request);
  }
  requests_.clear();
  if (code == success && packing_) packing_->end();
  packing_.reset();
  return code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
