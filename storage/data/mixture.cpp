#include "storage/data/mixture.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

namespace troupe::storage {
namespace {

/// The limit on the samples of a block. Finding a sample takes time in proportion.
constexpr std::int64_t most_in_block = 1'000;
constexpr std::int64_t most_weight = 1'000'000;
constexpr std::int64_t most_step = std::int64_t{1} << 48;
constexpr std::size_t most_phases = 1'000;
/// The number that separates the arrangement of blocks from the orders of the sources.
constexpr std::uint64_t use_of_seed = 0x6d69787475726573;

std::string_view trimmed(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\n") + 1);
}

std::vector<std::string_view> divided(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(mark);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

/// Reads "a.bin 7".
Result<Mixture::Part> read_part(std::string_view text, std::vector<std::string>& sources) {
  const auto blank = text.find_last_of(" \t\n");
  const auto weight = blank == text.npos ? std::nullopt : whole_number(text.substr(blank + 1));
  if (!weight || *weight < 1 || *weight > most_weight)
    return Error{"found \"" + std::string(text) +
                 "\", wanted a source and its weight from 1 to 1000000, such as \"a.bin 7\""};
  const std::string source(trimmed(text.substr(0, blank)));
  const auto at = std::ranges::find(sources, source);
  const auto index = static_cast<std::size_t>(at - sources.begin());
  if (at == sources.end()) sources.push_back(source);
  return Mixture::Part{index, *weight};
}

/// Divides weights by their greatest common divisor.
Status reduce(Mixture::Phase& phase, std::string_view text) {
  std::int64_t divisor = 0, sum = 0;
  for (const auto& part : phase.parts) divisor = std::gcd(divisor, part.weight);
  for (auto& part : phase.parts) sum += part.weight /= divisor;
  if (sum > most_in_block)
    return Error{"\"" + std::string(text) + "\" makes blocks of " + std::to_string(sum) +
                 " samples; at most " + std::to_string(most_in_block) +
                 " are taken: choose smaller weights"};
  return Done{};
}

Result<Mixture::Phase> read_phase(std::string_view text, std::vector<std::string>& sources) {
  Mixture::Phase phase;
  const std::string whole(text);
  if (text.starts_with("from ")) {
    const auto colon = text.find(": ");
    const auto step =
        colon == text.npos ? std::nullopt : whole_number(trimmed(text.substr(5, colon - 5)));
    if (!step || *step < 1 || *step > most_step)
      return Error{"found \"" + whole + "\", wanted a step, such as \"from 2000: a.bin 1\""};
    phase.from = *step;
    text = text.substr(colon + 2);
  }
  for (const auto words : divided(text, ',')) {
    const auto part = read_part(words, sources);
    if (!part) return part.error();
    for (const auto& other : phase.parts)
      if (other.source == part->source)
        return Error{"\"" + whole + "\" names \"" + sources[part->source] + "\" twice"};
    phase.parts.push_back(*part);
  }
  if (auto status = reduce(phase, whole); !status) return status.error();
  return phase;
}

}  // namespace

Result<Mixture> Mixture::parse(std::string_view text) {
  Mixture mixture;
  for (const auto words : divided(text, ';')) {
    auto phase = read_phase(words, mixture.sources);
    if (!phase) return phase.error();
    const bool is_first = mixture.phases.empty();
    if (is_first && phase->from != 0)
      return Error{"begins with step " + std::to_string(phase->from) +
                   "; weights for the first step were wanted before"};
    if (!is_first && phase->from <= mixture.phases.back().from)
      return Error{"step " + std::to_string(phase->from) + " comes behind step " +
                   std::to_string(mixture.phases.back().from) + "; later steps were wanted"};
    mixture.phases.push_back(std::move(*phase));
    if (mixture.phases.size() > most_phases)
      return Error{"changes more than " + std::to_string(most_phases) + " times"};
  }
  return mixture;
}

std::string Mixture::text() const {
  std::string written;
  for (const auto& phase : phases) {
    if (!written.empty()) written += "; from " + std::to_string(phase.from) + ": ";
    for (std::size_t i = 0; i < phase.parts.size(); ++i)
      written += (i ? ", " : "") + sources[phase.parts[i].source] + " " +
                 std::to_string(phase.parts[i].weight);
  }
  return written;
}

MixedOrder::MixedOrder(Mixture mixture, SampleOrder::Kind kind, std::uint64_t seed,
                       std::int64_t global, const std::vector<std::int64_t>& counts)
    : mixture_(std::move(mixture)), seed_(seed ^ use_of_seed) {
  assert(counts.size() == mixture_.sources.size());
  std::int64_t first = 0;
  for (const auto count : counts) {
    orders_.emplace_back(kind, seed, count);
    firsts_.push_back(first);
    first += count;
  }
  for (std::size_t i = 0; i < mixture_.phases.size(); ++i) {
    const auto& phase = mixture_.phases[i];
    Stretch stretch;
    // No run gets to a position that does not fit.
    if (__builtin_mul_overflow(phase.from, global, &stretch.position))
      stretch.position = std::numeric_limits<std::int64_t>::max();
    for (const auto& part : phase.parts) stretch.size += part.weight;
    stretch.before.assign(mixture_.sources.size(), 0);
    if (i > 0) {
      // The block that the change of weights cuts short counts as one.
      const auto& last = stretches_.back();
      stretch.block = last.block + (stretch.position - last.position + last.size - 1) / last.size;
      stretch.before = drawn_before(stretch.position);
    }
    stretches_.push_back(std::move(stretch));
  }
}

std::size_t MixedOrder::phase_at(std::int64_t position) const {
  std::size_t phase = stretches_.size() - 1;
  while (stretches_[phase].position > position) --phase;
  return phase;
}

std::size_t MixedOrder::source_at(std::size_t phase, std::int64_t block, std::int64_t slot) const {
  auto left = permute(seed_, block, slot, stretches_[phase].size);
  for (const auto& part : mixture_.phases[phase].parts) {
    if (left < part.weight) return part.source;
    left -= part.weight;
  }
  return 0;
}

std::vector<std::int64_t> MixedOrder::drawn_before(std::int64_t position) const {
  assert(position >= 0);
  // At the beginning of a phase its predecessor is complete.
  auto phase = phase_at(std::max<std::int64_t>(position - 1, 0));
  const auto& stretch = stretches_[phase];
  const auto blocks = (position - stretch.position) / stretch.size;
  const auto rest = (position - stretch.position) % stretch.size;
  auto drawn = stretch.before;
  for (const auto& part : mixture_.phases[phase].parts) drawn[part.source] += blocks * part.weight;
  for (std::int64_t slot = 0; slot < rest; ++slot)
    ++drawn[source_at(phase, stretch.block + blocks, slot)];
  return drawn;
}

MixedOrder::Drawn MixedOrder::at(std::int64_t position) const {
  assert(position >= 0);
  const auto phase = phase_at(position);
  const auto& stretch = stretches_[phase];
  const auto block = stretch.block + (position - stretch.position) / stretch.size;
  const auto source = source_at(phase, block, (position - stretch.position) % stretch.size);
  return {source, orders_[source].at(drawn_before(position)[source])};
}

}  // namespace troupe::storage
