#include "config/toml/document.h"

#include <filesystem>

#include "catch.h"
#include "core/json.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

struct Read {
  std::string tree;
  std::string complaints;
};

Read read_all(std::map<std::string, std::string> files, const std::string& path,
              std::vector<std::string> settings = {}) {
  Diagnostics found;
  const auto document = read_document(
      {.path = path, .settings = std::move(settings), .read = in_memory(std::move(files))}, found);
  return {to_json(document.tree), found.render(document.sources)};
}

}  // namespace

TEST_CASE("a file is merged over the file that it extends, table by table", "[config]") {
  const auto read = read_all({{"runs/a.toml", "extends = \"base/b.toml\"\nx = 1\n[t]\nb = [9]\n"},
                              {"runs/base/b.toml", "x = 0\ny = 0\n[t]\na = 1\nb = [1, 2]\n"}},
                             "runs/a.toml");
  CHECK(read.complaints.empty());
  CHECK(read.tree == R"({"x":1,"y":0,"t":{"a":1,"b":[9]}})");
}

TEST_CASE("a base file may be JSON and extend another file", "[config]") {
  const auto read = read_all({{"a.toml", "extends = \"b.json\""},
                              {"b.json", R"({"extends": "sub/c.toml", "x": {"y": 1}})"},
                              {"sub/c.toml", "x.z = 2"}},
                             "a.toml");
  CHECK(read.complaints.empty());
  CHECK(read.tree == R"({"x":{"z":2,"y":1}})");
}

TEST_CASE("an error about files that extend each other names the cycle", "[config]") {
  const auto read = read_all({{"a.toml", "extends = \"./b.toml\""},
                              {"b.toml", "extends = \"sub/../c.toml\""},
                              {"c.toml", "extends = \"b.toml\""}},
                             "a.toml");
  CHECK(read.complaints ==
        "c.toml:1:11: error: files extend each other in a circle: b.toml extends c.toml extends "
        "b.toml\n"
        "    1 | extends = \"b.toml\"\n"
        "      |           ^~~~~~~~\n");
}

TEST_CASE("the length of a chain of files is bounded", "[config]") {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 40; ++i)
    files["f" + std::to_string(i)] = "extends = \"f" + std::to_string(i + 1) + "\"";
  CHECK(read_all(files, "f0")
            .complaints.starts_with(
                "f15:1:11: error: a chain of more than 16 files that extend each other\n"));
}

TEST_CASE("a file that cannot be read is an error at the place that names it", "[config]") {
  CHECK(read_all({}, "a.toml").complaints == "a.toml: error: cannot read 'a.toml'\n");
  CHECK(read_all({{"a.toml", "extends = \"b.toml\""}}, "a.toml").complaints ==
        "a.toml:1:11: error: cannot read 'b.toml'\n"
        "    1 | extends = \"b.toml\"\n"
        "      |           ^~~~~~~~\n");
  CHECK(read_all({{"a.toml", "extends = 1"}}, "a.toml")
            .complaints.starts_with(
                "a.toml:1:11: error: extends wants the path of a file, but found an integer\n"));
}

TEST_CASE("a text that is no configuration is an error with its place", "[config]") {
  CHECK(read_all({{"a.toml", "a = 1\nb = \n"}}, "a.toml").complaints ==
        "a.toml:2:5: error: this is not TOML: key-value pair: expected value, saw '\\n'\n"
        "    2 | b = \n"
        "      |     ^\n");
  CHECK(read_all({{"a.json", "{\n \"a\": }"}}, "a.json")
            .complaints.starts_with("a.json:2:7: error: "
                                    "this is not JSON"));
  CHECK(read_all({{"a.json", "[1]"}}, "a.json").complaints ==
        "a.json:1:1: error: a configuration is a table, but found a list\n"
        "    1 | [1]\n"
        "      | ^~~\n");
}

TEST_CASE("the path - reads JSON from standard input", "[config]") {
  const auto read = read_all({{"-", "{\"a\": {\"b\": 1}}"}}, "-", {"a.b=2"});
  CHECK(read.complaints.empty());
  CHECK(read.tree == R"({"a":{"b":2}})");
  CHECK(read_all({{"-", "{\"a\" 1}"}}, "-").complaints.starts_with("<stdin>:1:6: error: "));
}

TEST_CASE("a setting is a TOML value, or a bare word that is a string", "[config]") {
  const auto tree = [](const std::string& setting) {
    const auto read = read_all({{"a.toml", ""}}, "a.toml", {setting});
    CHECK(read.complaints.empty());
    return read.tree;
  };
  CHECK(tree("a.b=64") == R"({"a":{"b":64}})");
  CHECK(tree("a=true") == R"({"a":true})");
  CHECK(tree("a=3e-4") == R"({"a":3e-04})");
  CHECK(tree("a=[0, 3]") == R"({"a":[0,3]})");
  CHECK(tree("a={ b = 1 }") == R"({"a":{"b":1}})");
  CHECK(tree("a=\"x\"") == R"({"a":"x"})");
  CHECK(tree("a=auto") == R"({"a":"auto"})");
  CHECK(tree("a=1f1b") == R"({"a":"1f1b"})");
  CHECK(tree("a=100 steps") == R"({"a":"100 steps"})");
  CHECK(tree("a=made:markov?states=64") == R"({"a":"made:markov?states=64"})");
  CHECK(tree("a=2024-01-01") == R"({"a":"2024-01-01"})");
  CHECK(tree("a=\"\"") == R"({"a":""})");
}

TEST_CASE("the last of several settings of a key wins", "[config]") {
  CHECK(read_all({{"a.toml", "a = 1"}}, "a.toml", {"a=2", "b.c=1", "a=3", "b.d=2"}).tree ==
        R"({"a":3,"b":{"c":1,"d":2}})");
}

TEST_CASE("a malformed setting is shown in the error", "[config]") {
  const auto said = [](const std::string& setting) {
    const std::string text = read_all({{"a.toml", ""}}, "a.toml", {setting}).complaints;
    return text.substr(0, text.find('\n'));
  };
  const std::string form =
      "--set:1:1: error: a setting is written key=value: --set batch.global=64";
  CHECK(said("batch.global") == form);
  CHECK(said("=1") == form);
  CHECK(said("\"a\"=1") == form);
  CHECK(said("a=") == "--set:1:3: error: 'a' is given no value; write \"\" for an empty text");
  CHECK(said("a=\"x").starts_with("--set:1:"));
  CHECK(said("a=[1,\n2]") == "--set:1:3: error: a value of --set stands on one line");
  CHECK(said("a b=1") == "--set:1:1: error: 'a b' is no key");
}

TEST_CASE("one setting cannot contain another", "[config]") {
  CHECK(read_all({{"a.toml", ""}}, "a.toml", {"a=1\nb=2"}).tree == R"({"a":"1\nb=2"})");
}

TEST_CASE("a message cannot extend a file", "[config]") {
  Diagnostics found;
  Value body;
  body.set("extends", "/etc/passwd");
  body.set("seed", 1);
  const auto document = document_from(body, "run.submit", found);
  CHECK(to_json(document.tree) == R"({"seed":1})");
  CHECK(found.render(document.sources) ==
        "run.submit: error: a message cannot extend a file; send the merged tree, as `troupe "
        "submit` does\n");
}

TEST_CASE("reading a configuration is limited to files of 1 MiB", "[config]") {
  const auto folder = std::filesystem::temp_directory_path();
  CHECK(read_text_file(folder.string()).error().text.find("is a folder") != std::string::npos);
  CHECK(read_text_file((folder / "there-is-none.toml").string())
            .error()
            .text.find("is the path right") != std::string::npos);
  CHECK(read_text_file("/dev/zero").error().text.find("has more than 1 MiB") != std::string::npos);
}
