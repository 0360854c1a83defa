#include "storage/checkpoint/ledger.h"

#include <array>
#include <cassert>
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

Ledger::Ledger(RecordWriter records, const LedgerTerms& terms)
    : state_(std::make_unique<State>(std::move(records), terms)) {
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
  return Ledger(std::move(*records), terms);
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

Result<std::optional<SaveOnRecord>> newest_save(Files& files, const std::string& path) {
  auto segments = segments_of(files, path);
  if (!segments) return segments.error();
  const auto there = grows(files, path, *segments);
  if (!there.ok()) return there.error();
  std::optional<SaveOnRecord> newest;
  std::string segment = path;
  if (!*there) {
    if (segments->older.empty()) return newest;
    segment = segments->older.back();
    segments->older.pop_back();
  }
  // Search from the newest segment back to the first that has a save or a new beginning.
  for (;;) {
    const auto before = checksum_up_to(files, segments->older);
    if (!before) return before.error();
    const auto bytes = read_into_memory(files, segment);
    if (!bytes) return bytes.error();
    bool tells = false;
    for (const auto& record : read_records(bytes->text(), *before).good) {
      const auto saved = saved_of(record.value);
      if (saved) newest = {saved->step, saved->below};
      const auto begins = beginning_of(record.value);
      const bool is_anew = begins && begins->after == 0;
      if (is_anew) newest.reset();
      tells = tells || saved || is_anew;
    }
    if (tells || segments->older.empty()) return newest;
    segment = segments->older.back();
    segments->older.pop_back();
  }
}

std::int64_t Ledger::steps() const { return state_->steps; }

Status Ledger::sync() {
  const std::lock_guard lock(state_->mutex);
  return state_->records.sync();
}

}  // namespace troupe::storage
