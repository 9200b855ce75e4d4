// The publisher's packets: their sizes, and when they are sent. The modes are those of `confab bench sfu --packets`.
//
// uniform: 26 frames of four packets of 1200 bytes, and 50 audio packets of 100 bytes, per second.
// libwebrtc: as libwebrtc packetizes and paces them. The sizes and times are those that
// Sources/Robots/Load/LibwebrtcPackets.swift, which explains them, computes for the same seed and without requests for
// keyframes. A test there compares them with the output of `loop print`.
#include <stdint.h>

enum {
    frames_a_second = 26,
    uniform_packets = 4,
    uniform_video = 1200,
    uniform_audio = 100,
    mean_frame = 4096,
    descriptor = 6,
    // A packet has at most 1200 bytes with the header of RTP, which has 28, and with two bytes for RTX.
    largest_part = 1200 - 28 - 2 - descriptor,
    // The largest keyframe has 17 packets, and the two frames that may follow while it waits have 12.
    most_waiting = 64,
};

static const int64_t second = 1000000000;
// The pacer sends 2.5 times the bitrate of the video.
static const int64_t paced_bytes_a_second = (int64_t)mean_frame * frames_a_second * 5 / 2;
static const int64_t paced_burst = 40 * 1000000;

// One packet of the publisher.
struct planned {
    int64_t at;
    // The size of the payload in bytes.
    int length;
    int is_audio;
};

// The state of the generator.
struct plan {
    int is_libwebrtc;
    uint64_t random;
    int frames;
    int64_t audio_due, frame_due;
    // The sizes of the packets that wait in the pacer, and when the first of them may be sent.
    int waiting[most_waiting];
    unsigned first_waiting, end_waiting;
    int64_t video_due;
    // When the pacer's bucket is empty.
    int64_t empty_at;
};

static struct plan plan_from(int64_t start, int is_libwebrtc, uint64_t seed) {
    struct plan plan = {.is_libwebrtc = is_libwebrtc, .random = seed, .audio_due = start, .frame_due = start};
    plan.empty_at = INT64_MIN / 2;
    return plan;
}

// SplitMix64 (Steele, Lea and Flood 2014).
static int random_number(struct plan *plan, int least, int most) {
    uint64_t mixed = plan->random += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return least + (int)((mixed ^ mixed >> 31) % (uint64_t)(most - least + 1));
}

static int is_waiting(const struct plan *plan) { return plan->first_waiting != plan->end_waiting; }

static int64_t next_due(const struct plan *plan) {
    int64_t due = plan->audio_due < plan->frame_due ? plan->audio_due : plan->frame_due;
    return is_waiting(plan) && plan->video_due < due ? plan->video_due : due;
}

// When the next waiting packet may be sent: now if the bucket contains less than a burst, otherwise when the bucket is empty.
static int64_t send_time(const struct plan *plan, int64_t now) {
    return !plan->is_libwebrtc || plan->empty_at - now < paced_burst ? now : plan->empty_at;
}

static void add_waiting(struct plan *plan, int length) {
    plan->waiting[plan->end_waiting++ % most_waiting] = length;
}

static void add_frame(struct plan *plan) {
    int64_t now = plan->frame_due;
    int was_waiting = is_waiting(plan);
    plan->frame_due += second / frames_a_second;
    if (plan->is_libwebrtc) {
        // The first frame is a keyframe, and then two temporal layers alternate.
        int tenths = plan->frames == 0 ? 40 : plan->frames % 2 == 0 ? 12 : 8;
        int bytes = mean_frame * tenths / 10 * random_number(plan, 80, 120) / 100;
        int count = (bytes + largest_part - 1) / largest_part;
        // If the parts cannot be equal, the last ones are one byte longer.
        for (int part = 0; part < count; part++) {
            add_waiting(plan, descriptor + bytes / count + (part >= count - bytes % count));
        }
    } else {
        for (int part = 0; part < uniform_packets; part++) add_waiting(plan, uniform_video);
    }
    plan->frames++;
    if (!was_waiting) plan->video_due = send_time(plan, now);
}

// Takes the next packet if it is due. Returns 0 if none is.
static int next_packet(struct plan *plan, int64_t now, struct planned *packet) {
    while (next_due(plan) <= now) {
        int64_t due = next_due(plan);
        if (due == plan->audio_due) {
            plan->audio_due += second / 50;
            // After a packet of audio, libwebrtc also sends the video that the burst allows by then.
            if (is_waiting(plan) && send_time(plan, due) < plan->video_due) plan->video_due = send_time(plan, due);
            int length = plan->is_libwebrtc ? random_number(plan, 60, 120) : uniform_audio;
            *packet = (struct planned){due, length, 1};
            return 1;
        }
        if (is_waiting(plan) && due == plan->video_due) {
            *packet = (struct planned){due, plan->waiting[plan->first_waiting++ % most_waiting], 0};
            if (plan->empty_at < due) plan->empty_at = due;
            plan->empty_at += packet->length * second / paced_bytes_a_second;
            if (is_waiting(plan)) plan->video_due = send_time(plan, due);
            return 1;
        }
        add_frame(plan);
    }
    return 0;
}
