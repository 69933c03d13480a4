# One static library for each folder of src/, so that direction is a link error:
#
#   wc_component(catalog DEPENDS manifest)
#
# takes every .cpp of the folder but *_test.cpp into the library wc_catalog (alias wc::catalog) and
# every *_test.cpp into the program catalog_test, whose cases become tests with the label `unit`.
function(wc_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LIBRARIES;TEST_DEPENDS")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  add_library(wc_${name} STATIC ${sources})
  add_library(wc::${name} ALIAS wc_${name})
  target_link_libraries(wc_${name} PUBLIC wc_options ${arg_LIBRARIES})
  foreach(dep ${arg_DEPENDS})
    target_link_libraries(wc_${name} PUBLIC wc_${dep})
  endforeach()
  if(WEIGHTCACHE_TESTS AND tests)
    wc_test(${name}_test LABEL unit SOURCES ${tests} LIBRARIES wc_${name} ${arg_TEST_DEPENDS})
  endif()
endfunction()

# wc_test(NAME LABEL label SOURCES ... LIBRARIES ... [TIMEOUT s] [SERIAL]): one GoogleTest program.
function(wc_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "LABEL;TIMEOUT" "SOURCES;LIBRARIES;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE wc_options ${arg_LIBRARIES} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(arg_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
