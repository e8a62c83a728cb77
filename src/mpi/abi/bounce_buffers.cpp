#include "mpi/abi/bounce_buffers.hpp"

#include <limits>

#include "mpi/abi/gapless_type.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

template <class Value>
Value unwrap(Result<Value> result) {
  if (!result) throw Refused{result.error()};
  return std::move(*result);
}
void unwrap(const spinloom::Status& status) {
  if (!status.ok()) throw Refused{status.error()};
}

FormPointer bounced_form(Datatype type) {
  const Lock lock;
  return layer.types.form(type);
}

DeviceWatch::Owner owner_at(const void* buffer, int64_t place) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MPI_BOTTOM and a type of addresses
  const auto* const address = reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(buffer) + place);
  return unwrap(DeviceWatch::of_process().owner(address));
}
// Returns the device that owns a byte; below zero: it is memory of the host.
int device_at(const void* buffer, int64_t place) { return owner_at(buffer, place).ordinal; }

// Throws unless both ends of the range that is touched belong to the device that owns a byte between them.
void require_one_owner(const DeviceWatch::Owner& owner, const void* buffer, Range touched) {
  const int64_t base = reinterpret_cast<intptr_t>(buffer);
  const int64_t start = reinterpret_cast<intptr_t>(owner.start);
  if (base + touched.first >= start && base + touched.last <= start + static_cast<int64_t>(owner.bytes)) return;
  for (const int64_t place : {touched.first, touched.last - 1}) {
    const int other_ordinal = device_at(buffer, place);
    if (other_ordinal == owner.ordinal) continue;
    throw Refused{fail(Code::invalid, "a buffer lies partly in memory of a device and partly in memory of ",
                       other_ordinal < 0 ? "the host" : "another device",
                       ": one call can have one of them as a buffer")};
  }
}

// The extent of a type, also of one that is not known here.
int64_t extent_of(Datatype type, const Form& form) {
  Count lb = 0;
  Count extent = form.extent;
  if (!form.is_known && real.Type_get_extent_x(type, &lb, &extent) != success) extent = 0;
  return extent;
}

// Returns the range of the bytes around `count` elements, by their offsets from the buffer.
Range span_of(Datatype type, int64_t count) {
  Count lb = 0;
  Count extent = 0;
  Count true_lb = 0;
  Count true_extent = 0;
  if (real.Type_get_extent_x(type, &lb, &extent) != success ||
      real.Type_get_true_extent_x(type, &true_lb, &true_extent) != success) {
    throw Refused{fail(Code::invalid, "the MPI does not say how long a datatype is")};
  }
  const Count last = true_lb + (count - 1) * extent;
  return {std::min(true_lb, last), std::max(true_lb, last) + true_extent};
}

// Returns the offset of the first byte of the first element.
int64_t first_of(Datatype type, const Form& form) { return form.is_known ? form.true_lb : span_of(type, 1).first; }

// A receive may get fewer bytes than it has room for, and an image is put in place as a whole.
Use use_of_image(Use use) { return use == Use::writes ? Use::both : use; }

const FormPointer& bytes_form() {
  static const FormPointer byte = basic_form(1, 1);
  return byte;
}

// Returns the form of the bytes that belong to a type, also where the layer leaves the type to the MPI, as it does with
// pairs. `is_known` is false if they cannot be found out.
FormPointer exact_form(Datatype type, const FormPointer& form) {
  if (form->is_known) return form;
  struct Exact {
    FormPointer form;  // another datatype under the same handle has another form
    FormPointer exact;
  };
  static std::mutex mutex;
  static auto& kept = *new std::list<Exact>;  // the latest first
  constexpr size_t kept_max = 64;
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find(kept, form, &Exact::form);
  if (found != kept.end()) return found->exact;
  const auto type_of_all_bytes = decode_whole_type(type);
  kept.push_front({form, type_of_all_bytes ? make_form(*type_of_all_bytes) : form});
  if (kept.size() > kept_max) kept.pop_back();
  return kept.front().exact;
}

bool holds(const DeviceWatch::Owner& owner, const void* address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(owner.start) < owner.bytes;
}

bool is_contiguous(const Form& form, int64_t count) { return form.is_known && form.is_contiguous(count); }

}  // namespace

// A buffer of a device: all that `count` elements touch of it is there.
struct BounceBuffers::OnDevice {
  FormPointer form;
  int ordinal;
  Range span;
  bool has_base;  // the buffer's own address, by which an MPI judges, is there, too
};
std::optional<BounceBuffers::OnDevice> BounceBuffers::on_device(const void* buffer, int64_t count, Datatype type) {
  if (count <= 0 || buffer == in_place || type == handles().type_null) return std::nullopt;
  FormPointer form = bounced_form(type);
  if (form->size == 0) return std::nullopt;
  const DeviceWatch::Owner owner = owner_at(buffer, first_of(type, *form));
  if (owner.ordinal < 0) return std::nullopt;
  const Range span = span_of(type, count);
  require_one_owner(owner, buffer, span);
  return OnDevice{std::move(form), owner.ordinal, span, holds(owner, buffer)};
}

std::optional<Datatype> BounceBuffers::without_gaps(Datatype type, const FormPointer& form, Use use) {
  if (!form->is_known) return std::nullopt;
  auto gapless = unwrap(GaplessType::of(type, form));
  if (use != Use::writes && gapless->is_cut_anywhere()) return std::nullopt;
  kept_alive_.push_back(gapless);
  return gapless->type();
}

bool BounceBuffers::takes_device_memory() {
  if (!takes_device_memory_) takes_device_memory_ = stays_on_device(call, comm);
  return *takes_device_memory_;
}

void BounceBuffers::add_as_it_is(int ordinal, void* buffer, Use use) {
  ends_.push_back(DeviceEnd::as_it_is(ordinal, buffer, use));
}

std::byte* BounceBuffers::add(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, int64_t room_bytes, Use use,
                              Where where) {
  ends_.push_back(unwrap(DeviceEnd::make(ordinal, buffer, std::move(blocks), room_bytes, use, where)));
  return ends_.back()->room();
}

bool BounceBuffers::replace_block(void*& buffer, int64_t count, Datatype& type, Use use) {
  const std::optional<OnDevice> device_buffer = on_device(buffer, count, type);
  if (!device_buffer) return false;
  const std::optional<Datatype> gapless_type = without_gaps(type, device_buffer->form, use);
  if (!gapless_type) return replace_as_it_lies(*device_buffer, buffer, count, type, use_of_image(use));
  // Memory of a device must be a run for the layer, so that it leaves the message to the MPI.
  const bool stays_on_device_here = takes_device_memory() && is_contiguous(*bounced_form(*gapless_type), count);
  if (stays_on_device_here && is_contiguous(*device_buffer->form, count)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): MPI_BOTTOM and a type of addresses
    buffer = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(buffer) + device_buffer->form->true_lb);
    add_as_it_is(device_buffer->ordinal, buffer, use);
  } else {
    const int64_t capacity = Place::capacity_of(*device_buffer->form, count);
    // A message that is offered to a peer is packed into memory of the host if the peer does not come for it.
    const bool is_offered =
        stays_on_device_here && use == Use::reads && sending && may_offer(*sending, capacity, device_buffer->ordinal);
    buffer = add(device_buffer->ordinal, buffer, {{device_buffer->form, count, 0, 0}}, capacity, use,
                 stays_on_device_here && !is_offered ? Where::device : Where::host);
  }
  type = *gapless_type;
  return true;
}

// Gives the MPI the bytes as they lie, with the same datatype. Where there are gaps they go to memory of the host,
// because an MPI that knows of GPUs may copy each block by itself.
bool BounceBuffers::replace_as_it_lies(const OnDevice& device_buffer, void*& buffer, int64_t count, Datatype type,
                                       Use use) {
  const FormPointer form = exact_form(type, device_buffer.form);
  // The layer leaves it alone.
  const bool is_left_alone = device_buffer.form->is_known || call.kind == CallKind::reduction;
  if (is_contiguous(*form, count) && is_left_alone && device_buffer.has_base && takes_device_memory())
    add_as_it_is(device_buffer.ordinal, buffer, use);
  else
    replace_image(device_buffer.ordinal, buffer, {{form, count}}, device_buffer.span, use);
  return true;
}

bool BounceBuffers::replace_as_it_is(void*& buffer, int64_t count, Datatype type, Use use) {
  const std::optional<OnDevice> device_buffer = on_device(buffer, count, type);
  return device_buffer && replace_as_it_lies(*device_buffer, buffer, count, type, use);
}

bool BounceBuffers::replace_bytes_at(void*& buffer, int64_t offset, int64_t bytes, Use use) {
  if (bytes <= 0 || offset < 0) return false;
  const DeviceWatch::Owner owner = owner_at(buffer, offset);
  if (owner.ordinal < 0) return false;
  require_one_owner(owner, buffer, {offset, offset + bytes});
  replace_image(owner.ordinal, buffer, {{bytes_form(), bytes, offset}}, {offset, offset + bytes}, use);
  return true;
}

// Makes a bounce buffer that has the same bytes at the same offsets.
void BounceBuffers::replace_image(int ordinal, void*& buffer, std::vector<DeviceBlock> blocks, Range range, Use use) {
  for (const DeviceBlock& block : blocks) {
    if (block.form->is_known) continue;
    blocks = {{bytes_form(), range.last - range.first, range.first}};  // all that lies there
    if (use == Use::writes) use = Use::both;
    break;
  }
  for (DeviceBlock& block : blocks) {
    block.packed = -range.first;
    block.is_image = true;
  }
  std::byte* const data = add(ordinal, buffer, std::move(blocks), range.last - range.first, use);
  buffer = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(data) - range.first);  // NOLINT: may lie outside
}

template <class N, class Disp>
bool BounceBuffers::replace_blocks(void*& buffer, int n, const N* counts, const Disp*& displs, const Datatype* types,
                                   bool in_bytes, std::vector<Datatype>& gapless_types, Use use) {
  if (n <= 0 || buffer == in_place || counts == nullptr || displs == nullptr) return false;
  std::vector<FormPointer> forms(static_cast<size_t>(n));
  const auto offset_of = [&](size_t i) {
    return static_cast<int64_t>(displs[i]) * (in_bytes ? 1 : extent_of(types[i], *forms[i]));
  };
  gapless_types.assign(types, types + n);
  DeviceWatch::Owner owner;
  bool is_image = false;
  bool has_gaps = false;
  Range image{INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < forms.size(); ++i) {
    if (counts[i] <= 0 || types[i] == handles().type_null) continue;
    FormPointer form = bounced_form(types[i]);
    if (form->size == 0) continue;
    forms[i] = std::move(form);
    if (owner.ordinal < 0) owner = owner_at(buffer, offset_of(i) + first_of(types[i], *forms[i]));
    if (owner.ordinal < 0) return false;
    const Range block_span = span_of(types[i], static_cast<int64_t>(counts[i]));
    image.first = std::min(image.first, offset_of(i) + block_span.first);
    image.last = std::max(image.last, offset_of(i) + block_span.last);
    const std::optional<Datatype> gapless_type = without_gaps(types[i], forms[i], use);
    is_image = is_image || !gapless_type;
    has_gaps = has_gaps || !is_contiguous(*forms[i], static_cast<int64_t>(counts[i]));
    if (gapless_type) gapless_types[in_bytes ? i : 0] = *gapless_type;
  }
  if (owner.ordinal < 0) return false;
  require_one_owner(owner, buffer, image);
  if (!has_gaps && holds(owner, buffer) && takes_device_memory()) {
    add_as_it_is(owner.ordinal, buffer, use);
    gapless_types.assign(types, types + n);
    return true;
  }
  if (is_image) {
    std::vector<DeviceBlock> blocks;
    for (size_t i = 0; i < forms.size(); ++i) {
      if (forms[i] == nullptr) continue;
      blocks.push_back({exact_form(types[i], forms[i]), static_cast<int64_t>(counts[i]), offset_of(i)});
    }
    replace_image(owner.ordinal, buffer, std::move(blocks), image, use_of_image(use));
    gapless_types.assign(types, types + n);
    return true;
  }
  std::vector<DeviceBlock> blocks;
  auto packed_displs = std::make_shared<std::vector<Disp>>(forms.size());
  int64_t packed = 0;
  int64_t elements = 0;
  for (size_t i = 0; i < forms.size(); ++i) {
    const int64_t displ = in_bytes ? packed : elements;
    if (displ > std::numeric_limits<Disp>::max()) {
      throw Refused{fail(Code::unsupported, "a call with ", packed,
                         " bytes in a GPU's memory: take the form of the call with large counts")};
    }
    (*packed_displs)[i] = static_cast<Disp>(displ);
    if (forms[i] == nullptr) continue;
    const auto count = static_cast<int64_t>(counts[i]);
    blocks.push_back({forms[i], count, offset_of(i), packed});
    packed += forms[i]->size * count;
    elements += count;
  }
  buffer =
      add(owner.ordinal, buffer, std::move(blocks), packed, use, takes_device_memory() ? Where::device : Where::host);
  displs = packed_displs->data();
  kept_alive_.push_back(std::move(packed_displs));
  return true;
}
template bool BounceBuffers::replace_blocks(void*&, int, const int*, const int*&, const Datatype*, bool,
                                            std::vector<Datatype>&, Use);
template bool BounceBuffers::replace_blocks(void*&, int, const int*, const Aint*&, const Datatype*, bool,
                                            std::vector<Datatype>&, Use);
template bool BounceBuffers::replace_blocks(void*&, int, const Count*, const Aint*&, const Datatype*, bool,
                                            std::vector<Datatype>&, Use);

int BounceBuffers::raise(int code) const {
  if (window) {
    const int answer = real.Win_call_errhandler(*window, code);
    return answer == success ? code : answer;
  }
  return file ? raise_on_file(*file, code) : SPINLOOM_ABI::raise(comm, code);
}

void BounceBuffers::fill(const DeviceEnd* except) {
  for (const auto& end : ends_) {
    if (end.get() != except) unwrap(end->fill());
  }
}

void BounceBuffers::land(int64_t bytes) {
  for (const auto& end : ends_) unwrap(end->land(bytes));
}

void BounceBuffers::fill_part(size_t i) const { unwrap(ends_.front()->fill_part(i)); }
void BounceBuffers::land_part(size_t i) const { unwrap(ends_.front()->land_part(i)); }

DeviceEnd* BounceBuffers::sent_buffer() const {
  DeviceEnd* sent = nullptr;
  for (const auto& end : ends_) {
    if (!end->is_read()) continue;
    if (sent != nullptr || !end->is_packed() || end->is_on_device()) return nullptr;
    sent = end.get();
  }
  return sent;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
