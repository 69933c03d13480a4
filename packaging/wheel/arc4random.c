/* For the wheel alone, whose programs have the C++ runtime linked in: where that was built on glibc
 * 2.36 or later it asks for arc4random(), which the older systems that a manylinux wheel must run on
 * do not have. Found here first, it is not asked of the system. */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) continue;
  return value;
}
