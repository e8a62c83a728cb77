#include "predict/trace/text_call.hpp"

#include <algorithm>
#include <climits>
#include <tuple>

namespace spinloom::trace {
namespace {

// Reads the arguments of a line, one after the other.
class ArgumentReader {
 public:
  ArgumentReader(const TextForm& form, const TextLine& line) : line_(line) { call_.form = &form; }

  Result<TextCall> read() {
    SPL_TRY(count_fields());
    SPL_TRY(read_times());
    for (const char letter : call_.form->arguments) SPL_TRY(read_argument(letter));
    if (call_.form->arguments.starts_with("bb")) share_operand();
    if (call_.form->call == Call::Sendrecv_replace) share_buffer();
    return std::move(call_);
  }

 private:
  template <class Number>
  Result<Number> number(std::string_view what, std::string_view field) {
    const auto read = number_in<Number>(field);
    if (!read) return fail(Code::invalid, line_.name, ": ", what, " is '", field, "', and a number was expected");
    return *read;
  }
  Result<int64_t> integer(std::string_view what, std::string_view field, int64_t least = 0) {
    SPL_ASSIGN(const auto value, number<int64_t>(what, field));
    if (value < least || value > INT_MAX) return fail(Code::invalid, line_.name, ": ", what, " is ", value);
    return value;
  }

  Status read_times() {
    const std::string_view begin = line_.fields.front();
    const std::string_view end = line_.fields.back();
    call_.has_begin = begin != "-";  // MPI_Init began before there was a clock
    call_.has_end = end != "-";
    for (const auto& [has, field, to] :
         {std::tuple(call_.has_begin, begin, &call_.begin_ns), std::tuple(call_.has_end, end, &call_.end_ns)}) {
      if (!has) continue;
      const auto read = time_ns(field);
      if (!read) return fail(Code::invalid, line_.name, ": the time is '", field, "', and microseconds were expected");
      *to = *read;
    }
    if (call_.has_begin && call_.has_end && call_.end_ns < call_.begin_ns) {
      return fail(Code::invalid, line_.name, " ends at ", end, " and begins at ", begin, ", later than that");
    }
    return {};
  }

  // Some wrappers write only the addresses of lists of counts, not their contents.
  Status count_fields() {
    const std::string_view arguments = call_.form->arguments;
    const auto list_count =
        static_cast<size_t>(std::ranges::count_if(arguments, [](char one) { return one == 'v' || one == 'd'; }));
    const size_t count = line_.fields.size() - 2;
    if (count == arguments.size() + list_count) return {};
    call_.has_counts = list_count == 0;
    if (list_count != 0 && count == arguments.size()) return {};
    return fail(Code::invalid, line_.name, " has ", count, " fields between its times, and ",
                arguments.size() + list_count, " were expected");
  }

  std::string_view next() { return line_.fields[at_++]; }
  TextEnd& end() {
    if (call_.ends.empty()) call_.ends.emplace_back();
    return call_.ends.back();
  }

  Status read_argument(char letter) {
    switch (letter) {
      case 'b': {
        SPL_ASSIGN(const auto buffer, number<uint64_t>("a buffer's address", next()));
        call_.ends.emplace_back().buffer = buffer;
        return {};
      }
      case 'n': {
        SPL_ASSIGN(const auto count, integer("the count", next()));
        if (call_.ends.empty()) {
          call_.requests = count;
        } else {
          end().counts = {count};
        }
        return {};
      }
      case 'v': return read_list("a count", 0, end().counts);
      case 'd': return read_list("a displacement", INT_MIN, end().displacements);
      case 't': return read_type();
      case 'p': {
        // The second peer of a call with one buffer is that of its second end.
        if (call_.ends.size() < ++peers_) call_.ends.resize(peers_);
        SPL_ASSIGN(const auto peer, integer("the rank", next(), INT_MIN));
        end().peer = static_cast<int32_t>(peer);
        return {};
      }
      case 'g': {
        SPL_ASSIGN(const auto tag, integer("the tag", next(), INT_MIN));
        end().tag = static_cast<int32_t>(tag);
        return {};
      }
      case 'r': {
        SPL_ASSIGN(const auto root, integer("the root", next(), INT_MIN));
        call_.root = static_cast<int32_t>(root);
        return {};
      }
      case 'c': return read_comm();
      case 'q': {
        SPL_ASSIGN(call_.request, number<uint64_t>("the request's address", next()));
        if (!call_.form->arguments.starts_with("nq")) call_.requests = 1;
        return {};
      }
      case 'm': {
        SPL_ASSIGN(call_.comm_place, number<uint64_t>("the communicator's address", next()));
        return {};
      }
      case 'i': {
        SPL_ASSIGN(const auto value, integer("an argument", next(), INT_MIN));
        call_.numbers.push_back(value);
        return {};
      }
      default: next(); return {};
    }
  }
  Status read_list(std::string_view what, int64_t least, std::vector<int64_t>& list) {
    SPL_TRY(number<uint64_t>("a list's address", next()));
    if (!call_.has_counts) return {};
    for (const std::string_view field : split_at(next(), ',')) {
      SPL_ASSIGN(const auto value, integer(what, field, least));
      list.push_back(value);
    }
    return {};
  }

  Status read_type() {
    const std::string_view field = next();
    const auto parts = split_at(field, ',');
    if (parts.size() != 3) {
      return fail(Code::invalid, line_.name, ": the type is '", field, "', and number,size,extent were expected");
    }
    TextType& type = end().type;
    SPL_ASSIGN(type.number, number<uint64_t>("the type", parts[0]));
    SPL_ASSIGN(type.size, integer("the type's size", parts[1]));
    SPL_ASSIGN(const auto extent, number<uint64_t>("the type's extent", parts[2]));
    // From Fortran the upper half of an extent may be anything.
    type.extent = extent > INT_MAX ? static_cast<int32_t>(static_cast<uint32_t>(extent)) : static_cast<int64_t>(extent);
    return {};
  }

  Status read_comm() {
    const std::string_view field = next();
    const auto parts = split_at(field, ',');
    if (parts.size() != 3) {
      return fail(Code::invalid, line_.name, ": the communicator is '", field, "', and number,rank,size were expected");
    }
    // Handles of Fortran are ints. MPICH's handles of C are ints too, written as longs.
    if (parts[0].starts_with('-')) {
      SPL_ASSIGN(const auto handle, number<int64_t>("the communicator", parts[0]));
      call_.comm.handle = static_cast<uint64_t>(handle);
    } else {
      SPL_ASSIGN(call_.comm.handle, number<uint64_t>("the communicator", parts[0]));
    }
    // The lower half is the same for both.
    if (call_.comm.handle >> 32 == UINT32_MAX) call_.comm.handle &= UINT32_MAX;
    SPL_ASSIGN(const auto rank, integer("the rank in the communicator", parts[1]));
    SPL_ASSIGN(const auto size, integer("the communicator's size", parts[2], 1));
    if (rank >= size) return fail(Code::invalid, line_.name, ": rank ", rank, " of a communicator of ", size);
    call_.has_comm = true;
    call_.comm.rank = static_cast<uint32_t>(rank);
    call_.comm.size = static_cast<uint32_t>(size);
    return {};
  }

  // Both buffers of a reduction have one count and one type.
  void share_operand() {
    call_.ends[0].counts = call_.ends[1].counts;
    call_.ends[0].type = call_.ends[1].type;
  }
  void share_buffer() {
    const TextEnd& first = call_.ends[0];
    TextEnd& second = call_.ends[1];
    second.buffer = first.buffer;
    second.counts = first.counts;
    second.type = first.type;
  }

  const TextLine& line_;
  TextCall call_;
  size_t at_ = 1;
  size_t peers_ = 0;
};

}  // namespace

Result<TextCall> read_call(const TextForm& form, const TextLine& line) { return ArgumentReader(form, line).read(); }

}  // namespace spinloom::trace
