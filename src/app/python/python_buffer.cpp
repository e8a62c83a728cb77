#include "app/python/python_buffer.hpp"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/checked.hpp"

namespace spinloom::app {
namespace {

// DLPack's devices whose memory a host processor reaches.
constexpr int device_cpu = 1;
constexpr int device_cuda_host = 3;
constexpr int device_rocm_host = 11;
constexpr int device_cuda_managed = 13;

bool has_pointer_rows(const Py_buffer& view) {
  if (view.suboffsets == nullptr) return false;
  return std::any_of(view.suboffsets, view.suboffsets + view.ndim, [](Py_ssize_t offset) { return offset >= 0; });
}

// True if Python objects are among the items: looks for 'O' in a format of the struct module (PEP 3118), in which field
// names stand between colons.
bool holds_objects(const Py_buffer& view) {
  if (view.format == nullptr) return false;
  bool in_name = false;
  for (const char* at = view.format; *at != '\0'; ++at) {
    if (*at == ':') in_name = !in_name;
    if (*at == 'O' && !in_name) return true;
  }
  return false;
}

// A masked array's class is written in Python. Types written in C, as those of bytes, memoryviews and plain arrays are,
// need no search.
bool is_masked(nb::handle object) {
  if ((PyType_GetFlags(Py_TYPE(object.ptr())) & Py_TPFLAGS_HEAPTYPE) == 0) return false;
  for (const nb::handle ancestor : object.type().attr("__mro__")) {
    if (nb::cast<std::string_view>(ancestor.attr("__name__")) == "MaskedArray") return true;
  }
  return false;
}

bool is_on_host(nb::handle object) {
  const nb::object device = object.attr("__dlpack_device__")();
  const int kind = nb::cast<int>(nb::int_(device[0]));
  return kind == device_cpu || kind == device_cuda_host || kind == device_rocm_host || kind == device_cuda_managed;
}

// Returns a view of an array's items as bytes, for dtypes that NumPy does not export (dates); an invalid object if
// there is no such view.
nb::object as_bytes(nb::handle object) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view")) return {};
  const nb::object dtype = object.attr("dtype");
  if (nb::cast<bool>(dtype.attr("hasobject"))) return {};
  return object.attr("view")(nb::str("V{}").attr("format")(dtype.attr("itemsize")));
}

[[noreturn]] void refuse(const char* role, const char* why) { throw Raised{fail(Code::invalid, role, " ", why)}; }

}  // namespace

PythonBuffer::PythonBuffer(nb::handle object, Access access, const char* role, Place place) : role_(role) {
  if (is_masked(object)) {
    refuse(role, "is a masked array, and a layout does not know its mask; pass array.data or array.filled(value)");
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    take_buffer(object);
  } else if (place == Place::anywhere && nb::isinstance<DeviceMemory>(object)) {
    take_device(nb::cast<const DeviceMemory&>(object));
  } else if (nb::hasattr(object, "__dlpack_device__") ? !is_on_host(object)
                                                      : nb::hasattr(object, "__cuda_array_interface__")) {
    refuse(role,
           "lies in the memory of a GPU, which this call does not reach; copy it to the host first (CuPy: "
           "cupy.asnumpy(array), PyTorch: tensor.cpu())");
  } else if (nb::hasattr(object, "__dlpack__")) {
    take_tensor(object);
  } else {
    throw nb::type_error(text(role, " is of type ", nb::cast<std::string_view>(object.type().attr("__name__")),
                              ", which shows no memory; pass a NumPy array, bytes, bytearray, memoryview or a tensor "
                              "with DLPack (numpy.asarray may make one)")
                             .c_str());
  }
  if (access == Access::write && !writable_) {
    PyBuffer_Release(&view_);  // the destructor does not run
    refuse_writing();
  }
}

PythonBuffer::~PythonBuffer() { PyBuffer_Release(&view_); }

void PythonBuffer::refuse_writing() const {
  refuse(role_, "is read-only, as bytes and arrays without flags.writeable are; pass a copy of it, or a bytearray");
}

void PythonBuffer::take_buffer(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) {
    nb::python_error error;
    const nb::object bytes = error.matches(PyExc_ValueError) ? as_bytes(object) : nb::object();
    if (!bytes.is_valid()) throw error;
    if (PyObject_GetBuffer(bytes.ptr(), &view_, PyBUF_FULL_RO) != 0) throw nb::python_error();
  }
  const char* const complaint = has_pointer_rows(view_) ? "is an array of pointers to rows (suboffsets); copy it first"
                                : holds_objects(view_)  ? "holds references to Python objects, which are not data"
                                                        : nullptr;
  if (complaint != nullptr) {
    PyBuffer_Release(&view_);
    refuse(role_, complaint);
  }
  base_ = static_cast<std::byte*>(view_.buf);
  writable_ = view_.readonly == 0;
  contiguous_ = PyBuffer_IsContiguous(&view_, 'C') != 0;
  bytes_ = view_.len;
  if (view_.len == 0 || view_.strides == nullptr) {
    bytes_after_ = run_bytes_ = view_.len;
    return;
  }
  std::vector<Axis> axes;
  for (int d = 0; d < view_.ndim; ++d) axes.push_back({view_.shape[d], view_.strides[d]});
  measure(std::move(axes), view_.itemsize);
}

void PythonBuffer::take_tensor(nb::handle object) {
  nb::ndarray<> to_write;
  writable_ = nb::try_cast(object, to_write);
  if (!nb::try_cast(object, tensor_)) refuse(role_, "does not give its memory by DLPack");
  base_ = static_cast<std::byte*>(const_cast<void*>(tensor_.data()));
  const auto item_bytes = static_cast<int64_t>(tensor_.itemsize());
  bytes_ = static_cast<int64_t>(tensor_.size()) * item_bytes;
  if (bytes_ == 0) return;
  std::vector<Axis> axes;
  for (size_t d = 0; d < tensor_.ndim(); ++d) {
    axes.push_back({static_cast<int64_t>(tensor_.shape(d)), tensor_.stride(d) * item_bytes});
  }
  contiguous_ = is_contiguous(axes, item_bytes);
  measure(std::move(axes), item_bytes);
}

void PythonBuffer::take_device(const DeviceMemory& memory) {
  on_device_ = true;
  writable_ = memory.writable;
  // An address of the device: it is never followed here.
  base_ = reinterpret_cast<std::byte*>(memory.address);  // NOLINT(performance-no-int-to-ptr)
  if (memory.shape.size() != memory.strides.size()) refuse(role_, "has other numbers of lengths and of strides");
  std::vector<Axis> axes;
  bytes_ = memory.item_bytes;
  for (size_t d = 0; d < memory.shape.size(); ++d) {
    axes.push_back({memory.shape[d], memory.strides[d]});
    bytes_ = unwrap(checked::mul(bytes_, memory.shape[d]));
  }
  if (bytes_ == 0) return;
  contiguous_ = is_contiguous(axes, memory.item_bytes);
  measure(std::move(axes), memory.item_bytes);
}

// True if items follow each other in row-major order.
bool PythonBuffer::is_contiguous(const std::vector<Axis>& axes, int64_t item_bytes) {
  int64_t expected = item_bytes;
  for (size_t d = axes.size(); d-- > 0; expected *= axes[d].length) {
    if (axes[d].length != 1 && axes[d].stride != expected) return false;
  }
  return true;
}

// Finds the memory that the items span, and how they follow each other.
void PythonBuffer::measure(std::vector<Axis> axes, int64_t item_bytes) {
  bytes_after_ = run_bytes_ = item_bytes;
  for (Axis& axis : axes) {
    const int64_t span = (axis.length - 1) * axis.stride;
    (span < 0 ? bytes_before_ : bytes_after_) += std::abs(span);
    axis.stride = std::abs(axis.stride);
  }
  std::erase_if(axes, [](const Axis& axis) { return axis.length == 1; });
  std::ranges::sort(axes, {}, &Axis::stride);
  int64_t joined_bytes = run_bytes_;  // the bytes from the first to behind the last one of the dimensions seen
  for (const Axis& axis : axes) {
    if (axis.stride < joined_bytes) {
      axes_.clear();
      return;
    }
    joined_bytes += (axis.length - 1) * axis.stride;
    if (axes_.empty() && axis.stride == run_bytes_) {
      run_bytes_ *= axis.length;
    } else {
      axes_.push_back(axis);
    }
  }
  std::ranges::reverse(axes_);
}

// True if the bytes from offset `first` to offset `last` from base lie in one run.
bool PythonBuffer::is_in_one_run(int64_t first, int64_t last) const {
  int64_t place = first + bytes_before_;
  for (const Axis& axis : axes_) place -= std::min(place / axis.stride, axis.length - 1) * axis.stride;
  return place + (last - first) <= run_bytes_;
}

void PythonBuffer::check_gaps(const layout::Committed& layout, int64_t count, int64_t first, int64_t last) const {
  if (is_in_one_run(first, last)) return;
  const int64_t extent = std::abs(layout.type().extent());
  const bool is_stride_of_view =
      std::ranges::any_of(axes_, [&](const Axis& axis) { return extent % axis.stride == 0; }) || extent < run_bytes_;
  const bool is_gapless = unwrap(layout.packed_bytes(count)) == last - first;
  if (!is_gapless && (count == 1 || is_stride_of_view)) return;
  throw Raised{fail(
      Code::invalid, role_, " is a view with gaps (", run_bytes_, " bytes follow each other, then ",
      axes_.back().stride - run_bytes_, " do not belong to it), and ",
      is_gapless ? "the layout has no gaps" : text("elements of the layout follow each other every ", extent, " bytes"),
      ": it would take what lies in the gaps; use layout.from_array(view), or numpy.ascontiguousarray, "
      "or as_memory=True if those bytes are meant")};
}

std::byte* PythonBuffer::address_of(const layout::Committed& layout, int64_t count, int64_t offset,
                                    bool as_memory) const {
  const layout::oracle::Reach reach = unwrap(layout.reach(count));
  if (reach.first == reach.last) return base_;
  const int64_t first = unwrap(checked::add(offset, reach.first));
  const int64_t last = unwrap(checked::add(offset, reach.last));
  if (first < -bytes_before_ || last > bytes_after_) {
    throw Raised{fail(Code::invalid, role_, " holds ", bytes_before_ + bytes_after_, " bytes (", -bytes_before_, " to ",
                      bytes_after_, " from its first item); the layout needs ", last - first, " bytes (", first, " to ",
                      last, ")")};
  }
  if (!as_memory && !axes_.empty()) check_gaps(layout, count, first, last);
  return base_ + offset;
}

std::span<std::byte> PythonBuffer::packed(int64_t bytes) const {
  if (!contiguous_) throw Raised{fail(Code::invalid, role_, " is not contiguous")};
  if (bytes_ < bytes) {
    throw Raised{fail(Code::invalid, role_, " holds ", bytes_, " bytes, but ", bytes, " bytes are needed")};
  }
  return {base_, static_cast<size_t>(bytes)};
}

void check_apart(std::span<const std::byte> packed, const std::byte* base, const layout::Committed& layout,
                 int64_t count) {
  const layout::oracle::Reach reach = unwrap(layout.reach(count));
  const std::less<> before;
  if (!packed.empty() && before(packed.data(), base + reach.last) &&
      before(base + reach.first, packed.data() + packed.size())) {
    throw Raised{fail(Code::invalid, "the packed bytes and the array share memory; use another buffer")};
  }
}

}  // namespace spinloom::app
