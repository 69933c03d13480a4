#include "catalog/generations.hpp"

#include <algorithm>

#include "catalog/limits.hpp"

namespace wc::catalog {

void Generations::hold(std::string_view name, std::string_view form) {
  auto at = counters_.find(View{name, form});
  if (at == counters_.end()) {
    at = counters_.emplace(Key{std::string(name), std::string(form)}, Counter{floor_, 0}).first;
  } else if (at->second.lines == 0) {
    --idle_;
    idle_bytes_ -= name.size() + form.size();
  }
  ++at->second.lines;
}

void Generations::let_go(std::string_view name, std::string_view form) {
  const auto at = counters_.find(View{name, form});
  if (at == counters_.end() || --at->second.lines != 0) return;
  if (at->second.last <= floor_) {  // it says no more than an unknown name would
    counters_.erase(at);
    return;
  }
  ++idle_;
  idle_bytes_ += name.size() + form.size();
  if (idle_ > kMaxForgotten || idle_bytes_ > kMaxForgottenBytes) forget();
}

void Generations::forget() {
  for (const auto& [key, counter] : counters_) {
    if (counter.lines == 0) floor_ = std::max(floor_, counter.last);
  }
  std::erase_if(counters_, [](const auto& item) { return item.second.lines == 0; });
  idle_ = 0;
  idle_bytes_ = 0;
}

std::uint64_t Generations::next(std::string_view name, std::string_view form) {
  return ++counters_.find(View{name, form})->second.last;
}

bool Generations::passed(std::string_view name, std::string_view form,
                         std::uint64_t generation) const {
  bool known = false;
  for (auto at = counters_.lower_bound(View{name, form}); at != counters_.end(); ++at) {
    if (at->first.name != name || (!form.empty() && at->first.form != form)) break;
    if (at->second.last < generation) return false;
    known = true;
  }
  return known;
}

}  // namespace wc::catalog
