#include "storage/checkpoint/mixture_audit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/mixture.h"

namespace troupe::storage {
namespace {

std::string as_list(std::span<const std::int64_t> counts) {
  std::string text;
  for (const auto count : counts) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

std::vector<std::int64_t> left_out_until(const LedgerTerms& terms, std::int64_t step) {
  auto steps = terms.left_out;
  std::erase_if(steps, [step](std::int64_t one) { return one > step; });
  return steps;
}

}  // namespace

Status match_terms(const LedgerTerms& before, const LedgerTerms& now, std::int64_t after) {
  if (before == now) return Done{};
  LedgerTerms changed_terms = before;
  changed_terms.mix = now.mix;
  changed_terms.left_out = now.left_out;
  if (changed_terms != now || before.mix.empty() != now.mix.empty())
    return Error{
        "the seed, order, batch size or number of samples differs from the attempt before: the "
        "order of samples has changed"};
  if (left_out_until(before, after) != left_out_until(now, after))
    return Error{"the attempt begins after step " + std::to_string(after) +
                 ", and leaves out other steps before it than the attempt before"};
  if (before.mix == now.mix) return Done{};
  const auto old = Mixture::parse(before.mix), changed = Mixture::parse(now.mix);
  const bool is_known = old && changed && old->sources == changed->sources;
  if (is_known && (after == 0 || old->until(after) == changed->until(after))) return Done{};
  return Error{"the attempt begins after step " + std::to_string(after) + " with the mixture \"" +
               now.mix + "\", which has other samples in earlier steps than \"" + before.mix +
               "\""};
}

Status match_counts(std::span<const std::int64_t> recorded, std::span<const std::int64_t> wanted) {
  if (std::ranges::equal(recorded, wanted)) return Done{};
  return Error{"recorded " + as_list(recorded) + " samples of the sources; the mixture gives it " +
               as_list(wanted)};
}

void count_sources(const LedgerTerms& terms, const SampleOrder& order, Audit& audit) {
  const auto mixture = Mixture::parse(terms.mix);
  const auto all = order.of_sources(0, audit.steps * terms.global);
  for (std::size_t i = 0; i < all.size(); ++i)
    audit.sources.push_back({mixture->sources[i], all[i], all[i] / terms.counts[i]});
  const auto& phases = mixture->phases;
  for (std::size_t i = 0; i < phases.size() && phases[i].from < audit.steps; ++i) {
    const auto first = phases[i].from;
    const auto end =
        i + 1 < phases.size() ? std::min(phases[i + 1].from, audit.steps) : audit.steps;
    audit.phases.push_back(
        {first + 1, end, order.of_sources(first * terms.global, (end - first) * terms.global)});
  }
}

}  // namespace troupe::storage
