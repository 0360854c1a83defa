#include "transport/keys/keys.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "catch.h"
#include "storage/temporary_directory.h"
#include "transport/control/allow_list.h"
#include "transport/control/zap.h"
#include "transport/keys/access_token.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  REQUIRE(chmod(path.c_str(), mode) == 0);
}

/// A real key, so that its 32 bytes differ from its 40 characters.
const std::string key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
const std::string key_bytes =
    "\xbb\x88\x47\x1d\x65\xe2\x65\x9b\x30\xc5\x5a\x53\x21\xce\xbb\x5a\xab\x2b\x70\xa3\x98\x64\x5c"
    "\x26\xdc\xa2\xb2\xfc\xb4\x3f\xc5\x18";

AllowList list_of(const std::string& text) {
  auto list = AllowList::parse(text, "hosts.allow");
  REQUIRE(list);
  return *list;
}

}  // namespace

TEST_CASE("a key pair survives writing and reading, and only its owner can read it",
          "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "head.key";
  const auto keys = make_key_pair();
  REQUIRE(keys);
  CHECK(is_key(keys->public_key));
  CHECK(is_key(keys->secret_key));
  CHECK(make_key_pair()->secret_key != keys->secret_key);
  REQUIRE(write_key_pair(path, *keys));

  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  const auto back = read_key_pair(path);
  REQUIRE(back);
  CHECK(back->public_key == keys->public_key);
  CHECK(back->secret_key == keys->secret_key);

  CHECK_FALSE(write_key_pair(path, *make_key_pair()));
  CHECK(read_key_pair(path)->public_key == keys->public_key);
}

TEST_CASE("a secret that other users can read is refused", "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "head.key";
  REQUIRE(write_key_pair(path, *make_key_pair()));
  for (const mode_t mode : {0640, 0604, 0660, 0601}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    const auto keys = read_key_pair(path);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().text == path +
                                   ": others than its owner may read or write this secret; run: "
                                   "chmod 600 " +
                                   path + ", and make a new pair if somebody may have seen it");
  }
  REQUIRE(chmod(path.c_str(), 0400) == 0);
  CHECK(read_key_pair(path));
}

TEST_CASE("a token is one line of printable characters that only its owner can read",
          "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "token";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    REQUIRE(chmod(path.c_str(), 0600) == 0);
    return AccessToken::read(path);
  };
  const auto token = read("0123456789abcdef\n");
  REQUIRE(token);
  CHECK(token->is("0123456789abcdef"));
  for (const char* other : {"", "0123456789abcdeF", "0123456789abcde", "0123456789abcdef\n"})
    CHECK_FALSE(token->is(other));
  CHECK(read(std::string(512, 't')));
  for (const std::string& bad :
       {std::string(), std::string("too short\n"), std::string("0123456789abcdef 0123"),
        std::string(513, 't'), std::string("0123456789abcdef\n\n"), std::string(20, '\0')}) {
    const auto refused = read(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text.find(path + ": wanted one line with a token of 16 to 512") == 0);
  }
  REQUIRE(read("0123456789abcdef\n"));
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  CHECK(AccessToken::read(path).error().text ==
        path + ": others than its owner may read or write this secret; run: chmod 600 " + path +
            ", and make a new token if somebody may have seen it");
}

TEST_CASE("a secret is accepted as Kubernetes mounts it in a pod with an fsGroup", "[transport]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give a file away");
    return;
  }
  constexpr uid_t user = 65534;
  constexpr gid_t group = 65533, other_group = 65532;
  const TemporaryDirectory directory;
  const auto path = directory / "node.key";
  REQUIRE(write_key_pair(path, *make_key_pair()));
  REQUIRE(chmod((directory / ".").c_str(), 0755) == 0);
  /// Reads the file in a process that is not root, with this group.
  const auto is_read_by = [&](gid_t own_group) {
    const pid_t child = fork();
    if (child == 0) {
      if (setgroups(1, &own_group) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(3);
      _exit(read_key_pair(path) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
  };
  REQUIRE(chown(path.c_str(), 0, group) == 0);
  REQUIRE(chmod(path.c_str(), 0440) == 0);
  CHECK(is_read_by(group) == 0);
  CHECK(is_read_by(other_group) == 1);
  CHECK_FALSE(read_key_pair(path));  // Root needs no group to read the file, so it is refused.
  for (const mode_t mode : {0460, 0444, 0450}) {
    CAPTURE(mode);
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(is_read_by(group) == 1);
  }
  // A file of another user, who can read it too.
  REQUIRE(chown(path.c_str(), user - 1, group) == 0);
  REQUIRE(chmod(path.c_str(), 0440) == 0);
  CHECK(is_read_by(group) == 1);
}

TEST_CASE("a file without a key pair is refused", "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "bad.key";
  const auto one = *make_key_pair();
  const auto other = *make_key_pair();
  CHECK_FALSE(read_key_pair(path));
  CHECK_FALSE(read_key_pair(directory / "."));

  write(path, "public " + one.public_key + "\n", 0600);
  CHECK(read_key_pair(path).error().text ==
        path +
            ": wanted a line \"secret KEY\" whose key has 40 characters; `troupe keys new` "
            "writes such a file");
  write(path, "public " + one.public_key + "\nsecret " + other.secret_key + "\n", 0600);
  CHECK(read_key_pair(path).error().text ==
        path + ": the public and the secret key are no pair; make a new one");
  write(path, "public " + one.public_key + "\nsecret " + one.secret_key, 0600);
  CHECK(read_key_pair(path));
  CHECK(text_of(path).find(one.secret_key) != std::string::npos);
}

TEST_CASE("a list of hosts assigns roles to keys", "[transport]") {
  const auto list = list_of("# our hosts\n\n  alpha\tnode,daemon  " + key +
                            "  \r\nlaptop operator " + std::string(40, '#') + "\n");
  CHECK(list.size() == 2);
  REQUIRE(list.find(key));
  CHECK(list.find(key)->name == "alpha");
  CHECK(list.find(key)->roles == Roles{Role::node, Role::daemon});
  CHECK(list.find(std::string(40, '#'))->roles == Roles{Role::operator_});
  CHECK_FALSE(list.find(std::string(40, 'x')));
}

TEST_CASE("errors in a list of hosts name the line", "[transport]") {
  const auto list = AllowList::parse("# host roles key\nalpha node\nbeta boss " + key +
                                         "\ngamma node short\nde/lta node " + key +
                                         "\nepsilon node " + key + "\nzeta head " + key +
                                         "\neta operator " + key + "\ntheta , " + key + "\n",
                                     "etc/hosts.allow");
  REQUIRE_FALSE(list);
  CHECK(list.error().text ==
        "etc/hosts.allow:2: error: found 2 words, wanted three: host name, roles, public key\n"
        "etc/hosts.allow:3: error: 'boss' is no role; wanted node, operator, viewer or daemon, "
        "with commas "
        "between\n"
        "etc/hosts.allow:4: error: 'short' is no public key; wanted the 40 characters that `troupe "
        "keys` prints\n"
        "etc/hosts.allow:5: error: the host name has characters other than letters, digits, '.', "
        "'_' and '-', or more than 64\n"
        "etc/hosts.allow:7: error: 'head' is no role; wanted node, operator, viewer or daemon, "
        "with commas "
        "between\n"
        "etc/hosts.allow:8: error: this key stands in line 6 already; give it all its roles there\n"
        "etc/hosts.allow:9: error: there is no role; wanted node, operator, viewer or daemon");
}

TEST_CASE("an allow list that everybody can write is refused", "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "hosts.allow";
  CHECK_FALSE(AllowList::read(path));
  write(path, "alpha node " + key + "\n", 0644);
  CHECK(AllowList::read(path)->find(key));
  REQUIRE(chmod(path.c_str(), 0646) == 0);
  CHECK(AllowList::read(path).error().text ==
        path + ": everybody may write to this list, and so let themselves in; run: chmod o-w " +
            path);
}

TEST_CASE("only keys on the list are admitted", "[transport]") {
  const auto list = list_of("alpha node " + key + "\n");
  const std::vector<std::string> question = {"1.0", "7",     "troupe", "10.0.0.1",
                                             "",    "CURVE", key_bytes};
  CHECK(answer_zap(question, list).parts ==
        std::vector<std::string>{"1.0", "7", "200", "OK", key, ""});

  auto stranger = question;
  stranger[6][0] ^= 1;
  const auto answer = answer_zap(stranger, list);
  CHECK(answer.parts == std::vector<std::string>{"1.0", "7", "400", "not on the list", "", ""});
  CHECK(answer.address == "10.0.0.1");
  CHECK_FALSE(answer.refused.empty());

  auto short_key = question;
  short_key[6].pop_back();
  CHECK(answer_zap(short_key, list).parts[2] == "400");
  auto no_key = question;
  no_key.pop_back();
  CHECK(answer_zap(no_key, list).parts[2] == "400");
  auto other_domain = question;
  other_domain[2] = "elsewhere";
  CHECK(answer_zap(other_domain, list).parts[2] == "400");
  auto password = question;
  password[5] = "PLAIN";
  CHECK(answer_zap(password, list).parts[2] == "400");
  CHECK(answer_zap({"1.0", "7", "troupe", "127.0.0.1", "", "NULL"}, list).parts[2] == "200");
  CHECK(answer_zap({"2.0", "7", "troupe", "127.0.0.1", "", "NULL"}, list).parts.empty());
  CHECK(answer_zap({}, list).parts.empty());
}
