#define _GNU_SOURCE
#include "CSockets.h"

#ifdef __linux__

#include <errno.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#ifndef IP_PMTUDISC_OMIT
#define IP_PMTUDISC_OMIT 5
#endif
#ifndef IPV6_PMTUDISC_OMIT
#define IPV6_PMTUDISC_OMIT 5
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

// The maximum age in nanoseconds at which the arrival time of a datagram is believed. A loop that reads a datagram
// later than that has other problems.
#define LONGEST_AGE 1000000000

struct confab_batch {
    uint32_t count, size;
    uint8_t *memory;
    struct mmsghdr *messages;
    struct iovec *vectors;
    struct sockaddr_storage *sources;
    // The control messages of each received datagram: its time of arrival, and the length of its segments.
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } *controls;
    // The monotonic time of the latest call, and how far the wall clock was ahead of it.
    int64_t now, ahead;
};

confab_batch *confab_batch_make(uint32_t count, uint32_t size) {
    confab_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) return NULL;
    batch->count = count;
    batch->size = size;
    batch->memory = malloc((size_t)count * size);
    batch->messages = calloc(count, sizeof *batch->messages);
    batch->vectors = calloc(count, sizeof *batch->vectors);
    batch->sources = calloc(count, sizeof *batch->sources);
    batch->controls = calloc(count, sizeof *batch->controls);
    if (batch->memory == NULL || batch->messages == NULL || batch->vectors == NULL || batch->sources == NULL ||
        batch->controls == NULL) {
        confab_batch_free(batch);
        return NULL;
    }
    for (uint32_t index = 0; index < count; index++) {
        batch->vectors[index].iov_base = batch->memory + (size_t)index * size;
        batch->vectors[index].iov_len = size;
        batch->messages[index].msg_hdr.msg_iov = &batch->vectors[index];
        batch->messages[index].msg_hdr.msg_iovlen = 1;
        batch->messages[index].msg_hdr.msg_name = &batch->sources[index];
    }
    return batch;
}

void confab_batch_free(confab_batch *batch) {
    if (batch == NULL) return;
    free(batch->memory);
    free(batch->messages);
    free(batch->vectors);
    free(batch->sources);
    free(batch->controls);
    free(batch);
}

int confab_batch_receive(confab_batch *batch, int socket) {
    // Reset the buffer lengths, because the kernel overwrites them with the lengths it used.
    for (uint32_t index = 0; index < batch->count; index++) {
        batch->messages[index].msg_hdr.msg_namelen = sizeof(struct sockaddr_storage);
        batch->messages[index].msg_hdr.msg_control = batch->controls[index].bytes;
        batch->messages[index].msg_hdr.msg_controllen = sizeof batch->controls[index].bytes;
    }
    int received = recvmmsg(socket, batch->messages, batch->count, MSG_DONTWAIT, NULL);
    if (received > 0) {
        batch->now = confab_monotonic();
        batch->ahead = confab_wall_clock() - batch->now;
    }
    return received;
}

// Returns the data of the control message of this kind, or NULL.
static const void *find_control(const confab_batch *batch, uint32_t index, int level, int type, size_t size) {
    struct msghdr *header = &batch->messages[index].msg_hdr;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control != NULL; control = CMSG_NXTHDR(header, control)) {
        if (control->cmsg_level == level && control->cmsg_type == type && control->cmsg_len >= CMSG_LEN(size))
            return CMSG_DATA(control);
    }
    return NULL;
}

void confab_stamp_arrivals(int socket) {
    int on = 1;
    (void)setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

int64_t confab_batch_arrival(const confab_batch *batch, uint32_t index) {
    const void *data = find_control(batch, index, SOL_SOCKET, SO_TIMESTAMPNS, sizeof(struct timespec));
    if (data == NULL) return batch->now;
    struct timespec stamp;
    memcpy(&stamp, data, sizeof stamp);
    int64_t age = batch->now - ((int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec - batch->ahead);
    // If the wall clock was set in between, the stamp is useless. Return the time of the call instead.
    return age < 0 || age > LONGEST_AGE ? batch->now : batch->now - age;
}

uint8_t *confab_batch_bytes(const confab_batch *batch, uint32_t index) {
    return batch->memory + (size_t)index * batch->size;
}

uint32_t confab_batch_length(const confab_batch *batch, uint32_t index) {
    // Ignore truncated datagrams, because no media datagram is that long.
    if (batch->messages[index].msg_hdr.msg_flags & MSG_TRUNC) return 0;
    return batch->messages[index].msg_len;
}

const struct sockaddr_storage *confab_batch_source(const confab_batch *batch, uint32_t index) {
    return &batch->sources[index];
}

int confab_join_segments(int socket) {
    int on = 1;
    return setsockopt(socket, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

uint32_t confab_batch_segment(const confab_batch *batch, uint32_t index) {
    const void *data = find_control(batch, index, IPPROTO_UDP, UDP_GRO, sizeof(int));
    if (data == NULL) return 0;
    int segment = 0;
    memcpy(&segment, data, sizeof segment);
    return segment > 0 ? (uint32_t)segment : 0;
}

struct confab_sends {
    uint32_t count;
    struct mmsghdr *messages;
    struct iovec *vectors;
    struct sockaddr_storage *addresses;
    // The segment lengths; 0 for a message that is one datagram.
    uint16_t *segments;
    // One control message for each message to send, aligned as the kernel requires.
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr align;
    } *controls;
};

confab_sends *confab_sends_make(uint32_t count) {
    confab_sends *sends = calloc(1, sizeof *sends);
    if (sends == NULL) return NULL;
    sends->count = count;
    sends->messages = calloc(count, sizeof *sends->messages);
    sends->vectors = calloc(count, sizeof *sends->vectors);
    sends->addresses = calloc(count, sizeof *sends->addresses);
    sends->segments = calloc(count, sizeof *sends->segments);
    sends->controls = calloc(count, sizeof *sends->controls);
    if (sends->messages == NULL || sends->vectors == NULL || sends->addresses == NULL || sends->segments == NULL ||
        sends->controls == NULL) {
        confab_sends_free(sends);
        return NULL;
    }
    return sends;
}

void confab_sends_free(confab_sends *sends) {
    if (sends == NULL) return;
    free(sends->messages);
    free(sends->vectors);
    free(sends->addresses);
    free(sends->segments);
    free(sends->controls);
    free(sends);
}

struct sockaddr_storage *confab_sends_address(confab_sends *sends, uint32_t index) {
    return &sends->addresses[index];
}

void confab_sends_set(
    confab_sends *sends, uint32_t index, void *bytes, uint32_t length, uint16_t segment, uint32_t address_length) {
    struct msghdr *header = &sends->messages[index].msg_hdr;
    sends->vectors[index].iov_base = bytes;
    sends->vectors[index].iov_len = length;
    header->msg_name = &sends->addresses[index];
    header->msg_namelen = address_length;
    header->msg_iov = &sends->vectors[index];
    header->msg_iovlen = 1;
    header->msg_control = NULL;
    header->msg_controllen = 0;
    sends->segments[index] = segment;
    if (segment == 0) return;
    header->msg_control = sends->controls[index].bytes;
    header->msg_controllen = sizeof sends->controls[index].bytes;
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    control->cmsg_level = IPPROTO_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(control), &segment, sizeof segment);
}

int confab_sends_send(confab_sends *sends, int socket, uint32_t from, uint32_t to) {
    return sendmmsg(socket, sends->messages + from, to - from, MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint32_t confab_sends_segments(const confab_sends *sends, uint32_t index) {
    uint32_t segment = sends->segments[index];
    return segment == 0 ? 1 : (uint32_t)((sends->vectors[index].iov_len + segment - 1) / segment);
}

int confab_sends_send_segment(const confab_sends *sends, int socket, uint32_t index, uint32_t segment) {
    const struct iovec *all = &sends->vectors[index];
    size_t length = sends->segments[index] == 0 ? all->iov_len : sends->segments[index];
    size_t offset = segment * length;
    if (offset >= all->iov_len) return 0;
    if (length > all->iov_len - offset) length = all->iov_len - offset;
    const struct msghdr *header = &sends->messages[index].msg_hdr;
    const char *bytes = (const char *)all->iov_base + offset;
    return sendto(
        socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, header->msg_name, header->msg_namelen) < 0 ? -1 : 0;
}

void confab_ignore_path_mtu(int socket, int is_ipv6) {
    int mode = is_ipv6 ? IPV6_PMTUDISC_OMIT : IP_PMTUDISC_OMIT;
    (void)setsockopt(
        socket, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &mode, sizeof mode);
}

int confab_has_segmentation(int socket) {
    int size = 0;
    socklen_t length = sizeof size;
    return getsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0;
}

void confab_name_thread(const char *name) {
    (void)pthread_setname_np(pthread_self(), name);
}

int confab_clock_is_synchronized(void) {
    // Changes nothing, so it needs no privilege.
    struct timex question = {0};
    const int state = adjtimex(&question);
    return state < 0 ? -1 : state != TIME_ERROR;
}

void confab_give_way(void) {
    const struct sched_param none = {0};
    // SCHED_BATCH needs no privilege. If a sandbox forbids the call, the policy stays unchanged.
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

#endif
