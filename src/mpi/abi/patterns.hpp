// Patterns - which blocks of a program's memory a collective call moves between which ranks.
//
// Contract: a pattern is called with a Team and a sink, whose send() and receive() take what this rank sends and
//   receives, in an order in which the messages of any two ranks meet.
// Threads: the caller's lock: types are looked up. Time: none.
#pragma once

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

inline int64_t extent_of(Datatype type) {
  const Form& form = *layer.types.form(type);
  if (form.is_known) return form.extent;
  Count lower = 0;
  Count extent = 0;
  return real.Type_get_extent_x(type, &lower, &extent) == success ? extent : 0;
}

// The blocks that a rank sends or receives, by peers: of one size (Blocks), of several sizes (BlocksV), or of several
// types as well (BlocksW).
struct Blocks {
  const void* buffer;
  int64_t count;
  Datatype type;
  [[nodiscard]] void* at(int i) const {
    return const_cast<char*>(static_cast<const char*>(buffer)) + i * count * extent_of(type);
  }
};
template <class N>
struct BlocksV {
  const void* buffer;
  const N* counts;
  const Displacement<N>* displs;
  Datatype type;
  [[nodiscard]] void* at(int i) const {
    return const_cast<char*>(static_cast<const char*>(buffer)) + displs[i] * extent_of(type);
  }
};
template <class N, class Disp>
struct BlocksW {
  const void* buffer;
  const N* counts;
  const Disp* displs;
  const Datatype* types;
};

template <class Sink>
void send(Sink& sink, int rank, const Blocks& from, int i) {
  sink.send(rank, from.at(i), from.count, from.type);
}
template <class Sink>
void receive(Sink& sink, int rank, const Blocks& to, int i) {
  sink.receive(rank, to.at(i), to.count, to.type);
}
template <class Sink, class N>
void send(Sink& sink, int rank, const BlocksV<N>& from, int i) {
  sink.send(rank, from.at(i), from.counts[i], from.type);
}
template <class Sink, class N>
void receive(Sink& sink, int rank, const BlocksV<N>& to, int i) {
  sink.receive(rank, to.at(i), to.counts[i], to.type);
}
template <class Sink, class N, class Disp>
void send(Sink& sink, int rank, const BlocksW<N, Disp>& from, int i) {
  sink.send(rank, static_cast<const char*>(from.buffer) + from.displs[i], from.counts[i], from.types[i]);
}
template <class Sink, class N, class Disp>
void receive(Sink& sink, int rank, const BlocksW<N, Disp>& to, int i) {
  sink.receive(rank, const_cast<char*>(static_cast<const char*>(to.buffer)) + to.displs[i], to.counts[i], to.types[i]);
}

template <class Out, class In>
struct AllToAll {
  Out out;
  In in;
  template <class Sink>
  void operator()(const Team& team, Sink&& sink) const {
    const bool swaps = out.buffer == in_place;
    if constexpr (requires { sink.swap(); }) {
      if (swaps) sink.swap();
    }
    for (int step = swaps ? 1 : 0; step < team.size; ++step) {
      const int from = (team.rank + team.size - step) % team.size;
      const int to = (team.rank + step) % team.size;
      receive(sink, team.peers[from], in, from);
      send(sink, team.peers[to], swaps ? in : out, to);
    }
  }
};

template <class In>
auto gather(const void* out, int64_t count, Datatype type, const In& in, int root) {
  return [=](const Team& team, auto&& sink) {
    const bool is_root = team.rank == root;
    for (int step = 0; is_root && step < team.size; ++step) {
      const int from = (root + step) % team.size;
      if (from != root || out != in_place) receive(sink, team.peers[from], in, from);
    }
    if (!is_root || out != in_place) sink.send(team.peers[root], out, count, type);
  };
}

template <class Out>
auto scatter(const Out& out, void* in, int64_t count, Datatype type, int root) {
  return [=](const Team& team, auto&& sink) {
    const bool is_root = team.rank == root;
    for (int step = 0; is_root && step < team.size; ++step) {
      const int to = (root + step) % team.size;
      if (to != root || in != in_place) send(sink, team.peers[to], out, to);
    }
    if (!is_root || in != in_place) sink.receive(team.peers[root], in, count, type);
  };
}

template <class In>
auto gather_to_all(const void* out, int64_t count, Datatype type, const In& in) {
  return [=](const Team& team, auto&& sink) {
    for (int step = out == in_place ? 1 : 0; step < team.size; ++step) {
      const int from = (team.rank + team.size - step) % team.size;
      const int to = (team.rank + step) % team.size;
      receive(sink, team.peers[from], in, from);
      if (out == in_place) {
        send(sink, team.peers[to], in, team.rank);
      } else {
        sink.send(team.peers[to], out, count, type);
      }
    }
  };
}

// If there are few ranks, the root sends the message to each. With more, and open slot tables, a rank that has received
// the message sends it on, along a binomial tree. A rank must then wait for the message before it sends, which only a
// blocking call may do; in other calls the root sends to all.
inline auto broadcast(void* buffer, int64_t count, Datatype type, int root, Completion completion) {
  return [=](const Team& team, auto&& sink) {
    constexpr int few_ranks = 4;
    if (team.size > few_ranks && team.slot_tables.are_open() && completion == Completion::blocking) {
      const int own_number = (team.rank + team.size - root) % team.size;
      const auto peer = [&](int number) { return team.peers[(number + root) % team.size]; };
      int reach = own_number & -own_number;  // this rank hands the message on to ranks less than `reach` behind itself
      if (own_number == 0) {
        for (reach = 1; reach < team.size;) reach *= 2;
      } else {
        sink.receive(peer(own_number - reach), buffer, count, type);
        if constexpr (requires { sink.relay(); }) sink.relay();
      }
      for (int step = reach / 2; step > 0; step /= 2) {
        if (own_number + step < team.size) sink.send(peer(own_number + step), buffer, count, type);
      }
      return;
    }
    if (team.rank != root) {
      sink.receive(team.peers[root], buffer, count, type);
      return;
    }
    for (int step = 1; step < team.size; ++step) sink.send(team.peers[(root + step) % team.size], buffer, count, type);
  };
}

template <class Out, class In>
struct AmongNeighbours {
  AlltoallForm form;
  Completion completion;
  Out out;
  In in;
  template <class Sink>
  void operator()(const Team& team, Sink&& sink) const {
    const Neighbours& neighbours = team.neighbours;
    for (const int i : neighbours.order(form, completion).slots) {
      if (neighbours.from[i] >= 0) receive(sink, team.peers[neighbours.from[i]], in, i);
    }
    for (int i = 0; i < static_cast<int>(neighbours.to.size()); ++i) {
      if (neighbours.to[i] >= 0) send(sink, team.peers[neighbours.to[i]], out, i);
    }
  }
};

// Here any order of receives is right, because a sender sends the same bytes to all of its neighbours.
template <class In>
auto gather_from_neighbours(const void* out, int64_t count, Datatype type, const In& in) {
  return [=](const Team& team, auto&& sink) {
    const Neighbours& neighbours = team.neighbours;
    for (int i = 0; i < static_cast<int>(neighbours.from.size()); ++i) {
      if (neighbours.from[i] >= 0) receive(sink, team.peers[neighbours.from[i]], in, i);
    }
    for (const int to : neighbours.to) {
      if (to >= 0) sink.send(team.peers[to], out, count, type);
    }
  };
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
