#include "apps/client/wire_keys.h"

#include <CLI/CLI.hpp>
#include <random>

namespace troupe::apps {

void DialKeys::add_to(CLI::App& command) {
  command.add_option("--keys", keys, "key file of this client or node, from `troupe keys new`")
      ->envname("TROUPE_KEYS");
  command.add_option("--head-key", head_key, "public key of the head, as the head prints it")
      ->envname("TROUPE_HEAD_KEY");
}

Result<transport::DialOptions> DialKeys::dial(const std::string& endpoint) const {
  transport::DialOptions options;
  options.endpoint = endpoint;
  std::random_device random;
  options.seed = (static_cast<std::uint64_t>(random()) << 31) ^ random();
  if (keys.empty() != head_key.empty())
    return Error{keys.empty() ? "--head-key needs --keys: a head that has keys lets in only those "
                                "that it knows"
                              : "--keys needs --head-key: the public key that the head prints"};
  if (keys.empty()) return options;
  auto pair = transport::read_key_pair(keys);
  if (!pair) return pair.error();
  if (!transport::is_key(head_key))
    return Error{"--head-key: found '" + head_key + "', wanted a public key of 40 characters"};
  options.keys = std::move(*pair);
  options.head_key = head_key;
  return options;
}

}  // namespace troupe::apps
