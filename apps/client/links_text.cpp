#include "apps/client/links_text.h"

#include "apps/client/table.h"
#include "apps/events/number_text.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

/// Formats a short time: "41 us", "1.2 ms", "1.31 s".
std::string short_time(double seconds) {
  constexpr double milli = 1e3, micro = 1e6;
  if (seconds < 1 / milli) return brief(seconds * micro, 3) + " us";
  return seconds < 1 ? brief(seconds * milli, 3) + " ms" : brief(seconds, 3) + " s";
}

/// Formats a rate: "9.41 Gbit/s".
std::string rate_text(double bytes_per_second) {
  constexpr double bits = 8, mega = 1e6, giga = 1e9;
  const double rate = bits * bytes_per_second;
  return rate < giga ? brief(rate / mega, 3) + " Mbit/s" : brief(rate / giga, 3) + " Gbit/s";
}

}  // namespace

std::string links_text(const Value& answer) {
  using Align = Table::Align;
  Table table({{"from"},
               {"to"},
               {"carrier"},
               {"round trip", Align::right},
               {"rate", Align::right},
               {"measured", Align::right}});
  const Value* links = answer.find("links");
  if (!links || !links->list()) return {};
  for (const auto& link : *links->list()) {
    const Value* round_trip = link.find("round_trip");
    const Value* rate = link.find("bytes_per_second");
    const Value* age = link.find("seconds_ago");
    const auto why = text_of(link, "why");
    table.add({text_of(link, "from"), text_of(link, "to"), text_of(link, "carrier"),
               round_trip ? short_time(round_trip->number()) : "-",
               rate ? rate_text(rate->number()) : "-",
               age           ? duration(age->number()) + " ago"
               : why.empty() ? "now"
                             : "-"});
    if (!why.empty()) table.add_note("  " + why);
  }
  auto text = table.text() + "\nsent " + memory_text(number_in(answer, "bytes")) + ", " +
              memory_text(number_in(answer, "bytes_of_each")) +
              " by each way and carrier, one after another\n" +
              "carrier \"runs\": what the traffic of runs has measured to a host, by any carrier\n";
  if (const auto left_out = text_of(answer, "left_out"); !left_out.empty())
    text += left_out + " more nodes were left out\n";
  return text;
}

}  // namespace troupe::apps
