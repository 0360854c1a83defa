// The head's refusals as a script in any language sees them.

#include "transport/wire/refusal.h"

#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;
using transport::RefusalCode;

namespace {

/// A client that asks one question after another.
class Asker {
 public:
  explicit Asker(const std::string& head) : line_(dial_options(head), 77) {
    REQUIRE(line_.messages.wait(1));  // Waits for the welcome.
  }

  transport::Refusal refused(const std::string& type, Value body) {
    auto message = message_of(type, ++asked_);
    message.body = std::move(body);
    const auto before = line_.messages.count();
    REQUIRE(line_.socket->send(message));
    REQUIRE(line_.messages.wait(before + 1));
    const auto answer = line_.messages[before];
    CHECK(answer.re == asked_);
    REQUIRE(answer.type == "error");
    auto refusal = transport::from_message<transport::Refusal>(answer);
    REQUIRE(refusal.ok());
    return std::move(*refusal);
  }

 private:
  Node line_;
  std::uint64_t asked_ = 100;
};

Value with_text(const std::string& key, const std::string& text) {
  Value body = Value::Map{};
  body.set(key, text);
  return body;
}

}  // namespace

TEST_CASE("a refusal has a code, the wrong field of the request, and what to do", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {});
  const auto address = head_of(here);
  {
    Asker asker(address);
    const auto unknown = asker.refused("run.stop", with_text("run", "nothing"));
    CHECK(unknown.code == RefusalCode::not_found);
    CHECK(unknown.path == "run");
    CHECK(unknown.hint == "`troupe runs` lists the known runs");
    CHECK(unknown.text == "no run is called 'nothing'; " + unknown.hint);

    const auto mistyped = asker.refused("run.submit", with_text("nmae", "x"));
    CHECK(mistyped.code == RefusalCode::invalid);
    CHECK(mistyped.path == "nmae");
    CHECK(mistyped.hint.starts_with("did you mean 'name'?"));

    const auto drill = asker.refused("chaos", with_text("target", "alpha"));
    CHECK(drill.code == RefusalCode::forbidden);
    CHECK(asker.refused("node.drain", with_text("node", "alpha")).code == RefusalCode::not_found);
    CHECK(asker.refused("prepared", Value::Map{}).code == RefusalCode::unsupported);
  }
  // The exit code distinguishes requests that are never valid from those that fail now.
  const auto code = [&](const std::vector<std::string>& words) {
    return troupe::tests::troupe(here, words).code;
  };
  CHECK(code(with({"submit", "gpt.toml", "--head", address}, {"data.train=nowhere.bin"})) == 3);
  CHECK(code({"nodes", "drain", "alpha", "--head", address}) == 1);
  cluster.end();
}
