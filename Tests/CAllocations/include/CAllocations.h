// Counts what a thread allocates, by standing in for the C library's allocator. Linux with glibc, and without a sanitizer, which
// stands there itself.
#ifndef CONFAB_CALLOCATIONS_H
#define CONFAB_CALLOCATIONS_H

#include <stdint.h>

/// Whether anything is counted in this build.
int confab_counts_allocations(void);
/// Begins to count what this thread allocates, from none.
void confab_allocations_begin(void);
/// Stops counting for a while; says whether there was counting, for `resume`.
int confab_allocations_pause(void);
void confab_allocations_resume(int counted);
/// How often this thread allocated since the beginning.
uint64_t confab_allocations_end(void);

#endif
