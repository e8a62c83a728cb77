#include "mpi/meeting/board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/private_folder.hpp"
#include "base/shared_heap.hpp"

namespace spinloom::mpi {
namespace {

constexpr uint64_t board_magic = 0x3162'6d6c'6e70'7309;  // changes with the form of the board
constexpr uint64_t page_bytes = 4096;
constexpr uint64_t member_bytes = 64;

constexpr uint64_t slots_bytes = Board::slots * sizeof(Slot);
constexpr uint64_t counts_bytes = sizeof(Polls::Counts);
constexpr uint64_t rank_bytes = slots_bytes + counts_bytes + sizeof(Postings::Table) +
                                Polls::most * sizeof(Board::SlotTablePlace) + sizeof(DeviceSign);

uint64_t pages(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

}  // namespace

// The file holds, in this order: the header's page; the members; the rows of reach_row(), one for each receiver, for
// heaps and again for devices; the polls; and for each rank its slots, counts of calls, postings, places of slot
// tables, and sign.
Board::Member& Board::member(uint32_t rank) const {
  static_assert(sizeof(Member) <= member_bytes);
  return *reinterpret_cast<Member*>(base_ + page_bytes + rank * member_bytes);
}

std::atomic<uint8_t>* Board::reach_row(uint32_t row) const {
  const uint64_t place = page_bytes + pages(size_ * member_bytes) + uint64_t{row} * size_;
  return reinterpret_cast<std::atomic<uint8_t>*>(base_ + place);
}

uint64_t Board::polls_offset() const { return page_bytes + pages(size_ * member_bytes) + pages(rows_bytes()); }

uint64_t Board::rank_offset(uint32_t rank) const {
  return polls_offset() + pages(sizeof(Polls::Table)) + rank * pages(rank_bytes);
}

Polls::Table* Board::polls_table() const { return reinterpret_cast<Polls::Table*>(base_ + polls_offset()); }

Polls::Counts& Board::counts(uint32_t rank) const {
  return *reinterpret_cast<Polls::Counts*>(base_ + rank_offset(rank) + slots_bytes);
}

Postings Board::postings(uint32_t rank) const {
  return Postings(*reinterpret_cast<Postings::Table*>(base_ + rank_offset(rank) + slots_bytes + counts_bytes));
}

Board::SlotTablePlace& Board::slot_table_place(uint32_t rank, uint32_t ballot) const {
  const uint64_t places = rank_offset(rank) + slots_bytes + counts_bytes + sizeof(Postings::Table);
  return reinterpret_cast<SlotTablePlace*>(base_ + places)[ballot];
}

DeviceSign& Board::device_sign(uint32_t rank) const {
  return *reinterpret_cast<DeviceSign*>(base_ + rank_offset(rank) + rank_bytes - sizeof(DeviceSign));
}

bool Board::all_reach() const {
  const auto is_mapped_by_all = [this](int sender) {
    return std::ranges::all_of(founders_, [this, sender](int receiver) {
      const auto& seen = reach_row(static_cast<uint32_t>(receiver))[sender];
      return receiver == sender || seen.load(std::memory_order_acquire) != 0;
    });
  };
  return std::ranges::all_of(founders_, is_mapped_by_all);
}

peer::KnownWord Board::word_of(uint32_t other) const { return {member(other).word_address, header_->secret[1]}; }

bool Board::can_agree() const {
  return std::ranges::all_of(founders_,
                             [this](int rank) { return member(static_cast<uint32_t>(rank)).heeds_barriers != 0; });
}

Slot& Board::slot(uint32_t rank, uint32_t number) const {
  return *reinterpret_cast<Slot*>(base_ + rank_offset(rank) + number * sizeof(Slot));
}

Status Board::allocate(uint64_t first, uint64_t bytes) const {
  const int error = posix_fallocate(file_, static_cast<off_t>(first), static_cast<off_t>(bytes));
  if (error == 0) return {};
  return fail(Code::exhausted, "no room for ", bytes, " B in /dev/shm: ", std::strerror(error));
}

Status Board::map(const std::string& name) {
  name_ = "/" + name;
  file_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file_ < 0) return fail(Code::environment, "shm_open ", name_, ": ", std::strerror(errno));
  struct stat status{};
  if (fstat(file_, &status) != 0 || !is_this_user(status.st_uid)) {
    return fail(Code::environment, name_, " belongs to another user");
  }
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1 || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Code::environment, name_, " is not what a rank of this job has made");
  }
  bytes_ = rank_offset(size_);
  if (ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    return fail(Code::environment, "ftruncate ", name_, ": ", std::strerror(errno));
  }
  void* const mapping = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapping == MAP_FAILED) return fail(Code::exhausted, "mmap of ", bytes_, " B: ", std::strerror(errno));
  base_ = static_cast<uint8_t*>(mapping);
  header_ = reinterpret_cast<Header*>(base_);
  return {};
}

// Waits until the maker has finished the board, which takes a few system calls. A maker that was killed in between
// leaves a board that no rank can use.
Status Board::await_maker() const {
  constexpr int tries = 2'000;
  for (int i = 0; i < tries; ++i) {
    if (header_->magic.load(std::memory_order_acquire) == board_magic) return {};
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return fail(Code::environment, name_, " was never finished by the rank that began it");
}

Status Board::join(const std::string& name, uint32_t rank, uint32_t size, uint32_t local_ranks, int64_t min_bytes) {
  rank_ = rank;
  size_ = size;
  local_ranks_ = local_ranks;
  if (auto mapped = map(name); !mapped.ok()) return mapped;
  if (auto filled = allocate(0, rank_offset(0)); !filled.ok()) return filled;
  if (auto filled = allocate(rank_offset(rank), rank_bytes); !filled.ok()) return filled;

  uint64_t nobody = 0;
  if (header_->magic.compare_exchange_strong(nobody, 1)) {
    if (getrandom(header_->secret.data(), sizeof(Secret), 0) != sizeof(Secret)) {
      return fail(Code::environment, "getrandom: ", std::strerror(errno));
    }
    header_->magic.store(board_magic, std::memory_order_release);
  } else if (auto awaited = await_maker(); !awaited.ok()) {
    return awaited;
  }

  Member& own = member(rank);
  if (own.state.load() != 0) return fail(Code::environment, name_, " has a rank ", rank, " already");
  SharedHeap& heap = process_heap();
  if (heap.open() != 0) return fail(Code::exhausted, "no heap that peers could map");
  const SharedHeap::Location place = heap.location();
  if (place.bytes == 0) return fail(Code::exhausted, "no heap that peers could map");
  own.process = getpid();
  own.heap_bytes = place.bytes;
  own.heap_base = place.base;
  own.heap_inode = place.inode;
  own.heap_file = place.file;
  own.heeds_barriers = heed_barriers() ? 1 : 0;
  word_ = header_->secret[1];
  own.word_address = reinterpret_cast<uint64_t>(&word_);
  own.min_bytes = min_bytes;
  views_.resize(size);
  views_[rank].is_tried = true;
  views_[rank].heap = peer::HeapView::of_this_process(place);
  if (views_[rank].process.open(getpid()) == 0) reach_row(rank)[rank].store(reads_heap, std::memory_order_release);
  Standing open = Standing::open;  // the standing may be late already, and stays so then
  own.standing.compare_exchange_strong(open, Standing::here, std::memory_order_acq_rel);
  own.state.store(1, std::memory_order_release);
  const uint32_t joined = header_->joined.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (joined == local_ranks) shm_unlink(name_.c_str());
  notice();
  return {};
}

void Board::notice() {
  noticed_ = header_->joined.load(std::memory_order_acquire);
  for (uint32_t rank = 0; rank < size_; ++rank) {
    View& view = views_[rank];
    const Member& other = member(rank);
    if (view.is_tried || other.state.load(std::memory_order_acquire) != 1) continue;
    view.is_tried = true;
    const SharedHeap::Location place{other.heap_bytes, other.heap_base, other.heap_inode, other.heap_file};
    auto mapped = peer::HeapView::map(other.process, place, true);
    if (!mapped || view.process.open(other.process) != 0) continue;
    view.heap = std::move(*mapped);
    const uint8_t seen = can_read_word(other, view.process) ? reads_memory : reads_heap;
    reach_row(rank_)[rank].store(seen, std::memory_order_release);
  }
}

void Board::await_others(std::chrono::nanoseconds patience) const {
  constexpr timespec pause{0, 100'000};
  const auto end = std::chrono::steady_clock::now() + patience;
  const uint32_t expected = local_ranks_ == 0 ? size_ : local_ranks_;
  while (header_->joined.load(std::memory_order_acquire) < expected &&
         header_->settled.load(std::memory_order_acquire) == 0 && std::chrono::steady_clock::now() < end) {
    nanosleep(&pause, nullptr);
  }
}

// Every rank settles the standings of all members that no other rank has settled, so that no rank waits for a killed
// one.
void Board::settle(std::chrono::nanoseconds patience) {
  await_others(patience);
  founders_.clear();
  for (uint32_t rank = 0; rank < size_; ++rank) {
    std::atomic<Standing>& standing = member(rank).standing;
    Standing current = Standing::open;
    if (standing.compare_exchange_strong(current, Standing::late, std::memory_order_acq_rel)) continue;
    if (current == Standing::here) {
      standing.compare_exchange_strong(current, Standing::founder, std::memory_order_acq_rel);
      current = Standing::founder;
    }
    if (current == Standing::founder) founders_.push_back(static_cast<int>(rank));
  }
  header_->settled.store(1, std::memory_order_release);
}

bool Board::can_read_word(const Member& other, const peer::Process& process) const {
  uint64_t value = 0;
  const peer::Block theirs{other.word_address, sizeof value};
  const peer::Block ours{reinterpret_cast<uint64_t>(&value), sizeof value};
  peer::BlockCursor from({&theirs, 1});
  peer::BlockCursor to({&ours, 1});
  return peer::kernel_read(process, from, to, sizeof value).ok() && value == header_->secret[1];
}

void Board::leave() {
  if (header_ == nullptr) return;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    reach_row(rank_)[rank].store(0, std::memory_order_release);
    maps_device(rank_, rank).store(0, std::memory_order_release);
  }
  member(rank_).state.store(2, std::memory_order_release);
  const uint32_t left = header_->left.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (left == header_->joined.load(std::memory_order_acquire)) shm_unlink(name_.c_str());
  // The mapping stays: a call of another thread may still look at it while the process ends.
}

}  // namespace spinloom::mpi
