#include "actors/standstill.h"

#include <algorithm>

namespace troupe::actors {

std::optional<Standstill> find_standstill(const std::vector<Standing>& all,
                                          const Allowed& allowed) {
  for (const auto& one : all)
    if (one.silent > allowed.usual) return Standstill{one.who, "it no longer answers"};

  const Standing* root = nullptr;
  for (const auto& one : all) {
    if (!one.wait) continue;
    if (one.patiences < allowed.of(one.wait)) return {};
    const bool computes = one.wait.on == Wait::On::executor;
    if (!root || (computes && root->wait.on == Wait::On::message)) root = &one;
  }
  if (!root) return {};
  return Standstill{root->who, root->wait.what + ", and no player has made progress for too long"};
}

bool has_progress(const std::vector<Standing>& all) {
  return std::ranges::any_of(
      all, [](const Standing& one) { return one.wait && one.patiences == 0 && one.silent <= 1; });
}

}  // namespace troupe::actors
