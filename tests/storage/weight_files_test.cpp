#include "storage/files/weight_files.h"

#include <array>
#include <string>
#include <vector>

#include "catch.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

const std::array<float, 4> numbers{1, 2, 3, 4};

TensorView tensor(const std::string& name) {
  return {name, StoredType::f32, Shape{4}, std::as_bytes(std::span(numbers))};
}

void write(MemoryFiles& files, const std::string& path, const std::vector<std::string>& names) {
  std::vector<TensorView> tensors;
  for (const auto& name : names) tensors.push_back(tensor(name));
  REQUIRE(write_safetensors(files, path, tensors));
}

/// Makes a folder with the tensors a and b in one file, and c in another.
void make_folder(MemoryFiles& files) {
  REQUIRE(files.make_directory("dir"));
  write(files, "dir/one.safetensors", {"a", "b"});
  write(files, "dir/two.safetensors", {"c"});
}

std::string problem_of(const std::string& index) {
  MemoryFiles files;
  make_folder(files);
  REQUIRE(replace_file(files, "dir/model.safetensors.index.json", index));
  const auto weights = WeightFiles::open(files, "dir");
  return weights ? "" : weights.error().text;
}

}  // namespace

TEST_CASE("weights in several files are all that the index names", "[storage]") {
  MemoryFiles files;
  make_folder(files);
  const std::string index =
      R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}})";
  REQUIRE(replace_file(files, "dir/model.safetensors.index.json", index));
  const auto weights = WeightFiles::open(files, "dir");
  REQUIRE(weights.ok());
  std::string names;
  for (const auto& one : weights->tensors()) names += one.name;
  CHECK(names == "abc");
  CHECK(weights->index() == index);
  CHECK(weights->folder() == "dir");
  // A file beside the index may be another version of the weights.
  write(files, "dir/model.safetensors", {"a"});
  CHECK(WeightFiles::open(files, "dir").error().text.find("remove one of them") !=
        std::string::npos);
}

TEST_CASE("a bad index of weights is refused with the reason", "[storage]") {
  const std::string at = "dir/model.safetensors.index.json";
  CHECK(problem_of("{}") ==
        at + ": found no weight_map; wanted a table with the file of each tensor");
  CHECK(problem_of(R"({"weight_map": {}})") == at + ": weight_map is empty");
  CHECK(problem_of("{").starts_with(at + ":1:"));
  CHECK(problem_of(R"({"weight_map": {"a": 1}})") ==
        at + ": weight_map.a: found 1, wanted the name of a file");
  for (const std::string outside : {"../one.safetensors", "/one.safetensors", "one.bin", ""})
    CHECK(problem_of(R"({"weight_map": {"a": ")" + outside + "\"}}") ==
          at + ": weight_map.a: found \"" + outside +
              "\", wanted a .safetensors file in the folder of the index");
  CHECK(problem_of(R"({"weight_map": {"a": "one.safetensors"}})") ==
        "dir/one.safetensors: found the tensor \"b\", which model.safetensors.index.json does not "
        "name");
  CHECK(problem_of(R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})") ==
        "dir/one.safetensors: found the tensor \"b\", which model.safetensors.index.json names for "
        "two.safetensors");
  CHECK(problem_of(R"({"weight_map": {"c": "two.safetensors", "d": "two.safetensors"}})") ==
        "dir/two.safetensors: lacks the tensor \"d\", which model.safetensors.index.json names; "
        "copy the file again");
  CHECK(problem_of(R"({"weight_map": {"a": "three.safetensors"}})")
            .starts_with("dir/three.safetensors: "));
}

TEST_CASE("tensors are divided into files of a size, and a larger one is alone", "[storage]") {
  const std::vector<TensorView> tensors = {tensor("a"), tensor("b"), tensor("c"), tensor("d")};
  const auto names_of = [](const std::vector<WeightFile>& files) {
    std::string text;
    for (const auto& file : files) {
      text += file.name + ":";
      for (const auto& one : file.tensors) text += one.name;
      text += " ";
    }
    return text;
  };
  CHECK(names_of(divide_weights(tensors, 64)) == "model.safetensors:abcd ");
  CHECK(names_of(divide_weights(tensors, 48)) ==
        "model-00001-of-00002.safetensors:abc model-00002-of-00002.safetensors:d ");
  const auto each = divide_weights(tensors, 1);
  CHECK(each.size() == 4);
  // The index of divided weights divides them in the same way.
  const auto again = divide_weights(tensors, weights_index(each));
  REQUIRE(again.ok());
  CHECK(names_of(*again) == names_of(each));
  CHECK_FALSE(divide_weights({tensor("e")}, weights_index(each)).ok());
}
