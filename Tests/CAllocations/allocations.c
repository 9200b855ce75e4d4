#define _GNU_SOURCE
#include "CAllocations.h"

#include <errno.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

static __thread int counting;
static __thread uint64_t count;

static void note(void) {
    if (counting) count++;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t items, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size) {
    note();
    return __libc_calloc(items, size);
}

void *realloc(void *memory, size_t size) {
    note();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    note();
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory) { __libc_free(memory); }

int confab_counts_allocations(void) { return 1; }

void confab_allocations_begin(void) {
    count = 0;
    counting = 1;
}

int confab_allocations_pause(void) {
    int counted = counting;
    counting = 0;
    return counted;
}

void confab_allocations_resume(int counted) { counting = counted; }

uint64_t confab_allocations_end(void) {
    counting = 0;
    return count;
}

#else

int confab_counts_allocations(void) { return 0; }
void confab_allocations_begin(void) {}
int confab_allocations_pause(void) { return 0; }
void confab_allocations_resume(int counted) { (void)counted; }
uint64_t confab_allocations_end(void) { return 0; }

#endif
