#include "mpi/abi/gapless_type.hpp"

#include <algorithm>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "mpi/abi/type_contents.hpp"
#include "mpi/abi/version.hpp"
#include "mpi/entry/library.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr int64_t int_max = std::numeric_limits<int>::max();

// A datatype, which is freed with this object if it is its own.
class HeldType {
 public:
  HeldType() = default;
  HeldType(Datatype type, bool is_own) : type_(type), is_own_(is_own) {}
  HeldType(HeldType&& other) noexcept : type_(other.type_), is_own_(std::exchange(other.is_own_, false)) {}
  HeldType& operator=(HeldType&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(is_own_, other.is_own_);
    return *this;
  }
  ~HeldType() {
    if (is_own_) real.Type_free(&type_);
  }
  [[nodiscard]] Datatype type() const { return type_; }
  [[nodiscard]] bool is_own() const { return is_own_; }
  Datatype release() {
    is_own_ = false;
    return type_;
  }

 private:
  Datatype type_{};
  bool is_own_ = false;
};

// `count` units without gaps, one behind the other.
struct Row {
  HeldType unit;
  int64_t count = 0;
  int64_t unit_bytes = 0;
};

std::optional<Row> row_of(Datatype type, int depth);

std::optional<Row> row_of_basic(Datatype type, Count size) {
  Count lb = 0;
  Count extent = 0;
  if (real.Type_get_extent_x(type, &lb, &extent) != success || lb != 0 || extent != size) return std::nullopt;
  return Row{HeldType(type, false), 1, size};
}

// Returns the parts of a struct in their order: a row of the basic type where all have the same one, else one new
// struct without gaps.
std::optional<Row> row_of_struct(const TypeContents& contents, int depth) {
  TypeArguments arguments(contents);
  const std::vector<int64_t> lengths = arguments.numbers(arguments.number());
  std::vector<Row> parts;
  for (size_t i = 0; i < lengths.size() && i < contents.types.size(); ++i) {
    Count size = 0;
    if (lengths[i] <= 0 || real.Type_size_x(contents.types[i], &size) != success || size <= 0) continue;
    auto part = row_of(contents.types[i], depth + 1);
    if (!part || __builtin_mul_overflow(part->count, lengths[i], &part->count)) return std::nullopt;
    const bool is_same_unit = !parts.empty() && !part->unit.is_own() && parts.back().unit.type() == part->unit.type();
    if (is_same_unit)
      parts.back().count += part->count;
    else
      parts.push_back(std::move(*part));
  }
  if (parts.size() == 1) return std::move(parts.front());
  std::vector<int> counts;
  std::vector<Aint> displs;
  std::vector<Datatype> types;
  int64_t bytes = 0;
  for (const Row& part : parts) {
    if (part.count > int_max) return std::nullopt;
    counts.push_back(static_cast<int>(part.count));
    displs.push_back(bytes);
    types.push_back(part.unit.type());
    bytes += part.count * part.unit_bytes;
  }
  Datatype joined{};
  if (real.Type_create_struct(static_cast<int>(parts.size()), counts.data(), displs.data(), types.data(), &joined) !=
      success) {
    return std::nullopt;
  }
  const HeldType padded(joined, true);  // MPIs may round its extent up
  Datatype exact{};
  if (real.Type_create_resized(joined, 0, bytes, &exact) != success) return std::nullopt;
  return Row{HeldType(exact, true), 1, bytes};
}

std::optional<Row> row_of(Datatype type, int depth) {
  Count size = 0;
  TypeContents contents;
  if (depth > type_depth_max || real.Type_size_x(type, &size) != success || !contents.read(type)) return std::nullopt;
  if (size <= 0) return Row{HeldType(handles().byte, false), 0, 1};
  if (contents.combiner == combiners.named || contents.is_f90()) return row_of_basic(type, size);
  if (contents.combiner == combiners.structure) return row_of_struct(contents, depth);
  // Any other constructor repeats its one type.
  if (contents.types.size() != 1) return std::nullopt;
  auto row = row_of(contents.types[0], depth + 1);
  if (!row || row->count <= 0) return std::nullopt;
  row->count = size / row->unit_bytes;
  return row;
}

std::optional<HeldType> without_gaps(Datatype type, bool& is_mixed) {
  auto row = row_of(type, 0);
  if (!row || row->count > int_max) return std::nullopt;
  is_mixed = row->unit.is_own();
  if (row->count == 1 && !is_mixed) return std::move(row->unit);
  Datatype contiguous{};
  if (real.Type_contiguous(static_cast<int>(row->count), row->unit.type(), &contiguous) != success) return std::nullopt;
  HeldType held(contiguous, true);
  if (real.Type_commit(&contiguous) != success) return std::nullopt;
  return held;
}

struct KeptGapless {
  FormPointer form;  // another datatype under the same handle has another form
  std::shared_ptr<const GaplessType> gapless;
};

struct GaplessCache {
  std::mutex mutex;
  std::list<KeptGapless> kept;  // the latest used first
};
GaplessCache& cache() {
  static auto* const types = new GaplessCache;
  return *types;
}

}  // namespace

GaplessType::~GaplessType() {
  if (is_own_) real.Type_free(&type_);
}

Result<std::shared_ptr<const GaplessType>> GaplessType::of(Datatype type, const FormPointer& form) {
  if (form->is_one_run && form->extent == form->size && form->true_lb == 0) {
    return std::make_shared<const GaplessType>(type, false, false);
  }
  {
    const std::lock_guard lock(cache().mutex);
    auto& kept = cache().kept;
    const auto found = std::ranges::find(kept, form, &KeptGapless::form);
    if (found != kept.end()) {
      kept.splice(kept.begin(), kept, found);
      return found->gapless;
    }
  }
  bool is_mixed = false;
  auto held = without_gaps(type, is_mixed);
  if (!held) {
    return fail(Code::unsupported, "a datatype of ", form->size,
                " bytes lies in a GPU's memory, and the MPI cannot say in one without gaps what it is made of");
  }
  const bool is_own = held->is_own();
  auto gapless = std::make_shared<const GaplessType>(held->release(), is_own, is_mixed);
  std::list<KeptGapless> dropped;  // freed when the lock is
  const std::lock_guard lock(cache().mutex);
  auto& kept = cache().kept;
  kept.push_front({form, gapless});
  if (kept.size() > kept_max) dropped.splice(dropped.begin(), kept, std::prev(kept.end()));
  return gapless;
}

// MPICH before 5 cuts messages of contiguous datatypes at any byte, and gives an error where that lies within an
// element of the receiver's.
bool GaplessType::is_cut_anywhere() const {
  static const bool anywhere = is_before_mpich_5();
  return is_mixed_ && anywhere;
}

void GaplessType::drop_kept() {
  std::list<KeptGapless> dropped;
  const std::lock_guard lock(cache().mutex);
  dropped.swap(cache().kept);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
