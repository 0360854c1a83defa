#include "storage/checkpoint/checkpoint.h"

#include "catch.h"
#include "storage/checkpoint/exchange.h"
#include "storage/checkpoint/match.h"
#include "storage/files/memory_files.h"
#include "tests/storage/checkpoint_content.h"
#include "tests/storage/data_files.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

void save(Files& files, std::int64_t step) {
  MemoryPool pool;
  const auto saved = save_checkpoint(files, "run", content_of(pool, step));
  INFO((saved ? "" : saved.error().text));
  REQUIRE(saved);
}

std::string names_in(Files& files, const std::string& directory) {
  const auto entries = files.list(directory);
  std::string names;
  if (entries)
    for (const auto& entry : *entries) names += entry.name + " ";
  return names;
}

std::int64_t newest_step(Files& files) {
  const auto newest = open_newest_checkpoint(files, "run");
  return newest && *newest ? (*newest)->checkpoint.manifest().step : -1;
}

}  // namespace

TEST_CASE("a checkpoint loads the saved tensors bit by bit", "[storage]") {
  MemoryFiles files;
  save(files, 1000);
  CHECK(names_in(files, "run") == "step-000000001000 ");
  CHECK(names_in(files, "run/step-000000001000") ==
        "manifest.json optimizer.safetensors weights.safetensors ");
  const auto checkpoint = Checkpoint::open(files, "run/step-000000001000");
  REQUIRE(checkpoint);
  CHECK(is_whole(*checkpoint));
  CHECK(checkpoint->manifest().state.find("loss_scale")->number() == 1024);
  CHECK(checkpoint->weights().front().name == "w");
  CHECK(checkpoint->metadata() == Metadata{{"format", "pt"}});
  MemoryPool pool;
  CHECK(checkpoint->load_weight("v", pool).error().text ==
        "run/step-000000001000: has no tensor \"v\" among its weights");
}

TEST_CASE("a checkpoint on the disk is saved, loaded, listed and pruned", "[storage]") {
  const TemporaryDirectory directory;
  const auto files = disk_files();
  MemoryPool pool;
  REQUIRE(save_checkpoint(*files, directory / "a/b", content_of(pool, 5)));
  REQUIRE(save_checkpoint(*files, directory / "a/b", content_of(pool, 6)));
  const auto newest = open_newest_checkpoint(*files, directory / "a/b");
  REQUIRE((newest && *newest));
  CHECK((*newest)->checkpoint.manifest().step == 6);
  CHECK(is_whole((*newest)->checkpoint));
  CHECK(prune_checkpoints(*files, directory / "a/b", {1})->removed.size() == 1);
  CHECK(list_checkpoints(*files, directory / "a/b")->size() == 1);
}

TEST_CASE("equal weights have equal digests in any order and any number of parts", "[storage]") {
  MemoryPool pool;
  const auto content = content_of(pool, 7);
  const std::vector<NamedTensor> turned = {content.weights[1], content.weights[0]};
  CHECK(weights_digest(content.weights) == weights_digest(turned));
  CHECK(weights_digest(content.weights) != weights_digest(content_of(pool, 8).weights));

  MemoryFiles files;
  REQUIRE(files.make_directory("run/step-000000000007"));
  Manifest manifest;
  manifest.step = 7;
  manifest.samples = content.samples;
  manifest.recipe = content.recipe;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto part = write_part(files, "run/step-000000000007", "weights-" + std::to_string(i),
                                 PartKind::weights, std::span(content.weights).subspan(i, 1));
    REQUIRE(part);
    manifest.parts.push_back(*part);
  }
  const auto part = write_part(files, "run/step-000000000007", "optimizer-0", PartKind::optimizer,
                               content.optimizer);
  manifest.parts.push_back(*part);
  const auto saved = commit_checkpoint(files, "run/step-000000000007", manifest);
  REQUIRE(saved);
  CHECK(saved->manifest.weights_digest == weights_digest(content.weights));
  CHECK(is_whole(*Checkpoint::open(files, "run/step-000000000007")));
}

TEST_CASE("the shape of a tensor is part of the digest", "[storage]") {
  MemoryPool pool;
  const auto weight = numbers(pool, "w", 6, 1);
  const NamedTensor other = {"w", weight.tensor.reshaped(Shape{2, 3})};
  CHECK(weights_digest(std::span(&weight, 1)) != weights_digest(std::span(&other, 1)));
}

TEST_CASE("checkpoints are listed from the newest with the problem of each bad one", "[storage]") {
  using State = ListedCheckpoint::State;
  MemoryFiles files;
  CHECK(list_checkpoints(files, "run")->empty());
  for (const int step : {1, 3, 10}) save(files, step);
  REQUIRE(files.make_directory("run/step-000000000020"));
  REQUIRE(files.make_directory("run/step-20"));
  put(files, "run/LATEST", "");
  REQUIRE(files.remove("run/step-000000000003/optimizer.safetensors"));
  const auto listed = list_checkpoints(files, "run");
  REQUIRE(listed);
  REQUIRE(listed->size() == 4);
  CHECK((*listed)[0].step == 20);
  CHECK((*listed)[0].state == State::unfinished);
  CHECK((*listed)[0].problem == "run/step-000000000020: has no manifest; its save was interrupted");
  CHECK((*listed)[1].step == 10);
  CHECK((*listed)[1].state == State::complete);
  CHECK((*listed)[1].manifest->samples == 320);
  CHECK((*listed)[2].state == State::damaged);
  CHECK((*listed)[2].problem ==
        "run/step-000000000003/optimizer.safetensors: cannot inspect: No such file or directory");
  CHECK((*listed)[3].step == 1);
}

TEST_CASE("opening detects a flipped bit and falls back to the older checkpoint", "[storage]") {
  for (const auto* name : {"manifest.json", "weights.safetensors", "optimizer.safetensors"}) {
    const auto path = "run/step-000000000002/" + std::string(name);
    MemoryFiles whole;
    save(whole, 2);
    const auto bytes = whole.inspect(path)->bytes;
    for (std::uint64_t at = 0; at < bytes; at += 1 + bytes / 200) {
      MemoryFiles files;
      save(files, 1);
      save(files, 2);
      files.flip_bit(path, at);
      const auto newest = open_newest_checkpoint(files, "run");
      INFO(path << " byte " << at);
      REQUIRE((newest && *newest));
      REQUIRE((*newest)->checkpoint.manifest().step == 1);
      REQUIRE((*newest)->skipped.size() == 1);
      REQUIRE((*newest)->skipped[0].directory == "run/step-000000000002");
      REQUIRE((*newest)->skipped[0].why.starts_with(path));
    }
  }
}

TEST_CASE("opening fails if all checkpoints are bad", "[storage]") {
  MemoryFiles files;
  const auto none = open_newest_checkpoint(files, "run");
  REQUIRE(none);
  CHECK_FALSE(none->has_value());
  REQUIRE(files.make_directory("run/step-000000000001"));
  const auto unfinished = open_newest_checkpoint(files, "run");
  REQUIRE(unfinished);
  CHECK_FALSE(unfinished->has_value());

  save(files, 1);
  files.flip_bit("run/step-000000000001/weights.safetensors", 300);
  CHECK(open_newest_checkpoint(files, "run").error().text ==
        "run: has no good checkpoint; move the damaged ones away to begin again:\n  "
        "run/step-000000000001/weights.safetensors: is damaged: its bytes do not match the digest "
        "in the manifest");
}

TEST_CASE("a manifest in the directory of another step is refused", "[storage]") {
  MemoryFiles files;
  save(files, 1);
  save(files, 2);
  REQUIRE(
      files.rename("run/step-000000000001/manifest.json", "run/step-000000000002/manifest.json"));
  CHECK(Checkpoint::open(files, "run/step-000000000002").error().text ==
        "run/step-000000000002/manifest.json: is of step 1, which belongs elsewhere");
}

TEST_CASE("a crash at any call of a save leaves the older or the new checkpoint", "[storage]") {
  using Entries = Survival::Entries;
  using Contents = Survival::Contents;
  // The second save is of a new step, or of a step that is already saved.
  for (const std::int64_t second : {2, 1})
    for (const auto entries : {Entries::lost, Entries::kept})
      for (const auto contents : {Contents::lost, Contents::torn, Contents::kept}) {
        bool finished = false;
        for (std::int64_t call = 0; !finished; ++call) {
          MemoryFiles files;
          save(files, 1);
          MemoryPool pool;
          files.set_faults({.crash_at = files.calls() + call, .failing_call = {}, .capacity = {}});
          finished = save_checkpoint(files, "run", content_of(pool, second)).ok();
          files.restart({entries, contents});

          INFO("crash at call " << call);
          const auto newest = open_newest_checkpoint(files, "run");
          REQUIRE((newest && *newest));
          REQUIRE(is_whole((*newest)->checkpoint));
          const auto step = (*newest)->checkpoint.manifest().step;
          REQUIRE((step == second || (!finished && step == 1)));
          // Leftover files do not block the next save.
          save(files, second);
          REQUIRE(newest_step(files) == second);
          REQUIRE(prune_checkpoints(files, "run", {1})->bad.empty());
          REQUIRE(names_in(files, "run") == step_directory(second) + " ");
          REQUIRE(names_in(files, "run/" + step_directory(second)).find("new") ==
                  std::string::npos);
        }
      }
}

TEST_CASE("a crash at any call of a prune leaves the newest checkpoint", "[storage]") {
  bool finished = false;
  for (std::int64_t call = 0; !finished; ++call) {
    MemoryFiles files;
    for (const int step : {1, 2, 3}) save(files, step);
    files.set_faults({.crash_at = files.calls() + call, .failing_call = {}, .capacity = {}});
    finished = prune_checkpoints(files, "run", {1}).ok();
    files.restart({});
    INFO("crash at call " << call);
    REQUIRE(newest_step(files) == 3);
    for (const auto& each : *list_checkpoints(files, "run"))
      REQUIRE(each.state != ListedCheckpoint::State::damaged);
  }
}

TEST_CASE("a failing call loses no checkpoint and a reported save is on the disk", "[storage]") {
  MemoryFiles counting;
  save(counting, 1);
  const auto before = counting.calls();
  save(counting, 2);
  const auto calls = counting.calls() - before;
  for (std::int64_t call = 0; call < calls; ++call) {
    MemoryFiles files;
    save(files, 1);
    MemoryPool pool;
    files.set_faults({.crash_at = {}, .failing_call = files.calls() + call, .capacity = {}});
    const bool saved = save_checkpoint(files, "run", content_of(pool, 2)).ok();
    INFO("failing call " << call);
    // The last sync may fail although all data is written.
    const auto seen = newest_step(files);
    REQUIRE((seen == 2 || (!saved && seen == 1)));
    files.restart({});
    const auto left = newest_step(files);
    REQUIRE((left == 2 || (!saved && left == 1)));
    save(files, 2);
    REQUIRE(newest_step(files) == 2);
  }
}

TEST_CASE("a save that does not fit on the disk fails before it writes", "[storage]") {
  MemoryFiles files;
  save(files, 1);
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 5'000});
  MemoryPool pool;
  const auto saved = save_checkpoint(files, "run", content_of(pool, 2));
  REQUIRE_FALSE(saved);
  CHECK(saved.error().text.starts_with("run: step 2 needs "));
  CHECK(saved.error().text.ends_with(" are free; make room, or set checkpoint.keep lower"));
  CHECK(names_in(files, "run") == "step-000000000001 ");
  CHECK(newest_step(files) == 1);
}

TEST_CASE("a disk that fills up during a save leaves the older checkpoint", "[storage]") {
  /// A file system that reports more free space than it has.
  struct Boasting : Files {
    MemoryFiles& files;
    explicit Boasting(MemoryFiles& real) : files(real) {}
    Result<Bytes> read(const std::string& path) override { return files.read(path); }
    Result<DirectoryEntry> inspect(const std::string& path) override { return files.inspect(path); }
    Existence exists(const std::string& path) override { return files.exists(path); }
    Result<std::unique_ptr<FileReader>> open(const std::string& path) override {
      return files.open(path);
    }
    Status link(const std::string& from, const std::string& to) override {
      return files.link(from, to);
    }
    Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                           std::string_view holder) override {
      return files.lock(path, holder);
    }
    Result<std::unique_ptr<FileWriter>> create(const std::string& path) override {
      return files.create(path);
    }
    Result<std::unique_ptr<FileWriter>> append(const std::string& path) override {
      return files.append(path);
    }
    Status rename(const std::string& from, const std::string& to) override {
      return files.rename(from, to);
    }
    Status remove(const std::string& path) override { return files.remove(path); }
    Status make_directory(const std::string& path) override { return files.make_directory(path); }
    Status sync_directory(const std::string& path) override { return files.sync_directory(path); }
    Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
      return files.list(path);
    }
    Result<std::uint64_t> free_space(const std::string&) override { return UINT64_MAX; }
  };
  MemoryFiles files;
  save(files, 1);
  Boasting boasting(files);
  std::uint64_t used = 0;
  for (const auto& entry : *files.list("run/step-000000000001")) used += entry.bytes;
  MemoryPool pool;
  bool saved = false;
  for (std::uint64_t room = 0; !saved; room += 100) {
    files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = used + room});
    const auto result = save_checkpoint(boasting, "run", content_of(pool, 2));
    saved = result.ok();
    INFO("room for " << room << " bytes");
    if (!saved) {
      REQUIRE(result.error().text.ends_with(": cannot write: No space left on device"));
      REQUIRE(names_in(files, "run") == "step-000000000001 ");
    }
    REQUIRE(newest_step(files) == (saved ? 2 : 1));
  }
}

TEST_CASE("pruning keeps the newest good checkpoints and does not count bad ones", "[storage]") {
  MemoryFiles files;
  for (const int step : {1, 2, 3, 4}) save(files, step);
  files.flip_bit("run/step-000000000004/weights.safetensors", 300);
  const auto pruned = prune_checkpoints(files, "run", {2});
  REQUIRE(pruned);
  CHECK(pruned->removed == std::vector<std::string>{"run/step-000000000001"});
  REQUIRE(pruned->bad.size() == 1);
  CHECK(pruned->bad[0].directory == "run/step-000000000004");
  CHECK(names_in(files, "run") == "step-000000000002 step-000000000003 step-000000000004 ");

  files.flip_bit("run/step-000000000003/weights.safetensors", 300);
  CHECK(prune_checkpoints(files, "run", {1})->removed.empty());
  CHECK(newest_step(files) == 2);
}

TEST_CASE("pruning keeps the checkpoints with the lowest validation losses too", "[storage]") {
  MemoryFiles files;
  const auto save_evaluated = [&](std::int64_t step, std::optional<double> loss) {
    MemoryPool pool;
    auto content = content_of(pool, step);
    set_validation_loss(content.state, loss);
    REQUIRE(save_checkpoint(files, "run", content));
  };
  save_evaluated(1, 3.0);
  CHECK(*best_checkpoint(files, "run") == "run/step-000000000001");
  save_evaluated(2, 1.0);
  save_evaluated(3, {});
  save_evaluated(4, 1.0);
  save_evaluated(5, 2.0);
  save_evaluated(6, 4.0);
  REQUIRE(prune_checkpoints(files, "run", {.newest = 1, .best = 3}));
  CHECK(names_in(files, "run") ==
        "step-000000000002 step-000000000004 step-000000000005 step-000000000006 ");
  // The earlier one of equal losses is better.
  REQUIRE(prune_checkpoints(files, "run", {.newest = 1, .best = 1}));
  CHECK(names_in(files, "run") == "step-000000000002 step-000000000006 ");
  CHECK(*best_checkpoint(files, "run") == "run/step-000000000002");
  // One that is damaged does not count.
  save_evaluated(7, 5.0);
  files.flip_bit("run/step-000000000002/weights.safetensors", 300);
  REQUIRE(prune_checkpoints(files, "run", {.newest = 1, .best = 1}));
  CHECK(names_in(files, "run") == "step-000000000006 step-000000000007 ");

  MemoryFiles others;
  MemoryPool pool;
  REQUIRE(save_checkpoint(others, "run", content_of(pool, 1)));
  CHECK(best_checkpoint(others, "run").error().text ==
        "run: no checkpoint was saved right after an evaluation; checkpoint.keep_best = 1 saves "
        "the best state");
}

TEST_CASE("imported weights are exported byte by byte", "[storage]") {
  const TemporaryDirectory directory;
  const auto files = disk_files();
  MemoryPool pool;
  const std::string original = TROUPE_TEST_DATA "/data/gpt2.safetensors";
  const auto content = import_weights(*files, original, pool);
  REQUIRE(content);
  REQUIRE(save_checkpoint(*files, directory / "run", *content));
  const auto newest = open_newest_checkpoint(*files, directory / "run");
  REQUIRE((newest && *newest));
  const auto path = directory / "out.safetensors";
  REQUIRE(write_new_file(*files, path, {as_bytes("an older one")}));
  REQUIRE(export_weights(*files, (*newest)->checkpoint, path));
  CHECK(files->read(path)->text() == files->read(original)->text());
}

TEST_CASE("an error lists how another model or recipe differs from the checkpoint's", "[storage]") {
  MemoryPool pool;
  Manifest manifest;
  manifest.model = content_of(pool, 1).model;
  CHECK(match_model(manifest, content_of(pool, 2).model));
  Value other;
  other.set("kind", "mlp");
  other.set("width", 512);
  other.set("dropout", 0.1);
  CHECK(match_model(manifest, other).error().text ==
        "the checkpoint belongs to another model:\n  width: the checkpoint has 384, this run 512\n "
        " dropout: the checkpoint has not set, this run 0.1");

  MemoryFiles files;
  const auto saved = save_checkpoint(files, "run", content_of(pool, 1));
  CHECK(match_recipe(saved->manifest, content_of(pool, 1).recipe));
  Value recipe;
  recipe.set("seed", 2);
  recipe.set("lr", 3e-4);
  CHECK(match_recipe(saved->manifest, recipe).error().text ==
        "the checkpoint was trained with different settings:\n  seed: the checkpoint has 1, this "
        "run 2");
}

TEST_CASE("an error names tensors of another model with their shapes", "[storage]") {
  MemoryPool pool;
  const auto weights = content_of(pool, 1).weights;
  const std::vector<TensorView> found = {view("w", weights[0].tensor),
                                         view("b", weights[1].tensor)};
  const WantedTensor same[] = {{"b", Shape{3}}, {"w", Shape{40}}};
  CHECK(match_tensors(found, same));
  const WantedTensor other[] = {{"w", Shape{5, 8}}, {"scale", Shape{2}}};
  CHECK(match_tensors(found, other).error().text ==
        "the tensors are not those of the model:\n"
        "  \"w\" is [40]; the model needs it as [5, 8]\n"
        "  \"scale\" is missing; the model needs it as [2]\n"
        "  \"b\" [3] has no place in it");
}
