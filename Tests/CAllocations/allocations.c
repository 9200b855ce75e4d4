#define _GNU_SOURCE
#include "CAllocations.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

static __thread int counting;
static __thread uint64_t count;

static __thread int64_t bytes;

/// The memory that an allocation takes: the usable bytes and the allocator's header.
static int64_t taken(void *memory) {
    return memory == NULL ? 0 : (int64_t)(malloc_usable_size(memory) + sizeof(size_t));
}

static void *note(void *memory) {
    if (counting) {
        count++;
        bytes += taken(memory);
    }
    return memory;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t items, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size) { return note(__libc_malloc(size)); }

void *calloc(size_t items, size_t size) { return note(__libc_calloc(items, size)); }

void *realloc(void *memory, size_t size) {
    int64_t before = taken(memory);
    void *moved = __libc_realloc(memory, size);
    if (counting && (moved != NULL || size == 0)) bytes -= before;
    return note(moved);
}

void *aligned_alloc(size_t alignment, size_t size) { return note(__libc_memalign(alignment, size)); }

void *memalign(size_t alignment, size_t size) { return note(__libc_memalign(alignment, size)); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = note(__libc_memalign(alignment, size));
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory) {
    if (counting) bytes -= taken(memory);
    __libc_free(memory);
}

int confab_counts_allocations(void) { return 1; }

void confab_allocations_begin(void) {
    count = 0;
    bytes = 0;
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

int64_t confab_allocated_bytes(void) { return bytes; }

#else

int confab_counts_allocations(void) { return 0; }
void confab_allocations_begin(void) {}
int confab_allocations_pause(void) { return 0; }
void confab_allocations_resume(int counted) { (void)counted; }
uint64_t confab_allocations_end(void) { return 0; }
int64_t confab_allocated_bytes(void) { return 0; }

#endif
