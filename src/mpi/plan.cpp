#include "mpi/plan.hpp"

#include "mpi/record.hpp"

namespace spinloom::mpi {
namespace {

// A packed message moves its own lines between the cores, twice; one that lies where it is moves the lines that it
// touches, once, and no core packs while another unpacks.
constexpr double spread_most = 2.2;

}  // namespace

Choice choose(const Settings& settings, const Form& form, int64_t count, int64_t bytes, bool can_map) {
  if (settings.path == Path::pass) return {Way::pass, "asked for"};
  if (bytes < settings.min_bytes || bytes <= Record::most) return {Way::pass, "short"};
  if (!form.known) return {Way::pass, "a type that is not known here"};
  if (form.record_bytes == 0) return {Way::pass, "no record ends where an element ends"};
  const bool contiguous = form.contiguous(count);
  if (settings.path == Path::mapped && can_map) return {Way::mapped, "asked for"};
  if (contiguous) return {Way::pass, "contiguous"};
  if (settings.path != Path::automatic) return {Way::staged, "asked for"};
  if (form.spread > spread_most) return {Way::staged, "it touches many more lines than it fills"};
  if (can_map) return {Way::mapped, "it touches few lines more than it fills"};
  return {Way::staged, cannot_be_mapped};
}

}  // namespace spinloom::mpi
