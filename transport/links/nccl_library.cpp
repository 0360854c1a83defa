#include "transport/links/nccl_library.h"

#include <dlfcn.h>

#include <string>

namespace troupe::transport {
namespace {

constexpr const char* file_name = "libnccl.so.2";
constexpr int oldest = NCCL_VERSION(2, 22, 0);  // It can abort communicators as a group.

class Opening {
 public:
  Opening() : file_(dlopen(file_name, RTLD_NOW | RTLD_LOCAL)) {
    if (!file_) why_ = dlerror();
  }

  template <class Function>
  void find(const char* name, Function*& into) {
    if (!why_.empty()) return;
    into = reinterpret_cast<Function*>(dlsym(file_, name));
    if (!into) why_ = std::string(file_name) + " has no " + name;
  }
  const std::string& why() const { return why_; }

 private:
  void* file_;
  std::string why_;
};

Result<NcclLibrary> open() {
  NcclLibrary library;
  decltype(&ncclGetVersion) version_of = nullptr;
  Opening opening;
  opening.find("ncclGetVersion", version_of);
  opening.find("ncclGetErrorString", library.text_of);
  opening.find("ncclGetLastError", library.last_error);
  opening.find("ncclGetUniqueId", library.unique_id);
  opening.find("ncclCommInitRankConfig", library.init);
  opening.find("ncclCommGetAsyncError", library.state_of);
  opening.find("ncclCommAbort", library.abort);
  opening.find("ncclGroupStart", library.begin_group);
  opening.find("ncclGroupEnd", library.end_group);
  opening.find("ncclSend", library.send);
  opening.find("ncclRecv", library.receive);
  opening.find("ncclReduce", library.reduce);
  if (!opening.why().empty()) return Error{"NCCL: " + opening.why()};
  if (version_of(&library.version) != ncclSuccess || library.version < oldest)
    return Error{"NCCL: found version " + std::to_string(library.version) + " of " + file_name +
                 ", wanted " + std::to_string(oldest) + " or later"};
  return library;
}

}  // namespace

Result<const NcclLibrary*> nccl_library() {
  static const auto opened = open();
  if (!opened) return opened.error();
  return &*opened;
}

}  // namespace troupe::transport
