// Tests of long messages, which wait until both of their ends are ready.
#include "portals/collective/graph.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spinloom::collective {
namespace {

constexpr uint32_t peer = 5;
constexpr uint64_t eager_bytes = 8;

Pieces piece(uint64_t bytes) {
  static std::array<uint8_t, 64> memory;
  return {{memory.data(), bytes}};
}

// A message to the peer, then one from it, each of so many bytes.
Graph both_ways(uint64_t bytes, bool optional = false) {
  Graph graph;
  graph.operations.push_back({.kind = VertexKind::send, .peer = peer, .from = piece(bytes), .optional = optional});
  graph.operations.push_back({.kind = VertexKind::receive, .peer = peer, .to = piece(bytes), .optional = optional});
  return graph;
}

std::vector<VertexKind> kinds_of(const Graph& graph) {
  std::vector<VertexKind> kinds;
  for (const Vertex& one : graph.operations) kinds.push_back(one.kind);
  return kinds;
}

TEST(Rendezvous, ShortMessagesStayAsTheyAre) {
  Graph graph = both_ways(eager_bytes);
  with_rendezvous(graph, eager_bytes, 1, Initiator::receiver);
  EXPECT_EQ(kinds_of(graph), (std::vector{VertexKind::send, VertexKind::receive}));
  EXPECT_TRUE(graph.operations[0].early);
  EXPECT_EQ(graph.number_of, (std::vector<uint32_t>{0, 1}));
}

TEST(Rendezvous, ASendWaitsUntilItsReceiverSaysThatItIsReady) {
  for (const bool optional : {false, true}) {
    Graph graph = both_ways(optional ? 1 : eager_bytes + 1, optional);
    with_rendezvous(graph, eager_bytes, 1, optional ? Initiator::sender : Initiator::receiver);
    ASSERT_EQ(kinds_of(graph),
              (std::vector{VertexKind::receive, VertexKind::send, VertexKind::receive, VertexKind::send}));
    EXPECT_TRUE(graph.operations[0].name.is_signal);
    EXPECT_EQ(graph.operations[1].all, std::vector<uint32_t>{0});
    EXPECT_FALSE(graph.operations[1].name.is_signal);
    EXPECT_TRUE(graph.operations[3].name.is_signal);
    EXPECT_TRUE(graph.operations[3].all.empty()) << "a receive is posted when the schedule starts";
    EXPECT_EQ(graph.operations[0].optional, optional);
    EXPECT_EQ(graph.number_of, (std::vector<uint32_t>{1, 2}));
  }
}

TEST(Rendezvous, AFetchWaitsUntilItsSenderSaysThatTheMemoryIsReady) {
  Graph graph = both_ways(eager_bytes + 1);
  with_rendezvous(graph, eager_bytes, 1, Initiator::sender);
  ASSERT_EQ(kinds_of(graph),
            (std::vector{VertexKind::send, VertexKind::expose, VertexKind::receive, VertexKind::fetch}));
  EXPECT_TRUE(graph.operations[0].name.is_signal);
  EXPECT_TRUE(graph.operations[1].name.is_exposed);
  EXPECT_EQ(graph.operations[3].all, std::vector<uint32_t>{2});
  EXPECT_EQ(graph.number_of, (std::vector<uint32_t>{1, 3}));
}

TEST(Rendezvous, OfShortMessagesOnlyTheFirstAreEarly) {
  Graph graph;
  for (const uint32_t number : {2u, 0u, 1u}) {
    graph.operations.push_back(
        {.kind = VertexKind::receive, .peer = peer, .name = {.message = number}, .to = piece(1)});
  }
  with_rendezvous(graph, eager_bytes, 2, Initiator::receiver);
  EXPECT_EQ(kinds_of(graph),
            (std::vector{VertexKind::receive, VertexKind::send, VertexKind::receive, VertexKind::receive}));
  EXPECT_FALSE(graph.operations[0].early);
  EXPECT_TRUE(graph.operations[2].early && graph.operations[3].early);
}

}  // namespace
}  // namespace spinloom::collective
