#include "tests/sim/scenario/fault.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace troupe::simulation {

std::string time_text(Scheduler::Duration time) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.3f s",
                      std::chrono::duration<double>(time).count());
  return text.data();
}

std::string_view name_of(Fault::Kind kind) {
  constexpr std::array<std::string_view, Fault::kinds> names = {
      "kill",         "crash",         "freeze",        "cut",           "cut one way",
      "links end",    "delays",        "old message",   "slow disk",     "full disk",
      "failing call", "kill at call",  "crash at call", "kill at point", "damage",
      "slow jobs",    "drain",         "cordon",        "pause",         "stop",
      "save",         "submit",        "failing jobs",  "kill again",    "torn decision",
      "refusals",     "program fault", "second head",   "full queues",   "stuck"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_text(const Fault& fault) {
  std::string text = time_text(fault.at) + " " + std::string(name_of(fault.kind));
  if (fault.when)
    text += " at " + std::string(actors::decide::to_string(*fault.when)) + " and " +
            time_text(fault.later) +
            (fault.times > 1 ? ", " + std::to_string(fault.times) + " times," : "");
  text += " machine " + std::to_string(fault.machine);
  if (is_of_link(fault.kind) || fault.kind == Kind::old_message)
    text += " and " + std::to_string(fault.other);
  if (!fault.part.empty()) text += ", its " + std::string(fault.part);
  text += fault.lasts ? " for " + time_text(*fault.lasts) : " for ever";
  return text + ", number " + std::to_string(fault.number);
}

}  // namespace troupe::simulation
