// Clocks, limits and files, and Linux functions for batches of datagrams that Swift's Glibc module does not export.
//
// Swift code should not name the members of C structures such as `stat`: the module that the compiler takes them from depends on the files
// that it compiles together. So the functions for limits and files are in system.c, and this header does not include those of the system.
#ifndef CONFAB_CSOCKETS_H
#define CONFAB_CSOCKETS_H

#include <stdint.h>
#include <time.h>

/// These functions return nanoseconds, of the monotonic clock or of the wall clock since 1970.
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

/// Returns how many descriptors this process may open; if `highest` is not 0, the number to which it may raise this limit. Returns the
/// largest number if there is no limit, and -1 if it is unknown.
int64_t confab_descriptor_limit(int highest);

/// Returns the bytes that a user without privileges may still write to the disk of a folder, or -1 with errno.
int64_t confab_free_bytes(const char *folder);

/// Returns 1 if there is a folder at this path, which is not a link.
int confab_is_folder(const char *path);

/// Returns the size of a regular file in bytes, or -1 if the descriptor is something else.
int64_t confab_file_size(int descriptor);

#ifdef __linux__

#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>

// A batch of datagrams that are received in one call. The caller of `confab_batch_make` owns the batch until
// `confab_batch_free`.
typedef struct confab_batch confab_batch;

/// Creates a batch of `count` datagrams of at most `size` bytes each. Returns NULL if memory is exhausted.
confab_batch *confab_batch_make(uint32_t count, uint32_t size);
void confab_batch_free(confab_batch *batch);
/// Receives datagrams (recvmmsg). Returns the number of datagrams, or -1 with errno.
int confab_batch_receive(confab_batch *batch, int socket);
/// These functions return a datagram's memory, length and source address.
uint8_t *confab_batch_bytes(const confab_batch *batch, uint32_t index);
uint32_t confab_batch_length(const confab_batch *batch, uint32_t index);
const struct sockaddr_storage *confab_batch_source(const confab_batch *batch, uint32_t index);

/// Makes the kernel record when each datagram arrived (SO_TIMESTAMPNS).
void confab_stamp_arrivals(int socket);
/// Returns when a datagram arrived, by the monotonic clock: the time that the kernel recorded, or the time of the
/// receiving call if there is none.
int64_t confab_batch_arrival(const confab_batch *batch, uint32_t index);

/// Allows the kernel to join datagrams that one sender sent together (UDP_GRO, Linux 5.0). Returns 0 if unsupported. If joined,
/// the batch needs 64 KiB for each datagram.
int confab_join_segments(int socket);
/// Returns the length of the datagrams that were joined, of which the last may be shorter. Returns 0 for a single datagram.
uint32_t confab_batch_segment(const confab_batch *batch, uint32_t index);

// Messages that are sent in one call (sendmmsg). Each contains one or more segments of equal length for one address
// (UDP_SEGMENT).
typedef struct confab_sends confab_sends;

confab_sends *confab_sends_make(uint32_t count);
void confab_sends_free(confab_sends *sends);
/// Returns where to write the address of message `index`.
struct sockaddr_storage *confab_sends_address(confab_sends *sends, uint32_t index);
/// Sets message `index` to `length` bytes, split into segments of `segment` bytes unless `segment` is 0. Its address has
/// `address_length` bytes.
void confab_sends_set(
    confab_sends *sends, uint32_t index, void *bytes, uint32_t length, uint16_t segment, uint32_t address_length);
/// Sends the messages from `from` up to but excluding `to`. Returns how many were sent, or -1 with the errno of the first
/// message.
int confab_sends_send(confab_sends *sends, int socket, uint32_t from, uint32_t to);
/// Returns how many segments a message contains.
uint32_t confab_sends_segments(const confab_sends *sends, uint32_t index);
/// Sends one segment of a message as a datagram of its own. Returns -1 with errno if that fails.
int confab_sends_send_segment(const confab_sends *sends, int socket, uint32_t index, uint32_t segment);

/// Makes the kernel ignore the path MTU that routers (or forged messages) report. Otherwise it refuses longer
/// messages for minutes. Routers may fragment the datagrams instead.
void confab_ignore_path_mtu(int socket, int is_ipv6);

/// Returns whether the kernel supports segmentation for this socket (Linux 4.18).
int confab_has_segmentation(int socket);

/// Stops the calling thread from preempting other threads when it wakes (SCHED_BATCH, `sched(7)`). The thread instead waits for
/// a free processor or its turn, and gets as much CPU time as before.
void confab_give_way(void);

/// Names the calling thread in tools such as top and perf. The name has at most 15 bytes.
void confab_name_thread(const char *name);

/// Returns 1 if a program such as an NTP client keeps the system's clock right, 0 if none does, and -1 if a sandbox forbids the
/// question (`adjtimex(2)`).
int confab_clock_is_synchronized(void);

#endif
#endif
