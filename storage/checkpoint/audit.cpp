#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "core/memory/memory_pool.h"
#include "storage/checkpoint/ledger_lines.h"
#include "storage/checkpoint/mixture_audit.h"
#include "storage/data/micro_batches.h"

namespace troupe::storage {
namespace {

std::string number(std::int64_t n) { return std::to_string(n); }

/// An audit in progress. It stops at the first inconsistent record.
class Auditor {
 public:
  Audit follow(const Records& records, const Dataset* data) {
    audit_.is_torn = records.is_torn;
    for (const auto& record : records.good) {
      line_ = record.line;
      if (auto good = take(record.value); !good) return flawed(good.error().text);
    }
    if (!records.flaw.empty()) return flawed(records.flaw);
    if (!terms_) return flawed("it is empty");
    audit_.taken_back = entered_ - steps_;
    count_samples();
    if (data && audit_.flaw.empty()) read_again(*data);
    return audit_;
  }

 private:
  Status take(const Value& record) {
    if (const auto begins = beginning_of(record)) return take(*begins);
    if (const auto step = step_of(record)) return take(*step);
    if (const auto saved = saved_of(record)) return take(*saved);
    return Error{"it is no start of an attempt, no step and no save"};
  }

  Status take(const Beginning& begins) {
    if (terms_)
      if (auto same = match_terms(*terms_, begins.terms, begins.after); !same) return same;
    const bool is_changed = !terms_ || *terms_ != begins.terms;
    terms_ = begins.terms;
    if (is_changed) order_ = terms_->samples();
    if (begins.after > furthest_)
      return Error{"the attempt continues after step " + number(begins.after) + ", but of step " +
                   number(furthest_ + 1) + " nothing is told: " +
                   first_sample(furthest_ * terms_->global) + " is in no committed step"};
    ++audit_.attempts;
    // Steps of an earlier attempt count again. Its mixture may have been another one.
    for (auto step = steps_; step < begins.after; ++step)
      if (auto same = check_samples(step + 1, read_[static_cast<std::size_t>(step)]); !same)
        return same;
    steps_ = begins.after;
    return Done{};
  }

  Status take(const SavedStep& saved) {
    if (saved.step <= furthest_) return Done{};
    return Error{"step " + number(saved.step) + " was saved, but of step " + number(furthest_ + 1) +
                 " nothing is told"};
  }

  Status take(const LedgerStep& step) {
    if (!terms_) return Error{"a step before an attempt has begun"};
    const auto next = steps_ + 1;
    const auto first = (next - 1) * terms_->global;
    if (step.step < next)
      return Error{"step " + number(step.step) + " comes a second time: " +
                   first_sample((step.step - 1) * terms_->global) + " is in two committed steps"};
    if (step.step > next)
      return Error{"step " + number(step.step) + " comes where step " + number(next) +
                   " should: " + first_sample(first) + " is in no committed step"};
    if (step.first != first || step.samples != terms_->global)
      return Error{
          "step " + number(next) + " is of positions " + positions(step.first, step.samples) +
          " in place of " + positions(first, terms_->global) + ": " +
          first_sample(std::min(first, step.first)) + " is not in exactly one committed step"};
    if (leaves_out(next) && !step.is_skipped)
      return Error{"step " + number(next) + " is to leave out its samples, but it changed weights"};
    const Read read{step.ids, step.content, step.of_sources};
    if (auto same = check_samples(next, read); !same) return same;
    steps_ = next;
    furthest_ = std::max(furthest_, steps_);
    read_.resize(static_cast<std::size_t>(furthest_));
    read_[static_cast<std::size_t>(next - 1)] = read;
    ++entered_;
    if (step.is_skipped)
      skipped_.insert(next);
    else
      skipped_.erase(next);
    return Done{};
  }

  bool leaves_out(std::int64_t step) const {
    return std::ranges::binary_search(terms_->left_out, step);
  }

  /// The samples that a step has read, as its record says.
  struct Read {
    Digest ids, content;
    std::vector<std::int64_t> of_sources;  // Empty in ledgers of an earlier version.
  };

  /// Checks that a step has read what the present terms give it.
  Status check_samples(std::int64_t step, const Read& read) const {
    const auto first = (step - 1) * terms_->global;
    if (read.ids != ids_of(*terms_, *order_, first))
      return Error{"step " + number(step) + " read other samples than those of positions " +
                   positions(first, terms_->global) + ": " + first_sample(first) +
                   " may be in no committed step"};
    if (!read.of_sources.empty())
      if (auto same = match_counts(read.of_sources, order_->of_sources(first, terms_->global));
          !same)
        return within("step " + number(step), same.error());
    return Done{};
  }

  /// The records were checked: the steps cover all positions and read the samples that the order
  /// gives. This checks the order itself: each pass must contain every sample exactly once.
  void count_samples() {
    const SampleOrder& order = *order_;
    audit_.steps = steps_;
    audit_.samples = audit_.steps * terms_->global;
    audit_.skipped = std::distance(skipped_.begin(), skipped_.upper_bound(steps_));
    for (const auto step : terms_->left_out)
      if (step <= steps_) audit_.left_out.push_back(step);
    if (!terms_->mix.empty()) return count_mixed(order);
    audit_.passes = audit_.samples / terms_->count;
    std::vector<bool> seen(static_cast<std::size_t>(audit_.passes > 0 ? terms_->count : 0));
    // Samples of the last, incomplete pass.
    std::vector<std::int64_t> of_last_pass;
    for (std::int64_t position = 0; position < audit_.samples; ++position) {
      const Place place = order.at(position);
      if (place.pass == audit_.passes) {
        of_last_pass.push_back(place.sample);
        continue;
      }
      if (position % terms_->count == 0) seen.assign(seen.size(), false);
      const auto sample = static_cast<std::size_t>(place.sample);
      if (seen[sample]) return twice(place);
      seen[sample] = true;
    }
    std::ranges::sort(of_last_pass);
    const auto again = std::ranges::adjacent_find(of_last_pass);
    if (again != of_last_pass.end()) twice({audit_.passes, *again});
  }

  /// Checks that each source begins a pass once all of its samples were read in the one before, and
  /// reads no sample twice in a pass.
  void count_mixed(const SampleOrder& order) {
    std::vector<std::int64_t> ends;
    for (const auto count : terms_->counts)
      ends.push_back(count + (ends.empty() ? 0 : ends.back()));
    std::vector<std::int64_t> read(ends.size()), passes(ends.size());
    std::vector<std::int64_t> last(static_cast<std::size_t>(terms_->count), -1);  // Passes.
    for (std::int64_t position = 0; position < audit_.samples; ++position) {
      const Place place = order.at(position);
      const auto source =
          static_cast<std::size_t>(std::ranges::upper_bound(ends, place.sample) - ends.begin());
      auto& before = last[static_cast<std::size_t>(place.sample)];
      if (before == place.pass) return twice(place);
      before = place.pass;
      passes[source] = ++read[source] / terms_->counts[source];
      if ((read[source] - 1) / terms_->counts[source] != place.pass) {
        audit_.flaw = "sample " + number(place.sample) + " comes in pass " + number(place.pass) +
                      " of its source, of which " + number(read[source]) + " samples were read";
        return;
      }
    }
    audit_.passes = *std::ranges::min_element(passes);
    count_sources(*terms_, order, audit_);
  }

  void read_again(const Dataset& data) {
    if (data.count() != terms_->count) {
      audit_.flaw = "the data has " + number(data.count()) + " samples now, and had " +
                    number(terms_->count) + " when the run read it";
      return;
    }
    MemoryPool memory;
    const MicroBatches batches(data, *order_, terms_->global, terms_->micro);
    for (; audit_.read_again < steps_; ++audit_.read_again) {
      std::vector<Digest> contents;
      for (int m = 0; m < batches.per_step(); ++m) {
        const auto batch = batches.read(memory, audit_.read_again, m);
        if (!batch) {
          audit_.flaw = batch.error().text;
          return;
        }
        contents.push_back(batch->content);
      }
      if (digest_of_step(contents) == read_[static_cast<std::size_t>(audit_.read_again)].content)
        continue;
      audit_.flaw = "step " + number(audit_.read_again + 1) +
                    " read other bytes than the data has now: " +
                    first_sample(audit_.read_again * terms_->global) + " is its first";
      return;
    }
  }

  void twice(const Place& place) {
    audit_.flaw = "sample " + number(place.sample) + " of pass " + number(place.pass) +
                  " comes at two positions";
  }

  std::string first_sample(std::int64_t position) const {
    const Place place = order_->at(position);
    return "sample " + number(place.sample) + " of pass " + number(place.pass) + " (position " +
           number(position) + ")";
  }
  static std::string positions(std::int64_t first, std::int64_t count) {
    return number(first) + ".." + number(first + count - 1);
  }

  Audit flawed(const std::string& what) {
    const bool has_place = what.starts_with("line ") || line_ == 0;
    audit_.flaw = has_place ? what : "line " + number(line_) + ": " + what;
    audit_.steps = steps_;
    audit_.samples = terms_ ? audit_.steps * terms_->global : 0;
    return audit_;
  }

  Audit audit_;
  std::optional<LedgerTerms> terms_;
  std::optional<SampleOrder> order_;  // The order of the terms.
  std::int64_t steps_ = 0;            // Committed steps.
  std::int64_t entered_ = 0;          // Step records of all attempts.
  std::int64_t furthest_ = 0;  // The highest step of any attempt: later ones may begin up to it.
  std::vector<Read> read_;     // Indexed by step; a later attempt replaces its entries.
  std::set<std::int64_t> skipped_;  // A later attempt replaces its entries.
  int line_ = 0;
};

}  // namespace

Audit audit(std::string_view ledger, const Dataset* data) {
  return Auditor().follow(read_records(ledger), data);
}

}  // namespace troupe::storage
