#include "core/mixture.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

namespace troupe {
namespace {

/// The limit on the samples of a block. Finding a sample takes time in proportion.
constexpr std::int64_t most_in_block = 1'000;
constexpr std::int64_t most_weight = 1'000'000;
constexpr std::int64_t most_step = std::int64_t{1} << 48;
constexpr std::size_t most_phases = 1'000;

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

Mixture Mixture::until(std::int64_t steps) const {
  Mixture begins = *this;
  std::erase_if(begins.phases,
                [steps](const Phase& phase) { return phase.from > 0 && phase.from >= steps; });
  return begins;
}

namespace {

std::string in_quotes(const std::vector<std::string>& sources) {
  std::string text;
  for (const auto& source : sources) text += (text.empty() ? "\"" : ", \"") + source + "\"";
  return text;
}

/// Returns whether a name stands for a source: it is the end of the source's path, and its options
/// are those of the source, or none.
bool stands_for(std::string_view name, std::string_view source) {
  const auto file = name.substr(0, name.find('?'));
  const auto path = source.substr(0, source.find('?'));
  if (file.size() < name.size() && name.substr(file.size()) != source.substr(path.size()))
    return false;
  return path == file || (path.ends_with(file) && path[path.size() - file.size() - 1] == '/');
}

/// Finds the source that a name stands for.
Result<std::size_t> source_of(const std::string& name, const std::vector<std::string>& sources) {
  const auto exact = std::ranges::find(sources, name);
  if (exact != sources.end()) return static_cast<std::size_t>(exact - sources.begin());
  std::vector<std::string> found;
  std::size_t index = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!stands_for(name, sources[i])) continue;
    found.push_back(sources[i]);
    index = i;
  }
  if (found.size() == 1) return index;
  if (found.empty())
    return Error{"found \"" + name +
                 "\", wanted a source of the run, which keeps its sources: " + in_quotes(sources)};
  return Error{"\"" + name + "\" stands for several sources; write one of " + in_quotes(found)};
}

/// Returns the error for a change that keeps not all sources in their order.
Error sources_moved(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  for (const auto& source : before)
    if (std::ranges::find(after, source) == after.end())
      return Error{"leaves \"" + source +
                   "\" out of all steps, but a run keeps its sources; name it in a later phase"};
  return Error{"names sources in the order " + in_quotes(after) +
               "; wanted the order of the run: " + in_quotes(before)};
}

}  // namespace

Result<Mixture> Mixture::changed_from(std::int64_t step, const Mixture& wanted) const {
  std::vector<Phase> added = wanted.phases;
  const auto by_source = [](std::vector<Part> parts) {
    std::ranges::sort(parts, {}, &Part::source);
    return parts;
  };
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (i > 0 && added[i].from <= step)
      return Error{"changes at step " + std::to_string(added[i].from) + ", and its first weights " +
                   "hold from step " + std::to_string(step) + " on; later steps were wanted"};
    for (auto& part : added[i].parts) {
      const auto known = source_of(wanted.sources[part.source], sources);
      if (!known) return known.error();
      part.source = *known;
    }
  }
  added.front().from = step;
  // The sources of a run are numbered as its first phase names them.
  if (step == 0) added.front().parts = by_source(std::move(added.front().parts));
  const bool is_in_force = added.size() == 1 && phases.back().from <= step &&
                           by_source(added.front().parts) == by_source(phases.back().parts);
  if (is_in_force) return *this;
  Mixture changed = *this;
  std::erase_if(changed.phases, [step](const Phase& phase) { return phase.from >= step; });
  std::ranges::move(added, std::back_inserter(changed.phases));
  // Two names may stand for one source, and there may be too many phases.
  auto read = parse(changed.text());
  if (!read) return read.error();
  if (read->sources != sources) return sources_moved(sources, read->sources);
  return read;
}

}  // namespace troupe
