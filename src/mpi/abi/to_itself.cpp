#include "mpi/abi/to_itself.hpp"

#include <stdexcept>

#include "mpi/abi/packing.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

void ToItself::add(std::vector<Place>& places, const void* buffer, int64_t count, Datatype type) {
  if (count == 0) return;
  if (count < 0 || type == handles().type_null) {
    is_wrong_ = true;
    return;
  }
  Place place = layer.place_of(buffer, count, type, comm_);
  const int64_t bytes = place.capacity();
  if (bytes == 0) return;
  const bool is_memory = reinterpret_cast<int64_t>(buffer) + place.form->true_lb >= Place::least_address;
  if (!place.form->is_known || !is_memory || bytes == INT64_MAX || __builtin_add_overflow(bytes_, bytes, &bytes_)) {
    is_wrong_ = true;
  }
  has_gaps_ = has_gaps_ || !place.form->is_contiguous(count);
  places.push_back(std::move(place));
}

bool ToItself::copies() const {
  if (is_wrong_ || !has_gaps_ || sends_.size() != receives_.size()) return false;
  if (bytes_ / 2 < layer.settings.min_bytes) return false;
  return std::ranges::equal(sends_, receives_, {}, &Place::capacity, &Place::capacity);
}

void ToItself::copy(const char* call) {
  const auto message_of = [](const Place& place) { return Message(*place.form, place.count, place.buffer); };
  for (size_t i = 0; i < sends_.size(); ++i) {
    Place& from = sends_[i];
    from.call = call;
    if (!copy_here(message_of(from), message_of(receives_[i])))
      throw std::logic_error("a copy to oneself that was found possible");
    layer.count(from, layer.rank, Way::within, "to itself, copied once");
    layer.pipeline.count_copied(from.capacity());
  }
}

void ToItself::pass(const char* call, const char* why) {
  for (Place& from : sends_) {
    from.call = call;
    if (!is_wrong_ && !from.form->is_contiguous(from.count)) layer.count(from, layer.rank, Way::pass, why);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
