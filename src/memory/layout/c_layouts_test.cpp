// The functions of spinloom/layout.h over all layouts.
#include "memory/layout/oracle.hpp"
#include "memory/layout/testing/layout_ways.hpp"
#include "memory/layout/text.hpp"
#include "spinloom/layout.h"

namespace spinloom::layout {
namespace {

using namespace test;

Status status_of(spl_layout_status status) {
  return status == SPL_LAYOUT_OK ? Status() : fail(Code::mismatch, spl_layout_last_error());
}

struct Free {
  void operator()(spl_layout* layout) const { spl_layout_free(layout); }
};
using LayoutPointer = std::unique_ptr<spl_layout, Free>;

Result<LayoutPointer> layout_of(const Type& type) {
  spl_layout* made = nullptr;
  SPL_TRY(status_of(spl_layout_from_text(print(type).c_str(), &made)));
  LayoutPointer kept(made);
  SPL_TRY(status_of(spl_layout_commit(made)));
  return kept;
}

class CMover final : public Mover {
 public:
  CMover(LayoutPointer from, int64_t from_count, LayoutPointer to, int64_t to_count)
      : from_(std::move(from)), to_(std::move(to)), from_count_(from_count), to_count_(to_count) {}

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    const bool is_first = !std::exchange(has_moved_, true);  // the first cut is the whole message
    if (!to_) {
      return status_of(is_first
                           ? spl_layout_pack(from_.get(), from_count_, from.base, to.base)
                           : spl_layout_pack_range(from_.get(), from_count_, from.base, cut.first, cut.last, to.base));
    }
    if (!from_) {
      return status_of(is_first
                           ? spl_layout_unpack(to_.get(), to_count_, to.base, from.base)
                           : spl_layout_unpack_range(to_.get(), to_count_, to.base, cut.first, cut.last, from.base));
    }
    return status_of(spl_layout_copy(from_.get(), from_count_, from.base, to_.get(), to_count_, to.base));
  }

 private:
  LayoutPointer from_;
  LayoutPointer to_;
  int64_t from_count_;
  int64_t to_count_;
  bool has_moved_ = false;
};

Result<MoverPointer> open(const Side& from, const Side& to, Random&) {
  LayoutPointer from_layout;
  LayoutPointer to_layout;
  if (!from.is_packed()) {
    SPL_ASSIGN(from_layout, layout_of(*from.type));
  }
  if (!to.is_packed()) {
    if (*oracle::overlaps(*to.type, to.count)) return fail(Code::unsupported, "it writes a byte twice");
    SPL_ASSIGN(to_layout, layout_of(*to.type));
  }
  return MoverPointer(std::make_unique<CMover>(std::move(from_layout), from.count, std::move(to_layout), to.count));
}

// Refused: the unpack of a type that writes a byte twice.
SPINLOOM_LAYOUT_SUITE(CLayouts,
                      (std::vector<LayoutWay>{{.name = "calls", .open = open, .messages = 80, .refuses = 1}}));

}  // namespace
}  // namespace spinloom::layout
