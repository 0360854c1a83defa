#include "storage/checkpoint/ledger.h"

#include <array>
#include <cassert>
#include <functional>
#include <iterator>
#include <string_view>

#include "storage/checkpoint/ledger_lines.h"
#include "storage/data/micro_batches.h"
#include "storage/data/mixture.h"

namespace troupe::storage {

Digest digest_of_step(std::span<const Digest> micro_batches) {
  static_assert(sizeof(Digest) == 2 * sizeof(std::uint64_t));
  return digest_of(std::as_bytes(micro_batches));
}

SampleOrder LedgerTerms::samples() const {
  if (mix.empty()) return {order, seed, count};
  const auto mixture = Mixture::parse(mix);
  assert(mixture && mixture->sources.size() == counts.size());
  return SampleOrder(std::make_shared<MixedOrder>(*mixture, order, seed, global, counts));
}

Digest ids_of(const LedgerTerms& terms, std::int64_t first) {
  return ids_of(terms, terms.samples(), first);
}

Digest ids_of(const LedgerTerms& terms, const SampleOrder& order, std::int64_t first) {
  std::vector<Digest> micro_batches;
  for (std::int64_t at = 0; at < terms.global; at += terms.micro)
    micro_batches.push_back(digest_of_samples(order, first + at, terms.micro));
  return digest_of_step(micro_batches);
}

Ledger::Ledger(Files& files, const std::string& path, RecordWriter records,
               const LedgerTerms& terms)
    : state_(std::make_unique<State>(files, path, std::move(records), terms)) {
  const auto& last = state_->records.last_before();
  if (!last) return;
  if (const auto step = step_of(*last)) state_->steps = step->step;
  if (const auto begins = beginning_of(*last)) state_->steps = begins->after;
  if (const auto saved = saved_of(*last)) state_->steps = saved->committed;
}

Result<Ledger> Ledger::open(Files& files, const std::string& path, const LedgerTerms& terms,
                            std::size_t segment_bytes) {
  auto records = RecordWriter::open(files, path, segment_bytes);
  if (!records) return records.error();
  return Ledger(files, path, std::move(*records), terms);
}

void Ledger::change(const LedgerTerms& terms) {
  const std::lock_guard lock(state_->mutex);
  state_->terms = terms;
  state_->order = terms.samples();
}

Status Ledger::begin(std::int64_t after) {
  const std::lock_guard lock(state_->mutex);
  auto begun = state_->records.append(to_record(Beginning{after, state_->terms}));
  if (begun) state_->steps = after;
  return begun;
}

Status Ledger::enter(const LedgerStep& step) {
  const std::lock_guard lock(state_->mutex);
  LedgerStep counted = step;
  counted.of_sources = state_->order.of_sources(step.first, step.samples);
  auto entered = state_->records.append(to_record(counted));
  if (entered) state_->steps = step.step;
  return entered;
}

Status Ledger::saved(std::int64_t step, const std::string& below) {
  const std::lock_guard lock(state_->mutex);
  auto appended = state_->records.append(to_record(SavedStep{step, below, state_->steps}));
  return appended ? state_->records.sync() : appended;
}

namespace {

/// Reads the segments of a ledger, the newest first, as long as `read` wants more.
Status for_each_segment(Files& files, const std::string& path,
                        const std::function<bool(const Records&)>& read) {
  const auto segments = segments_of(files, path);
  if (!segments) return segments.error();
  const auto there = grows(files, path, *segments);
  if (!there.ok()) return there.error();
  auto older = segments->older;
  std::string name = path;
  for (bool is_there = *there;; is_there = true) {
    if (is_there) {
      const auto before = checksum_up_to(files, older);
      if (!before) return before.error();
      const auto bytes = read_into_memory(files, name);
      if (!bytes) return bytes.error();
      if (!read(read_records(bytes->text(), *before))) return Done{};
    }
    if (older.empty()) return Done{};
    name = older.back();
    older.pop_back();
  }
}

}  // namespace

Result<std::optional<SaveOnRecord>> newest_save(Files& files, const std::string& path) {
  std::optional<SaveOnRecord> newest;
  // Search from the newest segment back to the first that has a save or a new beginning.
  const auto status = for_each_segment(files, path, [&](const Records& records) {
    bool tells = false;
    for (const auto& record : records.good) {
      const auto saved = saved_of(record.value);
      if (saved) newest = {saved->step, saved->below};
      const auto begins = beginning_of(record.value);
      const bool is_anew = begins && begins->after == 0;
      if (is_anew) newest.reset();
      tells = tells || saved || is_anew;
    }
    return !tells;
  });
  if (!status) return status.error();
  return newest;
}

Result<std::map<std::int64_t, StepNumbers>> Ledger::numbers_until(std::int64_t step,
                                                                  std::int64_t count) const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::int64_t, LedgerStep> steps;  // The last record of each.
  std::map<std::int64_t, StepNumbers> numbers;
  const auto status = for_each_segment(state_->files, state_->path, [&](const Records& records) {
    std::map<std::int64_t, LedgerStep> of_segment;
    for (const auto& record : records.good)
      if (auto entered = step_of(record.value); entered && entered->step <= step)
        of_segment.insert_or_assign(entered->step, std::move(*entered));
    steps.merge(of_segment);  // Entries of later segments stay.
    numbers.clear();
    for (auto at = step; at > 0 && std::ssize(numbers) < count; --at) {
      const auto known = steps.find(at);
      if (known == steps.end()) return true;
      if (!known->second.is_skipped)
        numbers.emplace(at, StepNumbers{known->second.loss, known->second.norm});
    }
    return false;
  });
  if (!status) return status.error();
  return numbers;
}

std::int64_t Ledger::steps() const { return state_->steps; }

Status Ledger::sync() {
  const std::lock_guard lock(state_->mutex);
  return state_->records.sync();
}

}  // namespace troupe::storage
