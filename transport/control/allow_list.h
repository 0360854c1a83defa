#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"
#include "transport/wire/message_types.h"

namespace troupe::transport {

/// The keys that the head knows, with the roles of each. The file `hosts.allow` has one line a key:
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

  /// Reports errors in the style of compilers, one a line: "hosts.allow:3: error: ...".
  static Result<AllowList> parse(std::string_view text, const std::string& name);
  /// Refuses a file that every user may write to.
  static Result<AllowList> read(const std::string& path);

  void add(const std::string& public_key, Host host) { hosts_[public_key] = std::move(host); }
  /// Returns null for a key that is not on the list.
  const Host* find(std::string_view public_key) const;
  std::size_t size() const { return hosts_.size(); }

 private:
  std::map<std::string, Host, std::less<>> hosts_;
};

/// Whether a text can be the name of a host or a node: 1 to 64 of A-Z a-z 0-9 . _ -
bool is_host_name(std::string_view text);

}  // namespace troupe::transport
