// What Linux has for many datagrams at once and Swift's Glibc module does not show.
#ifndef CONFAB_CSOCKETS_H
#define CONFAB_CSOCKETS_H

#include <stdint.h>
#include <time.h>

/// Nanoseconds of the monotonic clock, and of the wall clock since 1970.
static inline int64_t confab_monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline int64_t confab_wall_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#ifdef __linux__

#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>

// Many datagrams in one call. The memory belongs to the caller of `confab_batch_make` until `confab_batch_free`.
typedef struct confab_batch confab_batch;

/// A batch of `count` datagrams of at most `size` bytes each, or NULL without memory.
confab_batch *confab_batch_make(uint32_t count, uint32_t size);
void confab_batch_free(confab_batch *batch);
/// Reads what has arrived (recvmmsg); the number of datagrams, or -1 with errno.
int confab_batch_receive(confab_batch *batch, int socket);
/// The datagram's memory, its length, and whence it came.
uint8_t *confab_batch_bytes(const confab_batch *batch, uint32_t index);
uint32_t confab_batch_length(const confab_batch *batch, uint32_t index);
const struct sockaddr_storage *confab_batch_source(const confab_batch *batch, uint32_t index);

/// Has the kernel hand over what one sender sent together in one piece (UDP_GRO, Linux 5.0); 0 when it does not. The batch
/// then needs room for 64 KiB each.
int confab_join_segments(int socket);
/// Has the batch take down how long the datagrams in a piece are.
void confab_batch_expect_segments(confab_batch *batch);
/// The length of each datagram in a piece, of which the last may be shorter; 0 where it is one.
uint32_t confab_batch_segment(const confab_batch *batch, uint32_t index);

// Many messages in one call (sendmmsg), each of one or several equal segments for one address (UDP_SEGMENT).
typedef struct confab_sends confab_sends;

confab_sends *confab_sends_make(uint32_t count);
void confab_sends_free(confab_sends *sends);
/// Describes message `index`: `length` bytes, cut into segments of `segment` bytes unless that is 0.
void confab_sends_set(
    confab_sends *sends, uint32_t index, void *bytes, uint32_t length, uint16_t segment,
    const struct sockaddr_storage *address, uint32_t address_length);
/// Sends messages `from` to `to` (exclusive): how many were taken, or -1 with errno for the first.
int confab_sends_send(confab_sends *sends, int socket, uint32_t from, uint32_t to);

/// Whether the kernel cuts datagrams into segments for this socket (Linux 4.18).
int confab_has_segmentation(int socket);

/// Has the calling thread no longer interrupt others when it wakes (SCHED_BATCH, `sched(7)`): it waits for a processor that
/// is free or for its turn, and gets as much as before.
void confab_give_way(void);

#endif
#endif
