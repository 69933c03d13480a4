// Tensors for Python by the ten thousand: capsules, or a framework's own objects, made in one call.
// Python is found in the process that calls (its stable ABI), never linked to.
#include <algorithm>
#include <vector>

#include <dlfcn.h>

#include "api/attachment.hpp"
#include "api/dlpack.hpp"
#include "api/guard.hpp"
#include "api/structs.hpp"

namespace wc::api {
namespace {

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

template <typename Function>
Function python_function(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

// Of CPython's stable ABI; PyObject is void here.
struct Python {
  void* (*list_new)(std::ptrdiff_t size);
  int (*list_set)(void* list, std::ptrdiff_t at, void* stolen);
  void* (*capsule_new)(void* pointer, const char* name, void (*destructor)(void*));
  void (*decref)(void*);
  int (*gc_enable)();
  int (*gc_disable)();  // whether it was enabled
};

Result<Python> find_python() {
  const Python python = {
      python_function<decltype(Python::list_new)>("PyList_New"),
      python_function<decltype(Python::list_set)>("PyList_SetItem"),
      python_function<decltype(Python::capsule_new)>("PyCapsule_New"),
      python_function<decltype(Python::decref)>("Py_DecRef"),
      python_function<decltype(Python::gc_enable)>("PyGC_Enable"),
      python_function<decltype(Python::gc_disable)>("PyGC_Disable"),
  };
  if (python.list_new != nullptr && python.list_set != nullptr && python.capsule_new != nullptr &&
      python.decref != nullptr && python.gc_enable != nullptr && python.gc_disable != nullptr)
    return python;
  return fail(Code::unsupported, "there is no Python 3.10 or later in this process");
}

// No garbage collection: each of ten thousand new objects would be looked at again and again.
class Uncollected {
 public:
  explicit Uncollected(const Python& python)
      : python_(&python), enabled_(python.gc_disable() != 0) {}
  Uncollected(const Uncollected&) = delete;
  Uncollected& operator=(const Uncollected&) = delete;
  ~Uncollected() {
    if (enabled_) python_->gc_enable();
  }

 private:
  const Python* python_;
  bool enabled_;
};

class Object {
 public:
  Object(const Python& python, void* object) : python_(&python), object_(object) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() {
    if (object_ != nullptr) python_->decref(object_);
  }
  [[nodiscard]] void* get() const { return object_; }
  [[nodiscard]] void* release() { return std::exchange(object_, nullptr); }

 private:
  const Python* python_;
  void* object_;
};

// Managed tensors of which nobody has taken over the rest.
struct Waiting {
  std::vector<void*> managed;
  std::size_t taken = 0;
  bool versioned = false;
  ~Waiting() {
    for (std::size_t i = taken; i < managed.size(); ++i) wc_dlpack_delete(managed[i], versioned);
  }
};

Failure python_failed(const char* what) {
  return fail(Code::unsupported, "{} failed: a Python exception says why", what);
}

const dlpack::ExchangeApi* usable(const void* exchange) {
  const auto* api = static_cast<const dlpack::ExchangeApi*>(exchange);
  while (api != nullptr && api->major != dlpack::kMajor) api = api->previous;
  return api;
}

Result<void*> tensor_object(const dlpack::ExchangeApi& api, Waiting& waiting) {
  void* const managed = waiting.managed[waiting.taken];
  void* object = nullptr;
  const DeletionWatch watch(managed);
  const int failed =
      api.managed_tensor_to_object(static_cast<dlpack::ManagedVersioned*>(managed), &object);
  if (failed == 0 || watch.deleted()) ++waiting.taken;
  if (failed != 0) return python_failed("the framework's managed_tensor_to_py_object_no_sync");
  return object;
}

Result<void*> capsule_object(const Python& python, Waiting& waiting) {
  void* const capsule =
      python.capsule_new(waiting.managed[waiting.taken], waiting.versioned ? kVersioned : kPlain,
                         wc_dlpack_capsule_destructor);
  if (capsule == nullptr) return python_failed("PyCapsule_New");
  ++waiting.taken;
  return capsule;
}

struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

Result<void*> make_list(const wc_attachment& attachment, const wc_dlpack_options* options,
                        const void* exchange, Range range) {
  auto known = TRY(take_struct_or_default(options, "wc_dlpack_options"));
  const Python python = TRY(find_python());
  const auto* api = usable(exchange);
  if (exchange != nullptr && api == nullptr)
    return fail(Code::unsupported, "the framework exchanges tensors by DLPack {}, not {}",
                static_cast<const dlpack::ExchangeApi*>(exchange)->major, dlpack::kMajor);
  if (api != nullptr) known.versioned = 1;
  const std::size_t all = attachment.manifest->tensor_count();
  Waiting waiting;
  waiting.versioned = known.versioned != 0;
  // A count that make_dlpack() will refuse needs no room.
  waiting.managed.resize(std::min(range.count, all + 1));
  waiting.taken = waiting.managed.size();  // nothing is there yet
  TRY(make_dlpack(attachment, known, range.first, waiting.managed));
  waiting.taken = 0;
  const Uncollected uncollected(python);
  const auto size = static_cast<std::ptrdiff_t>(waiting.managed.size());
  Object list(python, python.list_new(size));
  if (list.get() == nullptr) return python_failed("PyList_New");
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    void* const object =
        TRY(api != nullptr ? tensor_object(*api, waiting) : capsule_object(python, waiting));
    python.list_set(list.get(), i, object);
  }
  return list.release();
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_attachment_dlpack_list(const wc_attachment* attachment, const wc_dlpack_options* options,
                              const void* exchange, size_t first, size_t count, void** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(attachment, "attachment"));
    *out = TRY(wc::api::make_list(*attachment, options, exchange, {first, count}));
    return {};
  });
}

void wc_dlpack_capsule_destructor(void* capsule) {
  using IsValid = int (*)(void*, const char*);
  using GetPointer = void* (*)(void*, const char*);
  // Looked up once: it costs more than the tensor.
  static const auto is_valid = wc::api::python_function<IsValid>("PyCapsule_IsValid");
  static const auto get_pointer = wc::api::python_function<GetPointer>("PyCapsule_GetPointer");
  if (capsule == nullptr || is_valid == nullptr || get_pointer == nullptr) return;
  for (const bool versioned : {false, true}) {
    const char* const name = versioned ? wc::api::kVersioned : wc::api::kPlain;
    // A consumer renames what it has taken over.
    if (is_valid(capsule, name) != 0) wc_dlpack_delete(get_pointer(capsule, name), versioned);
  }
}

}  // extern "C"
