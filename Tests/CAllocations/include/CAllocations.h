// Counts the allocations of a thread by replacing the C library's allocator. Works only on Linux with glibc. Does not
// work with a sanitizer, because a sanitizer replaces the allocator too.
#ifndef CONFAB_CALLOCATIONS_H
#define CONFAB_CALLOCATIONS_H

#include <stdint.h>

/// Returns whether this build counts allocations.
int confab_counts_allocations(void);
/// Resets the count of this thread and starts counting.
void confab_allocations_begin(void);
/// Pauses counting. Returns whether it was active, to be passed to `resume`.
int confab_allocations_pause(void);
void confab_allocations_resume(int counted);
/// Stops counting and returns the number of this thread's allocations since `begin`, without those during pauses.
uint64_t confab_allocations_end(void);
/// Returns the bytes that this thread has allocated since `begin` minus those that it has freed, without pauses, but with the
/// allocator's headers. Negative if it freed memory from before `begin`.
int64_t confab_allocated_bytes(void);

#endif
