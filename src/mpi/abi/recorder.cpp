#include "mpi/abi/recorder.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "memory/layout/blob.hpp"
#include "memory/layout/text.hpp"
#include "mpi/abi/topology.hpp"
#include "mpi/abi/types.hpp"
#include "mpi/abi/version.hpp"
#include "mpi/messages/settings.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Recorder& recorder = *new Recorder;  // calls come until the very end of the process

namespace {

constexpr size_t recorded_blob_bytes_max = size_t{64} << 20;
constexpr size_t text_bytes_max = 400;

int forget_type(Datatype type, int, void*, void*) {
  recorder.forget_type(type);
  return success;
}
int forget_comm(Comm comm, int, void*, void*) {
  recorder.forget_comm(comm);
  return success;
}
int copies_no_type(Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}
int copies_no_comm(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!line.empty() && line.back() == '\0') line.pop_back();
  for (char& letter : line) letter = letter == '\0' ? ' ' : letter;
  return line;
}

std::string first_line_of_version() { return library_version().substr(0, library_version().find_first_of("\r\n")); }

uint64_t unix_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

const clockid_t Recorder::clock_ = read_settings(environ).records_cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;

void Recorder::begin(uint64_t begin_ns) {
  try {
    if (is_on_ || writer_ != nullptr || !open_writer(begin_ns)) return;
    is_on_ = true;
    (void)comm(handles().comm_world);
    (void)comm(handles().comm_self);
    byte_type_ = type(handles().byte);
    pthread_atfork(nullptr, nullptr, [] { recorder.is_on_ = false; });
    note(trace::Call::Init, trace::CallForm::blocking, begin_ns, success, [](const trace::Signature&) {});
  } catch (...) {
    stop();
  }
}

bool Recorder::open_writer(uint64_t begin_ns) {
  const Settings settings = read_settings(environ);
  library_ = &Library::of_process();
  library_->find_parts();
  int rank = 0;
  int ranks = 0;
  int level = 0;
  Comm parent{};
  if (real.Comm_size(handles().comm_world, &ranks) != success ||
      real.Comm_rank(handles().comm_world, &rank) != success || real.Query_thread(&level) != success ||
      real.Comm_get_parent(&parent) != success || parent != handles().comm_null ||
      real.Comm_group(handles().comm_world, &world_group_) != success ||
      real.Type_create_keyval(&copies_no_type, &SPINLOOM_ABI::forget_type, &type_keyval_, nullptr) != success ||
      real.Comm_create_keyval(&copies_no_comm, &SPINLOOM_ABI::forget_comm, &comm_keyval_, nullptr) != success) {
    return false;
  }
  is_threaded_ = level >= thread_multiple;
  const bool is_cpu_time = clock_ != CLOCK_MONOTONIC;
  // Writes why nothing is recorded where the user of the trace looks; the program's own output is left alone.
  const auto refuse = [&](std::string_view why) {
    std::ofstream(text(settings.record, "/rank-", rank, ".trouble"), std::ios::app) << why << '\n';
    return false;
  };
  if (is_threaded_ && is_cpu_time) {
    return refuse("--cpu-time counts one thread, and the program asks for MPI_THREAD_MULTIPLE: record without it");
  }
  auto writer = trace::Writer::create(settings.record, {static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks),
                                                        begin_ns, unix_ns() - (now_ns() - begin_ns), host_name(),
                                                        first_line_of_version(), command_line(), is_cpu_time});
  if (!writer) return refuse(writer.error().message);
  writer_ = std::move(*writer);
  return true;
}

void Recorder::end(uint64_t begin_ns, int code) {
  note(trace::Call::Finalize, trace::CallForm::blocking, begin_ns, code, [](const trace::Signature&) {});
  if (!is_on_) return;
  is_on_ = false;
  try {
    writer_->end();
  } catch (...) {
    stop();
  }
}

void Recorder::stop() {
  is_on_ = false;
  if (writer_ != nullptr) writer_->stop("there is no memory left");
}

void Recorder::clear(trace::Call call, trace::CallForm form, int code) {
  signature_.call = call;
  signature_.form = form;
  signature_.in_place = false;
  signature_.comm = signature_.window = trace::none;
  signature_.peer = signature_.receive_peer = trace::any;
  signature_.tag = signature_.receive_tag = 0;
  signature_.error = code;
  signature_.sends.clear();
  signature_.receives.clear();
  signature_.requests.clear();
  signature_.matches.clear();
  is_poll_ = false;
}

void Recorder::take_freed_types() {
  last_type_key_ = no_key;
  freed_types_.take_each([this](uint64_t key) { types_.erase(key); });
}

void Recorder::take_freed_comms() {
  last_comm_key_ = no_key;
  freed_comms_.take_each([this](uint64_t key) { comms_.erase(key); });
}

uint32_t Recorder::find_type(Datatype type) {
  if (type == handles().type_null) return trace::none;
  if (freed_types_.any()) take_freed_types();
  const uint64_t key = key_of(type);
  const uint32_t* found = types_.find(key);
  const uint32_t number = found != nullptr ? *found : add_type(type);
  last_type_key_ = key;
  last_type_ = number;
  return number;
}

void Recorder::drop_type_attribute(Datatype type) {
  const Guard guard(*this);
  if (freed_types_.any()) take_freed_types();
  // Basic types, and types that are not known, do not have the attribute: to delete it would be an error.
  if (types_.find(key_of(type)) != nullptr && !is_basic_type(type)) real.Type_delete_attr(type, type_keyval_);
}

void Recorder::drop_comm_attributes(Comm comm) {
  const Guard guard(*this);
  if (freed_comms_.any()) take_freed_comms();
  const bool stays = comm == handles().comm_world || comm == handles().comm_self;
  if (!stays && comms_.find(key_of(comm)) != nullptr) real.Comm_delete_attr(comm, comm_keyval_);
}

uint32_t Recorder::add_type(Datatype type) {
  trace::TypeEntry entry;
  Count size = 0;
  Count lb = 0;
  Count extent = 0;
  if (real.Type_size_x(type, &size) != success || real.Type_get_extent_x(type, &lb, &extent) != success) {
    return trace::none;
  }
  const bool is_basic = is_basic_type(type);
  char name[1024] = {};
  int length = 0;
  if (real.Type_get_name(type, name, &length) == success) entry.name = name;
  entry.size_bytes = size;
  entry.extent_bytes = extent;
  entry.signature_hash = sequence_of_type(type).hash();
  const auto decoded = is_basic ? std::nullopt : decode_type(type);
  if (decoded) {
    entry.text = layout::print_beginning(*decoded, text_bytes_max);
    const auto blob = layout::Blob::build(*decoded);
    if (blob && blob->bytes().size() <= recorded_blob_bytes_max)
      entry.blob.assign(blob->bytes().begin(), blob->bytes().end());
  }
  const uint32_t number = writer_->add(entry);
  if (number >= extents_.size()) extents_.resize(number + 1);
  extents_[number] = extent;
  // Basic types are never freed. Without the attribute the handle must not be remembered.
  if (is_basic || real.Type_set_attr(type, type_keyval_, nullptr) == success) types_.put(key_of(type), number);
  return number;
}

const Recorder::CommFacts& Recorder::find_comm(Comm comm, uint32_t parent) {
  static const CommFacts nothing;
  if (comm == handles().comm_null) return nothing;
  if (freed_comms_.any()) take_freed_comms();
  const uint64_t key = key_of(comm);
  const CommFacts* found = comms_.find(key);
  if (found == nullptr) {
    const CommFacts facts = add_comm(comm, parent);
    if (facts.number == trace::none) return nothing;
    found = &comms_.put(key, facts);
  }
  last_comm_key_ = key;
  last_comm_ = found;
  return *found;
}

std::vector<uint32_t> Recorder::world_ranks(Group group, int size) const {
  std::vector<int> ranks_in_group(static_cast<size_t>(size));
  std::vector<int> in_world(static_cast<size_t>(size), undefined);
  for (int i = 0; i < size; ++i) ranks_in_group[static_cast<size_t>(i)] = i;
  if (real.Group_translate_ranks(group, size, ranks_in_group.data(), world_group_, in_world.data()) != success)
    in_world.clear();
  std::vector<uint32_t> ranks(static_cast<size_t>(size), trace::none);
  for (size_t i = 0; i < in_world.size(); ++i) {
    if (in_world[i] >= 0) ranks[i] = static_cast<uint32_t>(in_world[i]);
  }
  return ranks;
}

Recorder::CommFacts Recorder::add_comm(Comm comm, uint32_t parent) {
  CommFacts facts;
  trace::CommEntry entry;
  entry.parent = parent;
  int is_inter = 0;
  Group group{};
  if (real.Comm_test_inter(comm, &is_inter) != success || real.Comm_size(comm, &facts.size) != success ||
      real.Comm_rank(comm, &facts.rank) != success || real.Comm_group(comm, &group) != success) {
    return {};
  }
  entry.rank = static_cast<uint32_t>(facts.rank);
  entry.world_ranks = world_ranks(group, facts.size);
  real.Group_free(&group);
  facts.peers = facts.size;
  facts.is_inter = is_inter != 0;
  if (facts.is_inter) {
    if (real.Comm_remote_size(comm, &facts.peers) != success || real.Comm_remote_group(comm, &group) != success) {
      return {};
    }
    entry.remote_ranks = world_ranks(group, facts.peers);
    real.Group_free(&group);
  } else {
    const Neighbours neighbours = neighbours_of(comm);
    entry.has_topology = neighbours.is_known;
    for (const int rank : neighbours.from) entry.sources.push_back(peer(rank));
    for (const int rank : neighbours.to) entry.destinations.push_back(peer(rank));
    facts.sources = static_cast<int>(neighbours.from.size());
    facts.destinations = static_cast<int>(neighbours.to.size());
    int topology = undefined;
    int dimensions = 0;
    if (real.Topo_test(comm, &topology) == success && topology == cartesian &&
        real.Cartdim_get(comm, &dimensions) == success && dimensions > 0) {
      const auto n = static_cast<size_t>(dimensions);
      std::vector<int> periods(n);
      std::vector<int> place(n);
      entry.dims.resize(n);
      if (real.Cart_get(comm, dimensions, entry.dims.data(), periods.data(), place.data()) != success) {
        entry.dims.clear();
      }
    }
  }
  const bool stays = comm == handles().comm_world || comm == handles().comm_self;
  if (!stays && real.Comm_set_attr(comm, comm_keyval_, nullptr) != success) return {};
  facts.number = writer_->add(entry);
  return facts;
}

trace::Match Recorder::match_of(const Status& status, uint32_t request) const {
  return {request, peer(status.source), tag(status.tag), bytes_of(status, real)};
}

// Returns a match that says whether a request, for which the program has called MPI_Cancel, was cancelled.
trace::Match Recorder::cancel_of(const Status& status, uint32_t request) {
  int is_cancelled = 0;
  if (real.Test_cancelled(&status, &is_cancelled) != success) is_cancelled = 0;
  return {request, is_cancelled != 0 ? trace::cancelled : trace::any, trace::any, 0};
}

void Recorder::note_ended(trace::Signature& signature, uint64_t request, uint32_t slot, const Status* status) {
  if (slot == Slots::none) return;
  Slots::Slot& ended = slots_.at(slot);
  ended.is_claimed = false;
  if (ended.is_persistent && !ended.is_active) return;
  signature.requests.push_back(slot);
  if (status != nullptr) {
    const trace::Match cancel = ended.is_cancelling ? cancel_of(*status, slot) : trace::Match();
    const bool is_met = ended.has_wildcard && cancel.source != trace::cancelled;
    if (ended.has_wildcard || ended.is_cancelling)
      signature.matches.push_back(is_met ? match_of(*status, slot) : cancel);
  }
  if (ended.is_cancelling) slots_.set_cancelling(slot, false);
  if (ended.is_persistent) {
    ended.is_active = false;
  } else {
    slots_.remove(request, slot);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
