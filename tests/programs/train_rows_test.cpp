#include <cstdio>
#include <filesystem>
#include <utility>

#include "bench/train/peer.h"
#include "bench/train/rows.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::bench;
using kernels::Instructions;

namespace {

constexpr TrainWork work{.tokens = 8000, .operations = 600e9};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A run whose steps take these seconds, on a machine with a peak of 100 GFLOP/s.
TrainRun run_of(double seconds) {
  return {.seconds = {seconds, seconds, seconds},
          .first_step = 9,
          .peak_mib = 700,
          .peak_before = 100e9,
          .peak_after = 101e9};
}

TrainRun busy(TrainRun run) {
  run.peak_after = 0.9 * run.peak_before;
  return run;
}

TrainRow row_of(Trainer trainer, double seconds, bool is_bf16 = false) {
  return {.instructions = Instructions::avx2,
          .trainer = trainer,
          .cores = 1,
          .is_bf16 = is_bf16,
          .how = {},
          .runs = {run_of(seconds)},
          .problem = {}};
}

std::vector<TrainRow> three_rows() {
  return {row_of(Trainer::troupe, 8), row_of(Trainer::torch_eager, 10),
          row_of(Trainer::torch_compiled, 9)};
}

/// Returns the ratio that a row of the table has: "1.12", or "-".
std::string ratio_of(const std::string& table, const std::string& name) {
  const auto begin = table.find(name);
  REQUIRE(begin != table.npos);
  const auto line =
      table.substr(begin + name.size(), table.find('\n', begin) - begin - name.size());
  char tokens[32] = "", share[32] = "", ratio[32] = "";
  std::sscanf(line.c_str(), " %31s %31s %31s", tokens, share, ratio);
  return ratio;
}

}  // namespace

TEST_CASE("a row is compared with the faster of PyTorch eager and compiled", "[programs]") {
  auto rows = three_rows();
  auto table = train_table(work, rows);
  CAPTURE(table);
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "1.12");
  CHECK(ratio_of(table, "PyTorch eager fp32, 1 core") == "0.90");
  CHECK(ratio_of(table, "PyTorch compiled fp32, 1 core") == "1.00");
  CHECK(mentions(table, "avx2"));
  CHECK(mentions(table, "700"));    // Memory,
  CHECK(mentions(table, "9.0 s"));  // and the first step.

  std::swap(rows[1].runs, rows[2].runs);
  table = train_table(work, rows);
  CHECK(ratio_of(table, "PyTorch eager fp32, 1 core") == "1.00");
}

TEST_CASE("a row in bf16 is compared with PyTorch's faster precision", "[programs]") {
  auto rows = three_rows();
  rows.push_back(row_of(Trainer::troupe, 4, true));
  rows.push_back(row_of(Trainer::torch_eager, 100, true));
  rows.push_back(row_of(Trainer::torch_compiled, 110, true));
  auto table = train_table(work, rows);
  CAPTURE(table);
  CHECK(ratio_of(table, "troupe bf16, 1 core") == "2.25");  // To fp32.
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "1.12");
  rows[5].runs = {run_of(6)};
  table = train_table(work, rows);
  CHECK(ratio_of(table, "troupe bf16, 1 core") == "1.50");
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "1.12");
}

TEST_CASE("other instructions and other numbers of cores are no peers", "[programs]") {
  auto rows = three_rows();
  rows[1].instructions = Instructions::avx512;
  rows[2].cores = 2;
  CHECK(ratio_of(train_table(work, rows), "troupe fp32, 1 core") == "-");
}

TEST_CASE("there is no ratio if PyTorch failed in one of its ways", "[programs]") {
  auto rows = three_rows();
  rows[2].runs.clear();
  rows[2].problem = "exit code 1: no compiler";
  const auto table = train_table(work, rows);
  CAPTURE(table);
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "-");
  CHECK(mentions(table, "avx2, PyTorch compiled fp32, 1 core: exit code 1: no compiler\n"));
  CHECK(mentions(table,
                 "avx2, troupe fp32, 1 core: no ratio, because PyTorch compiled fp32, 1 core "
                 "failed\n"));
}

TEST_CASE("there is no ratio from a busy machine", "[programs]") {
  CHECK(!is_busy(run_of(8)));
  CHECK(is_busy(busy(run_of(8))));
  auto rows = three_rows();
  rows[0].runs = {busy(run_of(8))};
  auto table = train_table(work, rows);
  CAPTURE(table);
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "-");
  CHECK(mentions(table, "avx2, troupe fp32, 1 core: the machine was busy"));

  rows[0].runs.push_back(run_of(8));  // The busy round is left out.
  CHECK(ratio_of(train_table(work, rows), "troupe fp32, 1 core") == "1.12");

  rows[1].runs = {busy(run_of(8))};
  table = train_table(work, rows);
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "-");
  CHECK(mentions(table, "no ratio, because the machine was busy during PyTorch eager fp32"));
}

TEST_CASE("without PyTorch a table has no ratios and no complaints", "[programs]") {
  const auto table = train_table(work, {row_of(Trainer::troupe, 8)});
  CHECK(ratio_of(table, "troupe fp32, 1 core") == "-");
  CHECK(!mentions(table, "no ratio"));
}

TEST_CASE("a line tells of a run as soon as it ends", "[programs]") {
  const auto row = row_of(Trainer::troupe, 8);
  CHECK(mentions(train_line(work, row, run_of(8)), "1000 tokens/s, 0.746 of the peak, 700 MiB"));
  CHECK(mentions(train_line(work, row, busy(run_of(8))), "; the machine is busy"));
}

TEST_CASE("a relative path to Python holds in every folder", "[programs]") {
  const auto missing = find_torch("nowhere/python");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text ==
        (std::filesystem::current_path() / "nowhere/python").string() + " cannot import torch");
}

TEST_CASE("PyTorch of another version is no peer", "[programs]") {
  const auto facts =
      torch_facts(R"({"torch": "2.15.0+cpu", "capability": "AVX2", "libraries": "oneDNN, MKL"})");
  REQUIRE(facts);
  CHECK(facts->libraries == "oneDNN, MKL");
  CHECK(check_version(*facts, "2.15.0"));
  const auto other = check_version(*facts, "2.16.0");
  REQUIRE(!other);
  CHECK(other.error().text == "PyTorch is 2.15.0+cpu, and the comparison is made with 2.16.0");
  CHECK(!torch_facts("Traceback"));
  CHECK(!torch_facts(""));
}

TEST_CASE("PyTorch with other instructions is no peer", "[programs]") {
  CHECK(check_capability({"2.15.0", "AVX2", ""}, Instructions::avx2));
  CHECK(!check_capability({"2.15.0", "AVX2", ""}, Instructions::avx512));
  CHECK(!check_capability({"2.15.0", "AVX512", ""}, Instructions::avx2));
  CHECK(check_capability({"2.15.0", "AVX512", ""}, Instructions::amx));
}

TEST_CASE("a list names sets of instructions, and says which the processor lacks", "[programs]") {
  const auto best = kernels::instruction_sets().back();
  const std::string name{to_string(best)};
  std::vector<std::string> missing;
  CHECK(named_sets(name + "," + name, missing) == std::vector<Instructions>{best});
  CHECK(named_sets("", missing).empty());
  CHECK(missing.empty());
  CHECK(named_sets("mmx," + name, missing) == std::vector<Instructions>{best});
  REQUIRE(missing.size() == 1);
  CHECK(mentions(missing[0], "\"mmx\" names no set of instructions; use one that this processor"));
}
