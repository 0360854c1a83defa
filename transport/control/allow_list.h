#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"
#include "transport/wire/message_types.h"

namespace troupe::transport {

/// The keys that the head accepts, and their roles. The file `hosts.allow` has a line for each key:
///
///     # host   roles          public key
///     alpha    node,daemon    Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID
class AllowList {
 public:
  struct Host {
    std::string name;
    Roles roles;

    friend bool operator==(const Host&, const Host&) = default;
  };

  /// Parses a list. Errors have the style of compilers, "hosts.allow:3: error: ...", one per line.
  static Result<AllowList> parse(std::string_view text, const std::string& name);
  /// Reads a list. Rejects a file that everybody may write to.
  static Result<AllowList> read(const std::string& path);

  void add(const std::string& public_key, Host host) { hosts_[public_key] = std::move(host); }
  /// Returns null if the key is not on the list.
  const Host* find(std::string_view public_key) const;
  std::size_t size() const { return hosts_.size(); }

 private:
  std::map<std::string, Host, std::less<>> hosts_;
};

/// Returns whether a text is a valid name of a host or node: 1 to 64 of A-Z a-z 0-9 . _ -
bool is_host_name(std::string_view text);

}  // namespace troupe::transport
