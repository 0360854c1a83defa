#include <cmath>
#include <map>
#include <numeric>

#include "catch.h"
#include "storage/data/markov_chain.h"
#include "storage/files/memory_files.h"
#include "tests/storage/data_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {
constexpr std::uint64_t whole = std::uint64_t{1} << 32;
}

TEST_CASE("the entropy rate of a Markov chain equals a manual calculation", "[storage]") {
  // State 0 goes to 0 or 1 with 1/2 each, state 1 always to 0. The chain is in 0 for 2/3 of the
  // time, where the next symbol has ln 2 nats, and in 1 for 1/3, where it has none.
  const MarkovChain chain({{{0, whole / 2}, {1, whole}}, {{0, whole}}});
  CHECK(chain.stationary()[0] == Approx(2.0 / 3).epsilon(1e-12));
  CHECK(chain.stationary()[1] == Approx(1.0 / 3).epsilon(1e-12));
  CHECK(chain.entropy_rate() == Approx(2.0 / 3 * std::log(2.0)).epsilon(1e-12));
}

TEST_CASE("the size of a random word chooses the next state", "[storage]") {
  const MarkovChain chain({{{0, whole / 4}, {1, whole}}, {{0, whole}}});
  CHECK(chain.next(0, 0) == 0);
  CHECK(chain.next(0, static_cast<std::uint32_t>(whole / 4 - 1)) == 0);
  CHECK(chain.next(0, static_cast<std::uint32_t>(whole / 4)) == 1);
  CHECK(chain.next(0, 0xffffffffu) == 1);
  CHECK(chain.start(0) == 0);
  CHECK(chain.start(0xffffffffu) == 1);
}

TEST_CASE("a cycle has no entropy and a fair coin has ln 2", "[storage]") {
  CHECK(MarkovChain::drawn(1, 7, 1).entropy_rate() == 0);
  CHECK(MarkovChain::drawn(1, 7, 1).stationary()[3] == Approx(1.0 / 7));
  const MarkovChain coin({{{0, whole / 2}, {1, whole}}, {{0, whole / 2}, {1, whole}}});
  CHECK(coin.entropy_rate() == Approx(std::log(2.0)).epsilon(1e-14));
}

TEST_CASE("a drawn chain has a stationary distribution and bounded entropy", "[storage]") {
  for (const std::int32_t states : {2, 3, 64, 1000})
    for (const std::int32_t successors : {1, 2, 4}) {
      if (successors > states) continue;
      const auto chain = MarkovChain::drawn(5, states, successors);
      const auto& often = chain.stationary();
      CHECK(std::accumulate(often.begin(), often.end(), 0.0) == Approx(1).epsilon(1e-9));
      CHECK(chain.entropy_rate() <= std::log(successors) + 1e-12);
      for (const double share : often) CHECK(share > 0);
    }
}

TEST_CASE("a Markov sample equals its reference value", "[storage]") {
  MemoryFiles files;
  const auto data = open_dataset("made:markov?states=10&seed=3", {.context = 8}, files);
  REQUIRE(data);
  CHECK(sample<std::int32_t>(**data, 5).input == std::vector<std::int32_t>{9, 4, 3, 7, 5, 6, 7, 8});
}

TEST_CASE("targets are the inputs one token later and samples differ", "[storage]") {
  MemoryFiles files;
  const auto data = open_dataset("made:markov", {.context = 32}, files);
  REQUIRE(data);
  CHECK((*data)->count() == 100'000);
  CHECK((*data)->classes() == 64);
  const auto first = sample<std::int32_t>(**data, 0);
  for (std::size_t i = 0; i + 1 < 32; ++i) CHECK(first.target[i] == first.input[i + 1]);
  CHECK(first == sample<std::int32_t>(**data, 0));
  CHECK(first.input != sample<std::int32_t>(**data, 1).input);
  const auto other = open_dataset("made:markov?stream=1", {.context = 32}, files);
  CHECK(first.input != sample<std::int32_t>(**other, 0).input);
  CHECK((*other)->entropy_rate() == (*data)->entropy_rate());
}

TEST_CASE("the measured entropy of successors equals the chain's entropy rate", "[storage]") {
  MemoryFiles files;
  const auto data = open_dataset("made:markov?states=16&seed=2", {.context = 1'000}, files);
  REQUIRE(data);
  std::map<std::pair<std::int32_t, std::int32_t>, double> pairs;
  std::map<std::int32_t, double> states;
  double total = 0;
  for (std::int64_t index = 0; index < 200; ++index) {
    const auto read = sample<std::int32_t>(**data, index);
    for (std::size_t i = 0; i < read.input.size(); ++i) {
      ++pairs[{read.input[i], read.target[i]}];
      ++states[read.input[i]];
      ++total;
    }
  }
  double entropy = 0;
  for (const auto& [pair, count] : pairs)
    entropy -= count / total * std::log(count / states[pair.first]);
  CHECK(entropy == Approx(*(*data)->entropy_rate()).epsilon(0.01));
  CHECK(entropy > 0.5);
}

TEST_CASE("the first symbols of samples follow the stationary distribution", "[storage]") {
  MemoryFiles files;
  const auto data = open_dataset("made:markov?states=4&successors=2&seed=9", {.context = 1}, files);
  REQUIRE(data);
  const auto chain = MarkovChain::drawn(9, 4, 2);
  std::vector<double> share(4);
  for (std::int64_t index = 0; index < 20'000; ++index)
    share[static_cast<std::size_t>(sample<std::int32_t>(**data, index).input[0])] += 1 / 20'000.0;
  for (std::size_t s = 0; s < 4; ++s)
    CHECK(share[s] == Approx(chain.stationary()[s]).margin(0.015));
}
