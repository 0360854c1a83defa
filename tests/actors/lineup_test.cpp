#include "actors/nodes/lineup.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/rounds.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Returns a spec with only the parts that a lineup needs.
RunSpec spec_of(const RoundShape& shape, std::vector<double> work) {
  const auto rounds = std::make_shared<Rounds>(*Rounds::make(shape));
  RunSpec spec;
  spec.work = std::move(work);
  spec.round = [rounds](std::int64_t first, std::int64_t left) { return rounds->at(first, left); };
  spec.evaluation = evaluation_round(*rounds->of_one_step(), 1);
  const int devices = shape.stages * shape.replicas;
  spec.executors.resize(static_cast<std::size_t>(devices));
  spec.sections.assign(static_cast<std::size_t>(shape.stages), {models::Section()});
  return spec;
}

/// Returns nodes a, b, c, ... with these numbers of cores.
std::vector<NodeHere> nodes_with(const std::vector<int>& cores) {
  std::vector<NodeHere> nodes;
  for (const int count : cores) {
    NodeHere& node = nodes.emplace_back();
    node.incarnation = nodes.size();
    node.name = std::string(1, static_cast<char>('a' + nodes.size() - 1));
    node.inventory.cores = count;
  }
  return nodes;
}

Lineup lineup_of(const RunSpec& spec, const std::vector<NodeHere>& nodes, int most = 100,
                 const Lineup& before = {}) {
  const auto sharing = sharing_of(spec, nodes, most);
  return line_up(spec, nodes, share_out(sharing, Search::thorough), before);
}

std::string text_of(const RunSpec& spec, const std::vector<int>& cores, int most = 100) {
  return to_text(lineup_of(spec, nodes_with(cores), most));
}

const RoundShape four_stages{.stages = 4, .micro_batches = 4};
const RoundShape two_by_two{.stages = 2, .replicas = 2, .micro_batches = 4, .groups = 4};

}  // namespace

TEST_CASE("equal nodes get consecutive devices in the order of their arrival", "[actors]") {
  const auto spec = spec_of(four_stages, {});
  CHECK(text_of(spec, {1, 1, 1, 1, 1}) == "a: device 0; b: device 1; c: device 2; d: device 3");
  CHECK(text_of(spec, {1, 1, 1}) == "a: device 0 1; b: device 2; c: device 3");
  CHECK(text_of(spec, {1, 1, 1}, 2) == "a: device 0 1; b: device 2 3");
  CHECK(text_of(spec, {1}) == "a: device 0 1 2 3");
}

TEST_CASE("the busiest node has the least possible work for its cores", "[actors]") {
  const auto spec = spec_of(four_stages, {3, 1, 1, 1});
  // The heavy stage goes to the node that came last.
  CHECK(text_of(spec, {1, 1, 1, 3}) == "d: device 0; a: device 1; b: device 2; c: device 3");
  CHECK(lineup_of(spec, nodes_with({1, 1, 1, 3}), 4).busiest == 1);
  // A node with three cores gets as much as three nodes with one.
  CHECK(text_of(spec_of(four_stages, {}), {1, 3}) == "b: device 0 1 2; a: device 3");
  // If there are more nodes than devices, the best ones are taken.
  const auto chosen = lineup_of(spec, nodes_with({1, 1, 1, 1, 2, 3, 2, 2}));
  CHECK(chosen.busiest == 1);
  CHECK(chosen.nodes.front().name == "f");
}

TEST_CASE("replicas of a stage are on equal nodes", "[actors]") {
  const auto lineup = lineup_of(spec_of(two_by_two, {2, 1}), nodes_with({2, 2, 1, 1}));
  CHECK(lineup.busiest == 1);
  CHECK(lineup.placement.optimizers == std::vector<int>{0, 1});
}

TEST_CASE("a node keeps its device if the shares allow it", "[actors]") {
  const auto spec = spec_of(four_stages, {});
  const auto nodes = nodes_with({1, 1, 1, 1, 1});
  const auto four = std::vector(nodes.begin(), nodes.begin() + 4);
  const auto before = lineup_of(spec, four);
  // The first node leaves and another comes: no other node moves.
  const auto others = std::vector(nodes.begin() + 1, nodes.end());
  CHECK(to_text(lineup_of(spec, others, 100, before)) ==
        "e: device 0; b: device 1; c: device 2; d: device 3");
  // The first node leaves and none comes.
  const auto left = std::vector(nodes.begin() + 1, nodes.begin() + 4);
  CHECK(to_text(lineup_of(spec, left, 100, before)) == "b: device 0 1; c: device 2; d: device 3");
  // A share belongs to the kind of node that it was made for.
  auto unequal = nodes_with({1, 1, 1, 3});
  std::ranges::reverse(unequal);
  const auto heavy = spec_of(four_stages, {3, 1, 1, 1});
  const auto then = lineup_of(heavy, unequal);
  CHECK(to_text(then) == "d: device 0; c: device 1; b: device 2; a: device 3");
  CHECK(to_text(lineup_of(heavy, nodes_with({1, 1, 1, 3}), 100, then)) == to_text(then));
}

TEST_CASE("a run among thousands of nodes keeps its nodes, and replaces a lost one", "[actors]") {
  const auto spec = spec_of(four_stages, {});
  auto nodes = nodes_with(std::vector(4096, 1));
  const auto before = lineup_of(spec, std::vector(nodes.end() - 4, nodes.end()), 4);
  const auto incarnations = [&] {
    std::vector<std::uint64_t> all;
    for (const auto& node : lineup_of(spec, nodes, 4, before).nodes)
      all.push_back(node.incarnation);
    return all;
  };
  CHECK(incarnations() == std::vector<std::uint64_t>{4093, 4094, 4095, 4096});
  nodes.erase(nodes.end() - 3);
  CHECK(incarnations() == std::vector<std::uint64_t>{4093, 1, 4095, 4096});
}

TEST_CASE("an error names a node that lacks the run's precision, and the best that it has",
          "[actors]") {
  auto nodes = nodes_with({1, 1, 1});
  nodes[0].inventory.precision = "bf16-blocks";
  nodes[1].inventory.precision = "bf16-pairs";
  nodes[2].inventory.precision = "something of a later version";
  using kernels::Precision;
  CHECK(who_lacks(Precision::fp32, nodes).empty());
  CHECK(who_lacks(Precision::bf16_pairs, nodes) == "c: at most fp32");
  CHECK(who_lacks(Precision::bf16_blocks, nodes) == "c: at most fp32; b: at most bf16-pairs");
}

TEST_CASE("a node whose cores are slower gets less work", "[actors]") {
  const auto spec = spec_of(four_stages, {});
  auto nodes = nodes_with({4, 4});
  nodes[0].inventory.host = "old", nodes[1].inventory.host = "new";
  CHECK(to_text(lineup_of(spec, nodes)) == "a: device 0 1; b: device 2 3");
  nodes[0].inventory.speed = Speed{1e11, 1e11, 0};
  nodes[1].inventory.speed = Speed{3e11, 3e11, 0};
  CHECK(to_text(lineup_of(spec, nodes)) == "b: device 0 1 2; a: device 3");
  // A small difference does not count, nor one between nodes of one host.
  nodes[0].inventory.speed = Speed{2.5e11, 2.5e11, 0};
  CHECK(to_text(lineup_of(spec, nodes)) == "a: device 0 1; b: device 2 3");
  nodes[0].inventory.speed = Speed{1e11, 1e11, 0};
  nodes[0].inventory.host = "new";
  CHECK(to_text(lineup_of(spec, nodes)) == "a: device 0 1; b: device 2 3");
}
