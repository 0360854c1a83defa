// Checks that cutting into sections keeps weights, moments and norms bit for bit.

#include "models/train/section.h"

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "catch.h"
#include "core/random.h"
#include "kernels/steps.h"
#include "models/train/packed_gradients.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;

OptimizerConfig config_of(Kind kind) {
  auto config = OptimizerConfig::of(kind);
  config.rate.lr = 0.01;
  config.clip_norm = 1;
  if (kind == Kind::sgd) config.momentum = 0.9;
  return config;
}

/// Returns small parameters, one of many blocks, one that ends within a block, and a tied one.
std::vector<Parameter> parameters() {
  const auto matrix = Parameter::Use::matrix;
  return {
      {.name = "table", .shape = {700, 300}, .init = Init::normal(0.1), .use = matrix},
      {.name = "bias", .shape = {300}},
      {.name = "wide", .shape = {256, 512}, .init = Init::normal(0.1), .use = matrix},
      {.name = "gain", .shape = {70'000}, .init = Init::ones()},
      {.name = "table", .shape = {700, 300}, .init = Init::normal(0.1), .use = matrix},
  };
}

const std::vector<Buffer>& buffers() {
  static const std::vector<Buffer> buffers{{.name = "mean", .shape = {3}, .initial = 1}};
  return buffers;
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

/// Returns the gradients of `holders` replicas for a step, one group each.
std::vector<GradientShare> given(Stream& stream, int holders, int step) {
  std::vector<GradientShare> shares;
  for (int holder = 0; holder < holders; ++holder) {
    GradientShare share;
    auto& sum = share.sums.emplace_back(PartialSum{holder, 1, {}});
    std::uint32_t slot = 0;
    for (const auto& parameter : parameters()) {
      Tensor& gradient = sum.slots.emplace_back(stream.make(parameter.shape));
      const RandomKey key{.seed = 5,
                          .step = static_cast<std::uint32_t>(step),
                          .sample = static_cast<std::uint32_t>(holder),
                          .operation = slot++};
      for (std::int64_t i = 0; i < gradient.count(); ++i)
        gradient.f32()[i] =
            uniform(key.words(static_cast<std::uint32_t>(i / 4))[static_cast<std::size_t>(i % 4)]) -
            0.5f;
    }
    share.statistics.push_back({stream.make({3})});
    for (int i = 0; i < 3; ++i)
      share.statistics[0][0].f32()[i] = static_cast<float>(holder + i + step);
    shares.push_back(std::move(share));
  }
  return shares;
}

/// The optimizers of all sections of one stage, which step together.
class Sections {
 public:
  Sections(Stream& stream, Kind kind, int count)
      : stream_(stream),
        sections_(cut_into_sections(config_of(kind), {}, parameters(), {}, count)) {
    for (const auto& section : sections_) {
      auto& optimizer = optimizers_.emplace_back(
          config_of(kind), parameters_of(section, parameters()),
          section.has_buffers ? buffers() : std::vector<Buffer>(), kernels::Precision::fp32);
      weights_.push_back(optimizer.initial(stream, 3));
    }
  }

  double step(int number) {
    const auto shares = given(stream_, 4, number);
    std::vector<StageGradients> gradients;
    std::vector<SquaredNorm> squares;
    for (std::size_t k = 0; k < sections_.size(); ++k) {
      std::vector<GradientShare> parts;
      for (const auto& share : shares)
        parts.push_back(part_of(share, sections_[k], parameters().size()));
      gradients.push_back(models::join(stream_, std::move(parts)));
      for (auto& square : optimizers_[k].squared_norms(stream_, gradients[k]))
        squares.push_back(std::move(square));
    }
    const double norm = global_norm(squares);
    for (std::size_t k = 0; k < sections_.size(); ++k)
      weights_[k] = optimizers_[k].step(stream_, weights_[k], std::move(gradients[k]), norm);
    return norm;
  }

  Version version() const {
    std::vector<Version> parts;
    for (std::size_t k = 0; k < sections_.size(); ++k)
      parts.push_back({weights_[k], optimizers_[k].moments()});
    return join(stream_, parameters(), sections_, parts);
  }

 private:
  Stream& stream_;
  std::vector<Section> sections_;
  std::vector<Optimizer> optimizers_;
  std::vector<WeightsPtr> weights_;
};

}  // namespace

TEST_CASE("a stage cut into sections has the weights and norms of an uncut stage", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw, Kind::nadamw, Kind::muon})
    for (const int count : {2, 3, 4, 7, 64}) {
      CAPTURE(static_cast<int>(kind), count);
      Sections whole(stream, kind, 1), cut(stream, kind, count);
      for (int step = 0; step < 2; ++step) CHECK(cut.step(step) == whole.step(step));
      const auto wanted = whole.version(), found = cut.version();
      CHECK(found.weights->version == 2);
      for (std::size_t slot = 0; slot < parameters().size(); ++slot)
        CHECK(equal(found.weights->slots[slot].value, wanted.weights->slots[slot].value));
      CHECK(found.weights->slots[4].value.raw() == found.weights->slots[0].value.raw());
      REQUIRE(found.weights->buffers.size() == 1);
      CHECK(equal(found.weights->buffers[0], wanted.weights->buffers[0]));
      REQUIRE(found.moments.size() == 4);
      for (std::size_t i = 0; i < found.moments.size(); ++i) {
        REQUIRE(found.moments[i].size() == wanted.moments[i].size());
        for (std::size_t j = 0; j < found.moments[i].size(); ++j)
          CHECK(equal(found.moments[i][j], wanted.moments[i][j]));
      }
    }
}

TEST_CASE("sections contain each element once and are cut between blocks", "[models]") {
  std::mt19937_64 random(1);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int problem = 0; problem < 200; ++problem) {
    CAPTURE(problem);
    std::vector<Parameter> stage;
    for (std::int64_t i = draw(0, 9); i >= 0; --i) {
      const bool is_matrix = draw(0, 1) == 0;
      const std::int64_t columns = draw(1, draw(0, 1) == 0 ? 1'000 : 100'000);
      stage.push_back({.name = "p" + std::to_string(draw(0, 12)),
                       .shape = {4, columns},
                       .use = is_matrix ? Parameter::Use::matrix : Parameter::Use::elements});
    }
    // Equal names mean one parameter.
    for (auto& parameter : stage) {
      const auto first = std::ranges::find(stage, parameter.name, &Parameter::name);
      parameter = *first;
    }
    const std::vector<std::string> borrowed{"p3"};
    const auto kind = draw(0, 1) == 0 ? Kind::muon : Kind::adamw;
    const int count = static_cast<int>(draw(1, 8));
    const auto sections = cut_into_sections(config_of(kind), {}, stage, borrowed, count);
    REQUIRE(sections.size() == static_cast<std::size_t>(count));
    std::vector<std::int64_t> reached(stage.size());
    std::int64_t all = 0;
    for (const auto& section : sections) {
      CHECK(section.has_buffers == (&section == &sections[0]));
      CHECK(std::ranges::is_sorted(section.pieces, {}, &Section::Piece::slot));
      for (const auto& [slot, first, size] : section.pieces) {
        const auto& parameter = stage[slot];
        CHECK(parameter.name != "p3");
        CHECK(size > 0);
        CHECK(first == reached[slot]);  // The sections are consecutive.
        reached[slot] += size;
        if (kind == Kind::muon && parameter.use == Parameter::Use::matrix)
          CHECK(size == parameter.shape.count());
        CHECK(first % kernels::block_of_sums == 0);
      }
    }
    std::set<std::string> owned;
    for (std::size_t slot = 0; slot < stage.size(); ++slot) {
      if (stage[slot].name == "p3") continue;
      CHECK(reached[slot] == stage[slot].shape.count());
      if (owned.insert(stage[slot].name).second) all += stage[slot].shape.count();
    }
    if (kind == Kind::muon) continue;
    // No section differs from an even share by more than a block: each end is off by at most half.
    for (const auto& section : sections) {
      std::set<std::string> names;
      std::int64_t size = 0;
      for (const auto& piece : section.pieces)
        if (names.insert(stage[piece.slot].name).second) size += piece.count;
      CHECK(std::abs(size - all / count) <= kernels::block_of_sums + 1);
    }
  }
}

TEST_CASE("a borrowing stage sees only the pieces of a section that it borrows", "[models]") {
  const std::vector<Parameter> owner{{.name = "a", .shape = {100'000}},
                                     {.name = "b", .shape = {100'000}}};
  const std::vector<Parameter> user{{.name = "c", .shape = {5}},
                                    {.name = "b", .shape = {100'000}},
                                    {.name = "b", .shape = {100'000}}};
  const auto sections = cut_into_sections(config_of(Kind::adamw), {}, owner, {}, 3);
  std::int64_t reached = 0;
  for (const auto& section : sections) {
    const auto seen = seen_from(user, section, owner);
    CHECK_FALSE(seen.has_buffers);
    if (seen.pieces.empty()) continue;
    REQUIRE(seen.pieces.size() == 2);
    CHECK(seen.pieces[0].slot == 1);
    CHECK(seen.pieces[1].slot == 2);
    for (const auto& piece : seen.pieces) CHECK(piece.first == reached);
    reached += seen.pieces[0].count;
  }
  CHECK(reached == 100'000);
}

TEST_CASE("packed gradients add up to the sum of all shares in each section", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto shares = given(stream, 3, 1);
  for (const int count : {1, 2, 3, 7}) {
    CAPTURE(count);
    const auto sections = cut_into_sections(config_of(Kind::adamw), {}, parameters(), {}, count);
    // Two holders: the first has two groups, which form no node of the tree.
    GradientShare first = shares[0], second = shares[2];
    first.sums.push_back(shares[1].sums[0]);
    auto packed = pack(stream, first, parameters(), sections);
    const auto other = pack(stream, second, parameters(), sections);
    REQUIRE(packed.sizes == other.sizes);
    REQUIRE(packed.sizes.size() == sections.size());
    for (std::int64_t i = 0; i < packed.numbers.count(); ++i)
      packed.numbers.f32()[i] += other.numbers.f32()[i];
    for (std::size_t k = 0; k < sections.size(); ++k) {
      const auto sum = unpack(packed, k, parameters(), sections[k], 3);
      CHECK(sum.first_group == 0);
      CHECK(sum.groups == 3);
      std::vector<GradientShare> parts;
      for (const auto& share : shares)
        parts.push_back(part_of(share, sections[k], parameters().size()));
      for (auto& part : parts)
        for (auto& slot : part.sums[0].slots) {
          Tensor copy = stream.make(slot.shape());
          stream.copy(slot, copy);
          slot = copy;
        }
      const auto wanted = join(stream, std::move(parts)).slots;
      REQUIRE(sum.slots.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        REQUIRE(sum.slots[i].shape() == wanted[i].shape());
        CHECK(reinterpret_cast<std::uintptr_t>(sum.slots[i].raw()) % 64 == 0);
        float most = 0;
        for (std::int64_t j = 0; j < wanted[i].count(); ++j)
          most = std::max(most, std::abs(sum.slots[i].f32()[j] - wanted[i].f32()[j]));
        CHECK(most < 1e-6F);
      }
    }
  }
}
