// The C++ header alone, in each standard that it serves; its handles are what they say.
#include "weightcache/weightcache.hpp"

#if __cplusplus >= 202002L
#include <ranges>
#include <span>
#endif

namespace {

template <typename Handle>
constexpr bool kMoveOnly =
    std::is_nothrow_move_constructible_v<Handle> && std::is_nothrow_move_assignable_v<Handle> &&
    !std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>;
static_assert(kMoveOnly<weightcache::Connection>);
static_assert(kMoveOnly<weightcache::Attachment>);
static_assert(kMoveOnly<weightcache::Publication>);
static_assert(kMoveOnly<weightcache::Cancellation>);
static_assert(std::is_copy_constructible_v<weightcache::error>);
static_assert(std::is_base_of_v<std::runtime_error, weightcache::error>);

#if __cplusplus >= 202002L
static_assert(std::ranges::input_range<weightcache::Attachment>);
static_assert(std::ranges::sized_range<weightcache::Attachment>);
static_assert(
    std::is_convertible_v<weightcache::View<const std::int64_t>, std::span<const std::int64_t>>);
#endif

}  // namespace
