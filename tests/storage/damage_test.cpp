#include <fstream>
#include <random>

#include "catch.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "tests/storage/checkpoint_content.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

// Damages the files of a run on a real disk in all ways.

namespace {

const LedgerTerms life_terms = {SampleOrder::Kind::shuffled, 7, 10, 4, 2};
constexpr std::int64_t steps = 3;

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// A run with a checkpoint of each step, large enough that a part of it is mapped.
class Run {
 public:
  Run() {
    auto ledger = Ledger::open(*files_, ledger_path(), life_terms);
    REQUIRE((ledger && ledger->begin(0)));
    for (std::int64_t step = 1; step <= steps; ++step) {
      const auto first = (step - 1) * life_terms.global;
      REQUIRE(ledger->enter({step, first, life_terms.global, ids_of(life_terms, first), {}, 0.5}));
      REQUIRE(ledger->sync());
      REQUIRE(save_checkpoint(*files_, root(), content(step)));
    }
  }

  Files& files() { return *files_; }
  std::string root() const { return directory_ / "checkpoints"; }
  std::string ledger_path() const { return directory_ / "ledger"; }
  std::string checkpoint(std::int64_t step) const { return root() + "/" + step_directory(step); }

  /// Returns all files of the run, each with the step of its checkpoint; 0: the ledger.
  std::vector<std::pair<std::string, std::int64_t>> all() {
    std::vector<std::pair<std::string, std::int64_t>> found{{ledger_path(), 0}};
    for (std::int64_t step = 1; step <= steps; ++step)
      for (const auto& entry : *files_->list(checkpoint(step)))
        found.emplace_back(checkpoint(step) + "/" + entry.name, step);
    return found;
  }

  /// Checks that readers report the damaged file by name and still load what is good.
  void check_damaged(const std::string& path, std::int64_t step) {
    if (step == 0) {
      REQUIRE(audit(read_text(path)).flaw != "");
      const auto opened = Ledger::open(*files_, path, life_terms);
      REQUIRE_FALSE(opened);
      REQUIRE(opened.error().text.starts_with(path));
      return;
    }
    const auto opened = Checkpoint::open(*files_, checkpoint(step));
    REQUIRE_FALSE(opened);
    REQUIRE(opened.error().text.starts_with(path));
    const auto newest = open_newest_checkpoint(*files_, root());
    REQUIRE((newest && *newest));
    const auto& good = (*newest)->checkpoint;
    REQUIRE(good.manifest().step == (step == steps ? steps - 1 : steps));
    REQUIRE(is_the_content(good));
    if (step != steps) return;
    REQUIRE((*newest)->skipped.size() == 1);
    REQUIRE((*newest)->skipped[0].why.starts_with(path));
  }

 private:
  static constexpr std::int64_t many = 30'000;

  CheckpointContent content(std::int64_t step) {
    auto all = content_of(pool_, step);
    all.weights.push_back(numbers(pool_, "large", many, static_cast<float>(step)));
    return all;
  }
  bool is_the_content(const Checkpoint& found) {
    const auto step = found.manifest().step;
    const auto large = found.load_weight("large", pool_);
    return is_whole(found) && large &&
           large->f32()[many - 1] == static_cast<float>(step + many - 1);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Files> files_ = disk_files();
  MemoryPool pool_;
};

}  // namespace

TEST_CASE("a flipped bit in any file of a run is detected and the file named", "[storage]") {
  Run run;
  const auto all = run.all();
  std::mt19937_64 random(6);
  for (int flip = 0; flip < 1'000; ++flip) {
    const auto& [path, step] = all[random() % all.size()];
    const auto good = read_text(path);
    const auto byte = random() % good.size();
    const auto bit = random() % 8;
    auto bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
    write_text(path, bad);
    INFO(path << ": bit " << bit << " of byte " << byte << " of " << good.size());
    run.check_damaged(path, step);
    write_text(path, good);
  }
}

TEST_CASE("an error names a checkpoint file cut at any length", "[storage]") {
  Run run;
  for (const auto& [path, step] : run.all()) {
    if (step == 0) continue;  // A ledger may be cut by a crash: see ledger_test.cpp.
    const auto good = read_text(path);
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{512}, good.size() / 2,
          good.size() / 512 * 512, good.size() - 1}) {
      if (length >= good.size()) continue;
      write_text(path, good.substr(0, length));
      INFO(path << ": " << length << " bytes of " << good.size());
      run.check_damaged(path, step);
    }
    // A file of the same size with only zeros.
    write_text(path, std::string(good.size(), '\0'));
    run.check_damaged(path, step);
    write_text(path, good + "x");
    run.check_damaged(path, step);
    write_text(path, good);
  }
}

TEST_CASE("a ledger cut at the end of a line proves only the steps it still holds", "[storage]") {
  Run run;
  const auto good = read_text(run.ledger_path());
  std::int64_t lines = 0;
  for (std::size_t at = good.find('\n'); at + 1 < good.size(); at = good.find('\n', at + 1)) {
    write_text(run.ledger_path(), good.substr(0, at + 1));
    CHECK(audit(read_text(run.ledger_path())).steps == lines++);
    // The audit detects a run that continues after lost steps.
    auto ledger = Ledger::open(run.files(), run.ledger_path(), life_terms);
    REQUIRE((ledger && ledger->begin(steps)));
    CHECK(audit(read_text(run.ledger_path())).flaw.find("in no committed step") !=
          std::string::npos);
  }
  CHECK(lines == steps);
}

TEST_CASE("an error names checkpoint parts swapped between two saves", "[storage]") {
  for (const std::string part : {"weights.safetensors", "optimizer.safetensors"}) {
    Run run;
    const auto newer = run.checkpoint(steps) + "/" + part;
    const auto older = run.checkpoint(steps - 1) + "/" + part;
    REQUIRE(run.files().rename(newer, newer + ".aside"));
    REQUIRE(run.files().rename(older, newer));
    REQUIRE(run.files().rename(newer + ".aside", older));
    for (const auto& [path, step] : {std::pair(newer, steps), std::pair(older, steps - 1)}) {
      const auto opened = Checkpoint::open(run.files(), run.checkpoint(step));
      REQUIRE_FALSE(opened);
      CHECK(opened.error().text ==
            path + ": is damaged: its bytes do not match the digest in the manifest");
    }
    const auto newest = open_newest_checkpoint(run.files(), run.root());
    REQUIRE((newest && *newest));
    CHECK((*newest)->checkpoint.manifest().step == steps - 2);
    CHECK((*newest)->skipped.size() == 2);
  }
}
