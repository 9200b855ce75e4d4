// FFmpeg's libraries, and what Swift does not import from them: macros, and a file in memory. Also limits of the process, whose
// constants differ between the C library's headers. For FFmpeg 5.1 to 7: only `ch_layout`, and no field that changed.

#ifndef CONFAB_CLIBAV_H
#define CONFAB_CLIBAV_H

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
#include <string.h>
#include <sys/resource.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif
#endif

/// No output until there is more input.
static inline int confab_needs_more(int result) { return result == AVERROR(EAGAIN) || result == AVERROR_EOF; }

/// The longest file in memory, between two calls of confab_memory_take. A fragment of the maximum bitrate has 1 MB.
#define CONFAB_MAX_MEMORY (16 << 20)

/// What a muxer has written.
struct confab_memory {
  uint8_t *bytes;
  size_t count;
  size_t capacity;
};

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int confab_memory_write(void *opaque, const uint8_t *bytes, int count) {
#else
static int confab_memory_write(void *opaque, uint8_t *bytes, int count) {
#endif
  struct confab_memory *memory = (struct confab_memory *)opaque;
  size_t needed = memory->count + (size_t)count;
  if (needed > CONFAB_MAX_MEMORY) return AVERROR(ENOMEM);
  if (needed > memory->capacity) {
    uint8_t *larger = (uint8_t *)av_realloc(memory->bytes, needed * 2);
    if (!larger) return AVERROR(ENOMEM);
    memory->bytes = larger;
    memory->capacity = needed * 2;
  }
  memcpy(memory->bytes + memory->count, bytes, (size_t)count);
  memory->count = needed;
  return count;
}

/// Returns a context that writes to memory, or null if there is none left.
static inline AVIOContext *confab_memory_open(struct confab_memory *memory) {
  const int size = 32 << 10;
  unsigned char *buffer = (unsigned char *)av_malloc(size);
  if (!buffer) return NULL;
  AVIOContext *context = avio_alloc_context(buffer, size, 1, memory, NULL, confab_memory_write, NULL);
  if (!context) av_free(buffer);
  return context;
}

/// Limits a resource of this process. Returns whether that was possible.
static inline int confab_limit(int resource, uint64_t value) {
  struct rlimit both = {(rlim_t)value, (rlim_t)value};
  return setrlimit(resource, &both) == 0;
}

/// Limits the address space in bytes.
static inline int confab_limit_memory(uint64_t bytes) { return confab_limit(RLIMIT_AS, bytes); }

/// Denies this process all files, if the kernel has Landlock (Linux 5.13). Returns whether it does.
static inline int confab_deny_files(void) {
  int denied = 0;
#if defined(__linux__) && defined(SYS_landlock_create_ruleset) && __has_include(<linux/landlock.h>)
  // All rights of Landlock's first version, and no folder for which one is granted.
  struct landlock_ruleset_attr rights;
  memset(&rights, 0, sizeof rights);
  rights.handled_access_fs = (1ULL << 13) - 1;
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rights, sizeof rights, 0);
  if (ruleset >= 0) {
    denied = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
  }
#endif
  return denied;
}

/// Lowers the priority, and takes rights from this process: no files, no more descriptors than the four that are open, so also no
/// sockets, and no core dump, which would contain media.
static inline void confab_confine(int nice) {
  setpriority(PRIO_PROCESS, 0, nice);
#ifdef __linux__
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
  confab_deny_files();
  confab_limit(RLIMIT_NOFILE, 4);
  confab_limit(RLIMIT_CORE, 0);
}

#endif
