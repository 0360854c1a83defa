#include "storage/checkpoint/ledger_lines.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include "storage/data/mixture.h"

namespace troupe::storage {
namespace {

// Bounds on what a reader accepts, because it visits every sample.
constexpr std::int64_t most_in_step = std::int64_t{1} << 24;
constexpr std::int64_t most_in_pass = std::int64_t{1} << 48;
constexpr std::string_view shuffled = "shuffled";
constexpr std::string_view sequential = "sequential";

std::optional<std::int64_t> integer(const Value& record, std::string_view key, std::int64_t least) {
  const Value* value = record.find(key);
  if (!value || !value->integer() || *value->integer() < least) return {};
  return *value->integer();
}

/// Reads the mixture of an attempt. Returns false unless its sources have all samples.
bool read_mixture(const Value& record, LedgerTerms& terms) {
  terms.mix = text_in(record, "mix");
  const auto mixture = Mixture::parse(terms.mix);
  const auto* counts = record.find("samples_of_sources");
  if (!mixture || !counts || !counts->list() || counts->list()->size() != mixture->sources.size())
    return false;
  std::int64_t left = terms.count;
  for (const auto& count : *counts->list()) {
    if (!count.integer() || *count.integer() < 1 || *count.integer() > left) return false;
    left -= *count.integer();
    terms.counts.push_back(*count.integer());
  }
  return left == 0;
}

/// Reads the steps that an attempt leaves out. Returns false unless they are in order.
bool read_left_out(const Value& record, LedgerTerms& terms) {
  const auto* steps = record.find("left_out")->list();
  if (!steps) return false;
  for (const auto& step : *steps) {
    const auto least = terms.left_out.empty() ? 1 : terms.left_out.back() + 1;
    if (!step.integer() || *step.integer() < least) return false;
    terms.left_out.push_back(*step.integer());
  }
  return true;
}

}  // namespace

Value to_record(const Beginning& beginning) {
  const auto& terms = beginning.terms;
  Value record;
  record.set("begins_after", beginning.after);
  record.set("order", terms.order == SampleOrder::Kind::shuffled ? shuffled : sequential);
  // Written as text: a seed has 64 bits, a JSON integer 63.
  record.set("seed", std::to_string(terms.seed));
  record.set("samples_in_pass", terms.count);
  record.set("samples_in_step", terms.global);
  record.set("samples_in_micro_batch", terms.micro);
  if (!terms.mix.empty()) {
    record.set("mix", terms.mix);
    Value::List counts;
    for (const auto count : terms.counts) counts.emplace_back(count);
    record.set("samples_of_sources", std::move(counts));
  }
  if (!terms.left_out.empty())
    record.set("left_out", Value::List(terms.left_out.begin(), terms.left_out.end()));
  return record;
}

Value to_record(const SavedStep& saved) {
  Value record;
  record.set("saved", saved.step);
  record.set("below", saved.below);
  record.set("committed", saved.committed);
  return record;
}

Value to_record(const LedgerStep& step) {
  Value record;
  record.set("step", step.step);
  record.set("first", step.first);
  record.set("samples", step.samples);
  record.set("ids", to_string(step.ids));
  record.set("content", to_string(step.content));
  record.set("loss", std::isfinite(step.loss) ? Value(step.loss) : Value());
  if (step.is_skipped) record.set("skipped", true);
  if (!step.of_sources.empty())
    record.set("of_sources", Value::List(step.of_sources.begin(), step.of_sources.end()));
  if (step.norm) record.set("norm", *step.norm);
  return record;
}

std::optional<Beginning> beginning_of(const Value& record) {
  const auto after = integer(record, "begins_after", 0);
  const auto count = integer(record, "samples_in_pass", 1);
  const auto global = integer(record, "samples_in_step", 1);
  const auto micro = integer(record, "samples_in_micro_batch", 1);
  const auto order = text_in(record, "order");
  const auto digits = text_in(record, "seed");
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  const bool has_seed = error == std::errc() && end == digits.data() + digits.size();
  if (!after || !count || !global || !micro || !has_seed) return {};
  if (order != shuffled && order != sequential) return {};
  if (*global % *micro != 0 || *global > most_in_step || *count > most_in_pass) return {};
  const auto kind = order == shuffled ? SampleOrder::Kind::shuffled : SampleOrder::Kind::sequential;
  LedgerTerms terms{kind, seed, *count, *global, *micro};
  if (record.find("mix") && !read_mixture(record, terms)) return {};
  if (record.find("left_out") && !read_left_out(record, terms)) return {};
  return Beginning{*after, std::move(terms)};
}

std::optional<SavedStep> saved_of(const Value& record) {
  const auto step = integer(record, "saved", 0);
  const Value* below = record.find("below");
  const auto committed = integer(record, "committed", 0);
  if (!step || !below || !below->text() || !committed) return {};
  return SavedStep{*step, *below->text(), *committed};
}

std::optional<LedgerStep> step_of(const Value& record) {
  const auto number = integer(record, "step", 1);
  const auto first = integer(record, "first", 0);
  const auto samples = integer(record, "samples", 1);
  const Value* loss = record.find("loss");
  LedgerStep step;
  if (!number || !first || !samples || !loss) return {};
  if (!loss->is_number() && !loss->is_null()) return {};
  if (!from_text(text_in(record, "ids"), step.ids)) return {};
  if (!from_text(text_in(record, "content"), step.content)) return {};
  step.step = *number;
  step.first = *first;
  step.samples = *samples;
  step.loss = loss->is_null() ? std::numeric_limits<double>::quiet_NaN() : loss->number();
  const Value* skipped = record.find("skipped");
  step.is_skipped = skipped && skipped->boolean() && *skipped->boolean();
  if (const Value* norm = record.find("norm")) {
    if (!norm->is_number()) return {};
    step.norm = norm->number();
  }
  if (const Value* counts = record.find("of_sources")) {
    if (!counts->list()) return {};
    for (const auto& count : *counts->list()) {
      if (!count.integer() || *count.integer() < 0) return {};
      step.of_sources.push_back(*count.integer());
    }
  }
  return step;
}

}  // namespace troupe::storage
