#include "transport/wire/fields.h"

#include <array>
#include <chrono>

#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

enum class Mode { drain, now };
constexpr std::array<std::string_view, 2> enum_names(Mode) { return {"drain", "now"}; }

struct Device {
  std::string kind;
  std::uint8_t cores = 1;

  static constexpr auto fields() {
    return std::tuple(required("kind", &Device::kind),
                      optional("cores", &Device::cores).at_least(1));
  }
};

struct Report {
  static constexpr std::string_view type = "node.gpus";

  std::string node;
  std::int64_t step = 0;
  std::optional<double> loss;
  std::vector<Device> devices;
  Mode mode = Mode::now;
  std::chrono::milliseconds patience{50};
  bool last = false;
  Value settings;

  static constexpr auto fields() {
    return std::tuple(required("node", &Report::node),
                      required("step", &Report::step).at_least(0).at_most(1000),
                      optional("loss", &Report::loss), optional("devices", &Report::devices),
                      optional("mode", &Report::mode), optional("patience", &Report::patience),
                      optional("last", &Report::last), optional("settings", &Report::settings));
  }
};

std::string refusal(const std::string& json) {
  const auto report = from_value<Report>(*parse_json(json), "node.gpus.body");
  return report ? "" : report.error().text;
}

}  // namespace

TEST_CASE("a struct survives conversion to a body and back", "[transport]") {
  const Report report{.node = "alpha",
                      .step = 3,
                      .loss = 0.5,
                      .devices = {{"cpu", 4}, {"gpu", 1}},
                      .mode = Mode::drain,
                      .patience = 2s,
                      .last = true,
                      .settings = Value::Map{{"lr", 0.1, {}}}};
  const auto message = to_message(report);
  CHECK(message.type == "node.gpus");
  CHECK(to_json(message.body) ==
        R"({"node":"alpha","step":3,"loss":0.5,"devices":[{"kind":"cpu","cores":4},)"
        R"({"kind":"gpu","cores":1}],"mode":"drain","patience":2000000000,"last":true,)"
        R"("settings":{"lr":0.1}})");
  const auto back = from_message<Report>(message);
  REQUIRE(back);
  CHECK(to_json(to_value(*back)) == to_json(message.body));
  CHECK(back->devices[0].cores == 4);
  CHECK(back->patience == 2s);
}

TEST_CASE("optional fields keep their defaults, and unknown fields are skipped", "[transport]") {
  const auto report =
      from_value<Report>(*parse_json(R"({"node":"a","step":1,"colour":"red"})"), "x");
  REQUIRE(report);
  CHECK(report->mode == Mode::now);
  CHECK(report->patience == 50ms);
  CHECK_FALSE(report->loss);
  CHECK_FALSE(from_value<Report>(*parse_json(R"({"node":"a","step":1,"loss":null})"), "x")->loss);
  CHECK_FALSE(to_value(*report).find("loss"));
}

TEST_CASE("an error names the field, what was found and what was expected", "[transport]") {
  CHECK(refusal("[]") == "node.gpus.body: found a list, wanted a table");
  CHECK(refusal(R"({"node":"a"})") == "node.gpus.body.step: is missing");
  CHECK(refusal(R"({"node":7,"step":1})") == "node.gpus.body.node: found 7, wanted a string");
  CHECK(refusal(R"({"node":"a","step":"b"})") ==
        "node.gpus.body.step: found a string, wanted an integer");
  CHECK(refusal(R"({"node":"a","step":1.5})") ==
        "node.gpus.body.step: found 1.5, wanted an integer");
  CHECK(refusal(R"({"node":"a","step":-1})") ==
        "node.gpus.body.step: found -1, wanted an integer between 0 and 1000");
  CHECK(refusal(R"({"node":"a","step":1,"loss":"x"})") ==
        "node.gpus.body.loss: found a string, wanted a finite number");
  CHECK(refusal(R"({"node":"a","step":1,"last":1})") ==
        "node.gpus.body.last: found 1, wanted a boolean");
  CHECK(refusal(R"({"node":"a","step":1,"mode":"later"})") ==
        "node.gpus.body.mode: found \"later\", wanted one of drain, now");
  CHECK(refusal(R"({"node":"a","step":1,"patience":-1})") ==
        "node.gpus.body.patience: found -1, wanted an integer of at least 0");
  CHECK(refusal(R"({"node":"a","step":1,"devices":{}})") ==
        "node.gpus.body.devices: found a table, wanted a list");
  CHECK(refusal(R"({"node":"a","step":1,"devices":[{"kind":"cpu"},{"cores":1}]})") ==
        "node.gpus.body.devices[1].kind: is missing");
  CHECK(refusal(R"({"node":"a","step":1,"devices":[{"kind":"cpu","cores":256}]})") ==
        "node.gpus.body.devices[0].cores: found 256, wanted an integer between 1 and 255");
}

TEST_CASE("a number that is not finite is refused", "[transport]") {
  Value body = *parse_json(R"({"node":"a","step":1})");
  body.set("loss", std::numeric_limits<double>::infinity());
  CHECK_FALSE(from_value<Report>(body, "x"));
}
