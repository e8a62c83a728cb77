#include "mpi/device/device_moves.hpp"

#include <algorithm>
#include <bit>

namespace spinloom::mpi {
namespace {

constexpr size_t room_min = size_t{4} << 10;
// The most memory that waits for later messages, by Where: pinned, and of devices.
constexpr std::array<size_t, 2> idle_max = {size_t{1} << 30, size_t{256} << 20};

Result<gpu::Memory> allocate(const gpu::Device& device, DeviceMoves::Where where, size_t bytes) {
  return where == DeviceMoves::Where::device ? gpu::Memory::device(device, bytes) : gpu::Memory::pinned(device, bytes);
}

int64_t bytes_of(const DeviceBlock& block) { return block.form->size * block.count; }

Result<layout::Blob> contiguous_blob(int64_t bytes) {
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const layout::Type run, layout::contiguous(bytes, byte));
  return layout::Blob::build(run);
}

// The offset that plans count from: the first byte of the first block, because a buffer may be MPI_BOTTOM.
int64_t origin_of(std::span<const DeviceBlock> blocks) { return blocks.front().offset + blocks.front().form->true_lb; }

// Returns the side of a kernel's move that is laid out as the block: the buffer, or the room of an image.
Result<gpu::Side> side_of(const DeviceBlock& block, int64_t origin) {
  const Form& form = *block.form;
  if (form.is_contiguous(block.count)) {
    SPL_ASSIGN(layout::Blob blob, contiguous_blob(bytes_of(block)));
    return gpu::Side::of(std::move(blob), 1, block.offset + form.true_lb - origin);
  }
  if (!form.layout) return fail(Code::unsupported, "the layout of a datatype of ", form.size, " bytes is not known");
  return gpu::Side::of(form.layout->blob(), block.count, block.offset - origin);
}

// The first words of keys of plans.
constexpr int64_t key_of_unpacking = 0;
constexpr int64_t key_of_packing = 1;
constexpr int64_t key_of_taking = 2;

void add_to(std::vector<int64_t>& key, const DeviceBlock& block, int64_t origin) {
  const Form& form = *block.form;
  for (const int64_t word :
       {static_cast<int64_t>(form.number), form.size, form.extent, form.true_lb, block.count, block.offset - origin,
        block.packed + (block.is_image ? block.offset : 0), int64_t{block.is_image}}) {
    key.push_back(word);
  }
}

}  // namespace

DeviceMoves& DeviceMoves::of_process() {
  static auto* const moves = new DeviceMoves;  // nobody deletes it: the driver may have gone before a process ends
  return *moves;
}

DeviceMoves::Room::~Room() {
  if (memory_.data() != nullptr) of_process().give_back(key_, std::move(memory_));
}

Result<DeviceMoves::Room> DeviceMoves::room(int ordinal, int64_t bytes, Where where) {
  const size_t size = std::bit_ceil(std::max(room_min, static_cast<size_t>(bytes)));
  Room room;
  room.key_ = {where, ordinal, size};
  {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[room.key_];
    if (!idle.empty()) {
      room.memory_ = std::move(idle.back());
      idle.pop_back();
      idle_bytes_[static_cast<size_t>(where)] -= size;
      return room;
    }
  }
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  auto made = allocate(device, where, size);
  if (!made && drop_idle()) made = allocate(device, where, size);
  SPL_ASSIGN(room.memory_, std::move(made));
  return room;
}

// Frees the rooms that are kept; returns false if there were none.
bool DeviceMoves::drop_idle() {
  std::map<RoomKey, std::vector<gpu::Memory>> dropped;  // it is freed after the lock is released
  const std::lock_guard lock(mutex_);
  dropped.swap(idle_);
  const bool any = idle_bytes_ != std::array<size_t, 2>{};
  idle_bytes_ = {};
  return any;
}

void DeviceMoves::give_back(const RoomKey& key, gpu::Memory memory) {
  const std::lock_guard lock(mutex_);
  const auto where = static_cast<size_t>(key.where);
  if (idle_bytes_[where] + key.bytes > idle_max[where]) return;
  idle_bytes_[where] += key.bytes;
  idle_[key].push_back(std::move(memory));
}

// Returns the plan that is kept under this key, or null.
DeviceMoves::PlanPointer DeviceMoves::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(plans_, key, &Entry::key);
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return found->plan;
}

Result<DeviceMoves::PlanPointer> DeviceMoves::make(const gpu::Device& device, Key key,
                                                   std::span<const gpu::Message> messages,
                                                   std::vector<std::shared_ptr<const void>> parts) {
  SPL_ASSIGN(gpu::Plan made, gpu::Plan::make(device, messages));
  auto plan = std::make_shared<gpu::Plan>(std::move(made));
  std::list<Entry> dropped;  // it is freed after the lock is released
  const std::lock_guard lock(mutex_);
  plans_.push_front({std::move(key), std::move(parts), plan});
  if (plans_.size() > plans_max) dropped.splice(dropped.begin(), plans_, std::prev(plans_.end()));
  return plan;
}

Result<DeviceMoves::PlanPointer> DeviceMoves::plan(const gpu::Device& device, std::span<const DeviceBlock> blocks,
                                                   bool packs) {
  const int64_t origin = origin_of(blocks);
  Key key{packs ? key_of_packing : key_of_unpacking, device.ordinal()};
  for (const DeviceBlock& block : blocks) add_to(key, block, origin);
  if (PlanPointer known = find(key)) return known;
  std::vector<gpu::Message> messages;
  std::vector<std::shared_ptr<const void>> kept_alive;
  for (const DeviceBlock& block : blocks) {
    SPL_ASSIGN(gpu::Side buffer_side, side_of(block, origin));
    gpu::Side room_side = gpu::Side::packed(block.packed);
    if (block.is_image) {
      SPL_ASSIGN(room_side, side_of(block, -block.packed));
    }
    messages.push_back(packs ? gpu::Message{std::move(buffer_side), std::move(room_side)}
                             : gpu::Message{std::move(room_side), std::move(buffer_side)});
    kept_alive.push_back(block.form);
  }
  return make(device, std::move(key), messages, std::move(kept_alive));
}

// `to`: null for packed bytes.
Result<DeviceMoves::PlanPointer> DeviceMoves::plan_to_take(const gpu::Device& device, const DeviceSource& from,
                                                           const DeviceBlock* to) {
  Key key{key_of_taking, device.ordinal(), reinterpret_cast<intptr_t>(from.blob.get()),
          from.count,    from.bytes,       from.offset};
  if (to != nullptr) add_to(key, *to, origin_of({to, 1}));
  if (PlanPointer known = find(key)) return known;
  gpu::Message message{{}, gpu::Side::packed()};
  if (from.blob != nullptr) {
    message.from = gpu::Side::of(*from.blob, from.count, from.offset);
  } else {
    SPL_ASSIGN(layout::Blob run, contiguous_blob(from.bytes));
    message.from = gpu::Side::of(std::move(run), 1, from.offset);
  }
  std::vector<std::shared_ptr<const void>> kept_alive{from.blob};
  if (to != nullptr) {
    SPL_ASSIGN(message.to, side_of(*to, origin_of({to, 1})));
    kept_alive.push_back(to->form);
  }
  return make(device, std::move(key), {&message, 1}, std::move(kept_alive));
}

Status DeviceMoves::move(int ordinal, std::span<const DeviceBlock> blocks, std::byte* buffer, std::byte* packed,
                         bool packs) {
  int64_t bytes = 0;
  for (const DeviceBlock& block : blocks) bytes += bytes_of(block);
  if (bytes == 0) return {};
  moves_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  const DeviceBlock& first = blocks.front();
  if (blocks.size() == 1 && first.form->is_contiguous(first.count)) {
    std::byte* const in_buffer = buffer + first.offset + first.form->true_lb;
    std::byte* const in_room = packed + first.packed + (first.is_image ? first.offset + first.form->true_lb : 0);
    SPL_TRY(gpu::copy_bytes(device, packs ? in_room : in_buffer, packs ? in_buffer : in_room,
                            static_cast<size_t>(bytes), nullptr));
    return device.synchronise();
  }
  SPL_ASSIGN(const PlanPointer found, plan(device, blocks, packs));
  std::byte* const base = buffer + origin_of(blocks);
  SPL_TRY(packs ? found->launch(base, packed) : found->launch(packed, base));
  return device.synchronise();
}

Status DeviceMoves::pack(int ordinal, const void* buffer, std::span<const DeviceBlock> blocks, std::byte* packed) {
  return move(ordinal, blocks, static_cast<std::byte*>(const_cast<void*>(buffer)), packed, true);
}

Status DeviceMoves::unpack(int ordinal, const std::byte* packed, std::span<const DeviceBlock> blocks, void* buffer) {
  return move(ordinal, blocks, static_cast<std::byte*>(buffer), const_cast<std::byte*>(packed), false);
}

Status DeviceMoves::read(int ordinal, const void* from, void* to, int64_t bytes) {
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  SPL_TRY(gpu::copy_bytes(device, to, from, static_cast<size_t>(bytes), nullptr));
  return device.synchronise();
}

Status DeviceMoves::write(int ordinal, const void* from, void* to, int64_t bytes) {
  moves_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return read(ordinal, from, to, bytes);
}

Status DeviceMoves::wait(int ordinal) {
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  return device.synchronise();
}

Status DeviceMoves::unpack_part(int ordinal, const std::byte* packed, const DeviceBlock& block, int64_t bytes,
                                void* buffer) {
  const Form& form = *block.form;
  if (form.size == 0 || bytes >= bytes_of(block)) return unpack(ordinal, packed, {&block, 1}, buffer);
  DeviceBlock whole = block;
  whole.count = bytes / form.size;
  SPL_TRY(unpack(ordinal, packed, {&whole, 1}, buffer));
  const int64_t rest = bytes - whole.count * form.size;
  if (rest == 0) return {};
  // One element has arrived in part: its old bytes are packed, overwritten by those that have arrived, and unpacked.
  DeviceBlock last = block;
  last.count = 1;
  last.offset += whole.count * form.extent;
  last.packed = 0;
  SPL_ASSIGN(const Room element, room(ordinal, form.size));
  SPL_TRY(pack(ordinal, buffer, {&last, 1}, element.data()));
  SPL_TRY(read(ordinal, packed + block.packed + whole.count * form.size, element.data(), rest));
  return unpack(ordinal, element.data(), {&last, 1}, buffer);
}

Status DeviceMoves::take(int ordinal, const DeviceSource& from, const DeviceBlock* to, std::byte* base) {
  SPL_ASSIGN(const gpu::Device device, gpu::Device::at(ordinal));
  if (from.blob == nullptr && (to == nullptr || to->form->is_contiguous(to->count))) {
    SPL_TRY(gpu::copy_bytes(device, base, from.data + from.offset, static_cast<size_t>(from.bytes), nullptr));
  } else {
    SPL_ASSIGN(const PlanPointer found, plan_to_take(device, from, to));
    SPL_TRY(found->launch(from.data, base));
  }
  SPL_TRY(device.synchronise());
  taken_.fetch_add(1, std::memory_order_relaxed);
  taken_bytes_.fetch_add(from.bytes, std::memory_order_relaxed);
  return {};
}

Status DeviceMoves::take(int ordinal, const DeviceSource& from, const DeviceBlock& to, void* buffer) {
  return take(ordinal, from, &to, static_cast<std::byte*>(buffer) + origin_of({&to, 1}));
}

Status DeviceMoves::take_packed(int ordinal, const DeviceSource& from, std::byte* packed) {
  return take(ordinal, from, nullptr, packed);
}

}  // namespace spinloom::mpi
