# One fuzz target, built in one of two ways:
#
#   wc_fuzzer(checkpoint SOURCES checkpoint_fuzz.cpp LIBRARIES wc_checkpoint)
#
# with WEIGHTCACHE_FUZZERS (clang): bin/checkpoint_fuzz, a libFuzzer program;
# else, with the tests: the test `fuzz.checkpoint`, which feeds each file of corpus/checkpoint beside
# the caller to the same LLVMFuzzerTestOneInput, so that what was once found stays found.
if(WEIGHTCACHE_FUZZERS)
  # The libraries under test need the coverage counters too; not libFuzzer's main.
  target_compile_options(wc_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(wc_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(WEIGHTCACHE_FUZZERS)
    add_executable(${name}_fuzz ${arg_SOURCES})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  elseif(WEIGHTCACHE_TESTS)
    add_executable(${name}_fuzz ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cpp)
    set_target_properties(${name}_fuzz PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME fuzz.${name}
             COMMAND ${name}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${arg_TIMEOUT})
  else()
    return()
  endif()
  target_link_libraries(${name}_fuzz PRIVATE wc_options ${arg_LIBRARIES})
endfunction()
