// The minimum work of an SFU. It receives one publisher's SRTP over UDP, decrypts it, encrypts it for each subscriber with that
// subscriber's key (AES-128-GCM, RFC 7714), and sends it. It has no ICE, RTCP, history, rewriting or checks, so it is the lower
// bound for `confab bench sfu`.
//
//   cc -O2 -o loop loop.c -lcrypto
//   ./loop SUBSCRIBERS SECONDS      prints one JSON object
//
// The publisher and the subscribers run in a second process. Per second, the publisher sends 26 frames of four packets of 1200
// bytes, and 50 audio packets of 100 bytes, as the robots do. Each subscriber has its own socket.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <openssl/evp.h>
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

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
    burst = 64,
    longest = 2048,
    tag_length = 16,
    // The header includes the MID extension, which receivers of several sections need (RFC 8843 §9.2).
    header_length = 20,
    arena_size = 512 * 1024,
    most_messages = 256,
    most_segments = 64,
    frames_a_second = 26,
    packets_a_frame = 4,
    sounds_a_second = 50,
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

static EVP_CIPHER_CTX *cipher(int encrypts, uint8_t seed) {
    uint8_t key[16];
    memset(key, seed, sizeof key);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL || EVP_CipherInit_ex(context, EVP_aes_128_gcm(), NULL, key, NULL, encrypts) != 1) {
        fail("EVP");
    }
    return context;
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

// MARK: The publisher and the subscribers

static void write_header(uint8_t *packet, uint8_t type, uint16_t sequence, uint32_t ssrc) {
    static const uint8_t extension[8] = {0xbe, 0xde, 0, 1, 0x10, '0', 0, 0};
    memset(packet, 0, 12);
    packet[0] = 0x90;
    packet[1] = type;
    packet[2] = sequence >> 8;
    packet[3] = sequence & 0xff;
    packet[8] = ssrc >> 24;
    packet[11] = ssrc & 0xff;
    memcpy(packet + 12, extension, sizeof extension);
}

static void publish(int out, const struct sockaddr_in *server, EVP_CIPHER_CTX *context, uint16_t sequence, int length,
                    uint8_t type) {
    uint8_t packet[longest], iv[12], payload[longest] = {0};
    int written = 0;
    write_header(packet, type, sequence, type);
    nonce(iv, packet);
    EVP_CipherInit_ex(context, NULL, NULL, NULL, iv, 1);
    EVP_CipherUpdate(context, NULL, &written, packet, header_length);
    EVP_CipherUpdate(context, packet + header_length, &written, payload, length);
    EVP_CipherFinal_ex(context, packet + header_length + length, &written);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tag_length, packet + header_length + length);
    sendto(out, packet, (size_t)(header_length + length + tag_length), 0, (const struct sockaddr *)server,
           sizeof *server);
}

static void load(int out, struct sockaddr_in server, const int *sockets, int subscribers) {
    // Do not preempt the process under test. The robots do the same.
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    int poller = epoll_create1(0);
    for (int index = 0; index < subscribers; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[index]};
        epoll_ctl(poller, EPOLL_CTL_ADD, sockets[index], &event);
    }
    EVP_CIPHER_CTX *context = cipher(1, 1);
    static uint8_t memory[1 << 16];
    uint16_t video = 0, audio = 0;
    int64_t frame_due = now(CLOCK_MONOTONIC), sound_due = frame_due;
    for (;;) {
        int64_t time = now(CLOCK_MONOTONIC);
        while (sound_due <= time) {
            publish(out, &server, context, audio++, 100, 111);
            sound_due += 1000000000 / sounds_a_second;
        }
        while (frame_due <= time) {
            for (int part = 0; part < packets_a_frame; part++) publish(out, &server, context, video++, 1200, 96);
            frame_due += 1000000000 / frames_a_second;
        }
        int64_t due = frame_due < sound_due ? frame_due : sound_due;
        struct epoll_event events[256];
        int wait = (int)((due - time + 999999) / 1000000);
        int count = epoll_wait(poller, events, 256, wait);
        for (int index = 0; index < count; index++) {
            while (recv(events[index].data.fd, memory, sizeof memory, MSG_DONTWAIT) > 0) {}
        }
    }
}

// MARK: The loop

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

struct packet {
    uint8_t *bytes;
    // The length of the header and payload, without the tag.
    int length;
};

static void forward(struct arena *arena, int descriptor, const struct packet *packets, int count,
                    EVP_CIPHER_CTX *context, struct sockaddr_in *to) {
    for (int index = 0; index < count; index++) {
        int length = packets[index].length, payload = length - header_length, written = 0;
        if (arena->used + (size_t)length + tag_length > arena_size) send_all(arena, descriptor);
        uint8_t *out = arena->memory + arena->used, iv[12];
        memcpy(out, packets[index].bytes, header_length);
        nonce(iv, out);
        EVP_CipherInit_ex(context, NULL, NULL, NULL, iv, 1);
        EVP_CipherUpdate(context, NULL, &written, out, header_length);
        EVP_CipherUpdate(context, out + header_length, &written, packets[index].bytes + header_length, payload);
        EVP_CipherFinal_ex(context, out + length, &written);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tag_length, out + length);
        commit(arena, descriptor, out, (uint16_t)(length + tag_length), to);
    }
}

int main(int count, char **arguments) {
    int subscribers = count > 1 ? atoi(arguments[1]) : 50, seconds = count > 2 ? atoi(arguments[2]) : 10;
    if (subscribers < 1 || subscribers > 5000 || seconds < 1) {
        fprintf(stderr, "loop SUBSCRIBERS SECONDS\n");
        return 2;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    int descriptor = udp_socket(4 << 20), out = udp_socket(4 << 20), on = 1;
    int *sockets = calloc((size_t)subscribers, sizeof *sockets);
    struct sockaddr_in *addresses = calloc((size_t)subscribers, sizeof *addresses);
    EVP_CIPHER_CTX **ciphers = calloc((size_t)subscribers, sizeof *ciphers);
    for (int index = 0; index < subscribers; index++) {
        sockets[index] = udp_socket(4 << 20);
        setsockopt(sockets[index], IPPROTO_UDP, UDP_GRO, &on, sizeof on);
        addresses[index] = address_of(sockets[index]);
    }
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) load(out, address_of(descriptor), sockets, subscribers);
    for (int index = 0; index < subscribers; index++) {
        close(sockets[index]);
        ciphers[index] = cipher(1, (uint8_t)(index + 2));
    }

    struct arena arena = {.memory = malloc(arena_size + longest)};
    EVP_CIPHER_CTX *publisher = cipher(0, 1);
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
        int good = 0;
        for (int index = 0; index < arrived; index++) {
            int length = (int)messages[index].msg_len - tag_length, written = 0;
            uint8_t *bytes = memory[index], iv[12];
            if (length <= header_length) continue;
            nonce(iv, bytes);
            EVP_CipherInit_ex(publisher, NULL, NULL, NULL, iv, 0);
            EVP_CipherUpdate(publisher, NULL, &written, bytes, header_length);
            EVP_CipherUpdate(publisher, bytes + header_length, &written, bytes + header_length, length - header_length);
            EVP_CIPHER_CTX_ctrl(publisher, EVP_CTRL_AEAD_SET_TAG, tag_length, bytes + length);
            if (EVP_CipherFinal_ex(publisher, bytes + length, &written) != 1) continue;
            packets[good++] = (struct packet){bytes, length};
        }
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
           "\"processorPerPacket\":%.3f}\n",
           subscribers, window, (unsigned long long)forwarded, (unsigned long long)lost, used / (double)forwarded);
    return 0;
}
