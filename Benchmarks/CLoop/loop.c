// The minimum work of an SFU. It receives one publisher's SRTP over UDP, decrypts it, encrypts it for each subscriber with that
// subscriber's key (AES-128-GCM, RFC 7714), and sends it. It has no ICE, RTCP, history, rewriting or checks, so it is the lower
// bound for `confab bench sfu`.
//
//   cc -O2 -o loop loop.c -lcrypto -ldl
//   ./loop SUBSCRIBERS SECONDS [uniform|libwebrtc]      prints one JSON object
//   ./loop print MILLISECONDS                           prints the publisher's packets in the mode libwebrtc, one per line
//
// The publisher and the subscribers run in a second process. packets.h describes what the publisher sends, and cipher.h what
// encrypts it. Each subscriber has its own socket.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cipher.h"
#include "packets.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
    burst = 64,
    longest = 2048,
    arena_size = 512 * 1024,
    most_messages = 256,
    most_segments = 64,
    audio_type = 111,
    video_type = 96,
};

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// The nonce without a salt: two zero bytes, the SSRC, the rollover counter and the sequence number (RFC 7714 §8.1).
static void nonce(uint8_t *iv, const uint8_t *header) {
    memset(iv, 0, 12);
    memcpy(iv + 2, header + 8, 4);
    memcpy(iv + 10, header + 2, 2);
}

static int udp_socket(int buffer) {
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("socket");
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
    return descriptor;
}

static struct sockaddr_in address_of(int descriptor) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
    return address;
}

// MARK: Sending

struct arena {
    uint8_t *memory;
    size_t used;
    int count;
    int segments[most_messages];
    struct mmsghdr messages[most_messages];
    struct iovec vectors[most_messages];
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr align;
    } controls[most_messages];
};

static uint64_t lost;

static void send_all(struct arena *arena, int descriptor) {
    for (int index = 0; index < arena->count; index++) {
        if (arena->segments[index] < 2) continue;
        struct msghdr *header = &arena->messages[index].msg_hdr;
        header->msg_control = arena->controls[index].bytes;
        header->msg_controllen = sizeof arena->controls[index].bytes;
    }
    int sent = 0;
    while (sent < arena->count) {
        int result = sendmmsg(descriptor, arena->messages + sent, (unsigned)(arena->count - sent), MSG_DONTWAIT);
        if (result <= 0) {
            lost += (uint64_t)arena->segments[sent];
            result = 1;
        }
        sent += result;
    }
    arena->count = 0;
    arena->used = 0;
}

static void commit(struct arena *arena, int descriptor, uint8_t *packet, uint16_t length, struct sockaddr_in *to) {
    int last = arena->count - 1;
    if (last >= 0 && arena->messages[last].msg_hdr.msg_name == to && arena->segments[last] < most_segments) {
        uint16_t segment;
        memcpy(&segment, CMSG_DATA((struct cmsghdr *)arena->controls[last].bytes), sizeof segment);
        size_t size = arena->vectors[last].iov_len;
        if (length <= segment && size == (size_t)segment * (size_t)arena->segments[last] && size + length <= 65000) {
            arena->vectors[last].iov_len += length;
            arena->segments[last]++;
            arena->used += length;
            return;
        }
    }
    if (arena->count == most_messages) {
        // The packet being committed lies after all packets that are sent now.
        memmove(arena->memory, packet, length);
        send_all(arena, descriptor);
        packet = arena->memory;
    }
    last = arena->count++;
    struct msghdr *header = &arena->messages[last].msg_hdr;
    memset(header, 0, sizeof *header);
    arena->vectors[last] = (struct iovec){packet, length};
    header->msg_iov = &arena->vectors[last];
    header->msg_iovlen = 1;
    header->msg_name = to;
    header->msg_namelen = sizeof *to;
    struct cmsghdr *control = (struct cmsghdr *)arena->controls[last].bytes;
    control->cmsg_level = IPPROTO_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof length);
    memcpy(CMSG_DATA(control), &length, sizeof length);
    arena->segments[last] = 1;
    arena->used += length;
}

// MARK: The publisher and the subscribers

// Writes a header with extensions, and returns its length. The MID is what receivers of several sections need (RFC 8843 §9.2).
// The mode libwebrtc also has those of browsers: the transport-wide sequence number, abs-send-time, and the audio level.
static int write_header(uint8_t *packet, uint8_t type, uint16_t sequence, int is_libwebrtc) {
    static const uint8_t mid[8] = {0xbe, 0xde, 0, 1, 0x10, '0', 0, 0};
    static const uint8_t all[16] = {0xbe, 0xde, 0, 3, 0x10, '0', 0x21, 0, 0, 0x32, 0, 0, 0, 0x40, 30, 0};
    memset(packet, 0, 12);
    packet[0] = 0x90;
    packet[1] = type;
    packet[2] = sequence >> 8;
    packet[3] = sequence & 0xff;
    packet[11] = type;
    memcpy(packet + 12, is_libwebrtc ? all : mid, is_libwebrtc ? sizeof all : sizeof mid);
    return 12 + (int)(is_libwebrtc ? sizeof all : sizeof mid);
}

static void publish(struct arena *arena, int out, struct sockaddr_in *server, struct cipher *cipher, uint16_t sequence,
                    const struct planned *planned, int is_libwebrtc) {
    static const uint8_t payload[longest];
    uint8_t *packet = arena->memory + arena->used, iv[nonce_length];
    int length = write_header(packet, planned->is_audio ? audio_type : video_type, sequence, is_libwebrtc);
    nonce(iv, packet);
    cipher_seal(cipher, iv, packet, length, payload, packet + length, planned->length);
    commit(arena, out, packet, (uint16_t)(length + planned->length + tag_length), server);
}

static void load(int out, struct sockaddr_in server, const int *sockets, int subscribers, int is_libwebrtc) {
    // Do not preempt the process under test. The robots do the same.
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    int poller = epoll_create1(0);
    for (int index = 0; index < subscribers; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[index]};
        epoll_ctl(poller, EPOLL_CTL_ADD, sockets[index], &event);
    }
    struct cipher *cipher = cipher_make(1, 1);
    struct arena arena = {.memory = malloc(arena_size + longest)};
    static uint8_t memory[1 << 16];
    uint16_t video = 0, audio = 0;
    struct plan plan = plan_from(now(CLOCK_MONOTONIC), is_libwebrtc, 1);
    for (;;) {
        int64_t time = now(CLOCK_MONOTONIC);
        struct planned planned;
        while (next_packet(&plan, time, &planned)) {
            if (arena.used + longest > arena_size) send_all(&arena, out);
            publish(&arena, out, &server, cipher, planned.is_audio ? audio++ : video++, &planned, is_libwebrtc);
        }
        // Send what is due at once, as the robots do, so that the loop gets the packets of a burst together.
        send_all(&arena, out);
        struct epoll_event events[256];
        int wait = (int)((next_due(&plan) - time + 999999) / 1000000);
        int count = epoll_wait(poller, events, 256, wait);
        for (int index = 0; index < count; index++) {
            while (recv(events[index].data.fd, memory, sizeof memory, MSG_DONTWAIT) > 0) {}
        }
    }
}

// MARK: The loop

struct packet {
    uint8_t *bytes;
    int header_length;
    // The length of the header and payload, without the tag.
    int length;
};

// Moves the audio behind the video of the same wake-up. Audio is shorter, so it can be the last segment of a message, but not
// the first. Packets of the same stream keep their order.
static void put_audio_last(struct packet *packets, int count) {
    struct packet audio[burst];
    int kept = 0, moved = 0;
    for (int index = 0; index < count; index++) {
        if ((packets[index].bytes[1] & 0x7f) == audio_type) {
            audio[moved++] = packets[index];
        } else {
            packets[kept++] = packets[index];
        }
    }
    memcpy(packets + kept, audio, (size_t)moved * sizeof *audio);
}

static void forward(struct arena *arena, int descriptor, const struct packet *packets, int count,
                    struct cipher *cipher, struct sockaddr_in *to) {
    for (int index = 0; index < count; index++) {
        int length = packets[index].length, header_length = packets[index].header_length;
        if (arena->used + (size_t)length + tag_length > arena_size) send_all(arena, descriptor);
        uint8_t *out = arena->memory + arena->used, iv[nonce_length];
        memcpy(out, packets[index].bytes, (size_t)header_length);
        nonce(iv, out);
        cipher_seal(cipher, iv, out, header_length, packets[index].bytes + header_length, out + header_length,
                    length - header_length);
        commit(arena, descriptor, out, (uint16_t)(length + tag_length), to);
    }
}

// Decrypts what has arrived. Returns the number of packets that are authentic.
static int open_all(struct cipher *publisher, const struct mmsghdr *messages, int arrived, struct packet *packets) {
    int good = 0;
    for (int index = 0; index < arrived; index++) {
        uint8_t *bytes = messages[index].msg_hdr.msg_iov->iov_base, iv[nonce_length];
        int length = (int)messages[index].msg_len - tag_length;
        if (length < 16) continue;
        int header_length = 16 + 4 * (bytes[14] << 8 | bytes[15]);
        if (length <= header_length) continue;
        nonce(iv, bytes);
        if (!cipher_open(publisher, iv, bytes, header_length, bytes + header_length, length - header_length)) continue;
        packets[good++] = (struct packet){bytes, header_length, length};
    }
    return good;
}

static int print_packets(int milliseconds) {
    struct plan plan = plan_from(0, 1, 1);
    struct planned planned;
    while (next_packet(&plan, (int64_t)milliseconds * 1000000, &planned)) {
        printf("%s %lld %d\n", planned.is_audio ? "audio" : "video", (long long)planned.at, planned.length);
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count == 3 && strcmp(arguments[1], "print") == 0) return print_packets(atoi(arguments[2]));
    int subscribers = count > 1 ? atoi(arguments[1]) : 50, seconds = count > 2 ? atoi(arguments[2]) : 10;
    const char *mode = count > 3 ? arguments[3] : "uniform";
    int is_libwebrtc = strcmp(mode, "libwebrtc") == 0;
    if (subscribers < 1 || subscribers > 5000 || seconds < 1 || (!is_libwebrtc && strcmp(mode, "uniform") != 0)) {
        fprintf(stderr, "loop SUBSCRIBERS SECONDS [uniform|libwebrtc]\n");
        return 2;
    }
    const char *cipher_name = cipher_choose();
    if (!cipher_works()) {
        fprintf(stderr, "%s and OpenSSL encrypt differently\n", cipher_name);
        return 1;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    int descriptor = udp_socket(4 << 20), out = udp_socket(4 << 20), on = 1;
    int *sockets = calloc((size_t)subscribers, sizeof *sockets);
    struct sockaddr_in *addresses = calloc((size_t)subscribers, sizeof *addresses);
    struct cipher **ciphers = calloc((size_t)subscribers, sizeof *ciphers);
    for (int index = 0; index < subscribers; index++) {
        sockets[index] = udp_socket(4 << 20);
        setsockopt(sockets[index], IPPROTO_UDP, UDP_GRO, &on, sizeof on);
        addresses[index] = address_of(sockets[index]);
    }
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) load(out, address_of(descriptor), sockets, subscribers, is_libwebrtc);
    for (int index = 0; index < subscribers; index++) {
        close(sockets[index]);
        ciphers[index] = cipher_make(1, (uint8_t)(index + 2));
    }

    struct arena arena = {.memory = malloc(arena_size + longest)};
    struct cipher *publisher = cipher_make(0, 1);
    static uint8_t memory[burst][longest];
    static struct mmsghdr messages[burst];
    static struct iovec vectors[burst];
    for (int index = 0; index < burst; index++) {
        vectors[index] = (struct iovec){memory[index], longest};
        messages[index].msg_hdr.msg_iov = &vectors[index];
        messages[index].msg_hdr.msg_iovlen = 1;
    }
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
    uint64_t forwarded = 0;
    int64_t begin = now(CLOCK_MONOTONIC) + 1000000000, processor = -1;
    for (;;) {
        epoll_wait(poller, &event, 1, 1000);
        int64_t time = now(CLOCK_MONOTONIC);
        if (processor < 0 && time >= begin) {
            begin = time;
            processor = now(CLOCK_PROCESS_CPUTIME_ID);
            forwarded = lost = 0;
        }
        if (processor >= 0 && time - begin >= (int64_t)seconds * 1000000000) break;
        int arrived = recvmmsg(descriptor, messages, burst, MSG_DONTWAIT, NULL);
        struct packet packets[burst];
        int good = open_all(publisher, messages, arrived, packets);
        put_audio_last(packets, good);
        for (int index = 0; index < subscribers; index++) {
            forward(&arena, descriptor, packets, good, ciphers[index], &addresses[index]);
        }
        send_all(&arena, descriptor);
        forwarded += (uint64_t)good * (uint64_t)subscribers;
    }
    double used = (double)(now(CLOCK_PROCESS_CPUTIME_ID) - processor) / 1000;
    double window = (double)(now(CLOCK_MONOTONIC) - begin) / 1e9;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("{\"target\":\"loop.c\",\"subscribers\":%d,\"seconds\":%.3f,\"received\":%llu,\"lost\":%llu,"
           "\"processorPerPacket\":%.3f,\"packets\":\"%s\",\"cipher\":\"%s\"}\n",
           subscribers, window, (unsigned long long)forwarded, (unsigned long long)lost, used / (double)forwarded, mode,
           cipher_name);
    return 0;
}
