#include "mpi/abi/layer.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "mpi/world.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Layer& layer = *new Layer;  // calls come until the very end of the process

namespace {

int forget_comm(Comm comm, int, void*, void*) {
  const Lock lock;
  layer.forget_comm(comm);
  return success;
}

int copy_nothing(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}

// How many ranks run on this machine, where the launcher says so; 0: it does not.
uint32_t local_ranks() {
  for (const char* const name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    if (const char* const value = std::getenv(name)) return static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
  }
  return 0;
}

}  // namespace

// Empty if all went well, else why the layer stays off.
std::string Layer::begin() {
  library = &Library::of_process();
  settings = read_settings(environ);
  for (const std::string& complaint : settings.complaints) std::fprintf(stderr, "spinloom: %s\n", complaint.c_str());
  if (settings.off) return "SPINLOOM_MPI=off";
  library->learn();
  if (const std::string unknown = library->unknown_receives(); !unknown.empty()) {
    return "this MPI can receive by calls that are not known here: " + unknown;
  }
  int size = 0;
  int level = 0;
  Comm parent{};
  if (real.Comm_size(handles().comm_world, &size) != success ||
      real.Comm_rank(handles().comm_world, &rank) != success || real.Query_thread(&level) != success ||
      real.Comm_get_parent(&parent) != success) {
    return "the MPI does not say who this rank is";
  }
  if (size < 2) return "there is one rank only";
  if (parent != handles().comm_null) return "the ranks were started by MPI_Comm_spawn";
  const std::string name = world_name(settings.job, size);
  if (name.empty()) return "the launcher gives the job no name";
  if (!types.begin() ||
      real.Comm_create_keyval(&copy_nothing, &SPINLOOM_ABI::forget_comm, &comm_keyval_, nullptr) != success ||
      real.Comm_group(handles().comm_world, &world_group_) != success) {
    return "the MPI refuses attributes";
  }
  threaded = level >= thread_multiple;
  const spinloom::Status began =
      ship.begin(name, static_cast<uint32_t>(rank), static_cast<uint32_t>(size), local_ranks(), settings);
  return began.ok() ? "" : began.error().message;
}

void Layer::start() {
  try {
    why_off = begin();
    on = why_off.empty();
  } catch (const std::exception& trouble) {
    why_off = trouble.what();
  }
}

void Layer::stop() {
  if (on) {
    const Lock lock;
    poll_orphans();
    for (Orphan& orphan : orphans) real.Request_free(&orphan.request);
    if (has_own_comm_) real.Comm_free(&own_comm_);
    real.Group_free(&world_group_);
    ship.end();
  }
  report();
  on = false;
}

// One line for each rank, whole: ranks of several machines may write to one file.
void Layer::report() const {
  if (settings.report.empty()) return;
  std::FILE* const file = std::fopen(settings.report.c_str(), "a");
  if (file == nullptr) return;
  const Ship::Totals& totals = ship.totals();
  const std::string line =
      text("{\"rank\": ", rank, ", \"on\": ", on ? "true" : "false", ", \"why_off\": \"", why_off,
           "\", \"sent\": ", totals.sent, ", \"sent_bytes\": ", totals.sent_bytes, ", \"landed\": ", totals.landed,
           ", \"landed_bytes\": ", totals.landed_bytes, ", \"refused\": ", totals.refused, "}\n");
  std::fwrite(line.data(), 1, line.size(), file);
  std::fclose(file);
}

std::vector<int> Layer::ranks_of(Comm comm) const {
  int is_inter = 0;
  int size = 0;
  Group group{};
  if (real.Comm_test_inter(comm, &is_inter) != success) return {};
  if ((is_inter ? real.Comm_remote_group(comm, &group) : real.Comm_group(comm, &group)) != success) return {};
  if ((is_inter ? real.Comm_remote_size(comm, &size) : real.Comm_size(comm, &size)) != success) size = 0;
  std::vector<int> there(static_cast<size_t>(size));
  std::vector<int> ranks(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) there[static_cast<size_t>(i)] = i;
  if (real.Group_translate_ranks(group, size, there.data(), world_group_, ranks.data()) != success) ranks.clear();
  real.Group_free(&group);
  return ranks;
}

// Below zero for a process of another world, MPI_PROC_NULL, and what is no rank.
int Layer::world_rank(Comm comm, int rank_in_comm) {
  if (rank_in_comm < 0) return -1;
  const uint64_t key = key_of(comm);
  const std::vector<int>* ranks = ranks_.find(key);
  if (ranks == nullptr) {
    std::vector<int> made = ranks_of(comm);
    if (real.Comm_set_attr(comm, comm_keyval_, nullptr) != success) return -1;
    ranks = &ranks_.put(key, std::move(made));
  }
  return static_cast<size_t>(rank_in_comm) < ranks->size() ? (*ranks)[static_cast<size_t>(rank_in_comm)] : -1;
}

std::optional<Parcel> Layer::parcel_for(Place& place, int peer) {
  if (settings.path == Path::pass || place.count <= 0) return std::nullopt;
  const Form& form = *place.form;
  const int64_t bytes = place.capacity();
  if (bytes < settings.min_bytes || bytes == INT64_MAX) return std::nullopt;
  if (!form.known || form.record_bytes == 0 || form.contiguous(place.count) || bytes <= Record::most)
    return std::nullopt;
  const int to = world_rank(place.comm, peer);
  if (to < 0 || to == rank || !ship.can_reach(static_cast<uint32_t>(to))) return std::nullopt;
  return ship.prepare(bytes);
}

int Layer::announce(const Parcel& parcel, const Place& place, Mode mode, int peer, int tag, Request* request) {
  const void* const record = parcel.record();
  const auto length = static_cast<int>(place.form->record_bytes);
  const Datatype byte = handles().byte;
  Request own{};
  Request* const into = request == nullptr ? &own : request;
  int code = success;
  const bool at_once = request == nullptr && mode != Mode::synchronous;
  if (at_once) {
    code = mode == Mode::ready ? real.Rsend(record, length, byte, peer, tag, place.comm)
                               : real.Send(record, length, byte, peer, tag, place.comm);
  } else if (mode == Mode::synchronous) {
    code = real.Issend(record, length, byte, peer, tag, place.comm, into);
  } else if (mode == Mode::ready) {
    code = real.Irsend(record, length, byte, peer, tag, place.comm, into);
  } else {
    code = real.Isend(record, length, byte, peer, tag, place.comm, into);
  }
  if (code != success) {
    const Lock lock;
    ship.abandon(parcel);
    return code;
  }
  ship.load(parcel, {*place.form, place.count, place.buffer});
  if (request == nullptr && !at_once) return real.Wait(&own, status_ignore);
  return success;
}

Open* Layer::take(Request handle) {
  if (open.empty()) return nullptr;
  Open* const* const found = open.find(key_of(handle));
  if (found == nullptr) return nullptr;
  Open* const known = *found;
  if (threaded) open.erase(key_of(handle));
  return known;
}

void Layer::put_back(Request handle, Open* known) {
  if (threaded) open.put(key_of(handle), known);
}

void Layer::release(Request handle, Open* known) {
  if (!threaded) open.erase(key_of(handle));
  delete known;
}

void Layer::poll_orphans() {
  std::vector<Orphan> waiting;
  waiting.swap(orphans);
  for (Orphan& orphan : waiting) {
    int flag = 0;
    Status status{};
    const int code = real.Test(&orphan.request, &flag, &status);
    if (code == success && flag == 0) {
      orphans.push_back(orphan);
      continue;
    }
    if (code == success) (void)deliver(orphan.open->place, &status);
    if (orphan.open->persistent) real.Request_free(&orphan.request);
    delete orphan.open;
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
