// Moves the clocks of the process that preloads this library, while it runs. The offsets are in a file that the attacker maps
// too, named by CLOCK_SHIFT_FILE.
//
// CLOCK_MONOTONIC is never moved: nobody can set it, and it does not run while the machine sleeps. Setting the clock moves
// CLOCK_REALTIME. Sleeping moves CLOCK_REALTIME and CLOCK_BOOTTIME.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// The same layout as in clock_shift.py. In nanoseconds.
struct shared {
    _Atomic int64_t realtime, boottime;
    // How often the process has read a clock that can be moved.
    _Atomic int64_t readings;
};

enum { TIMERS = 4096, SECOND = 1000000000, WATCH_INTERVAL = 5000000 };

// An absolute timer of the process, to be set again when its clock moves. `at` is the process's time; 0 if it is not set.
struct timer {
    int clock;
    int64_t at;
};

static struct shared *shared;
static struct timer timers[TIMERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_timerfd_create)(int, int);
static int (*real_timerfd_settime)(int, int, const struct itimerspec *, struct itimerspec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);

static int64_t offset(int clock) {
    if (!shared) return 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: return shared->realtime;
    case CLOCK_BOOTTIME: return shared->boottime;
    default: return 0;
    }
}

static int64_t nanoseconds(struct timespec time) { return (int64_t)time.tv_sec * SECOND + time.tv_nsec; }

static struct timespec timespec_of(int64_t time) {
    if (time < 1) time = 1; // 0 would disarm a timer.
    return (struct timespec){.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
}

static void moved_to_real(struct timespec *time, int clock) { *time = timespec_of(nanoseconds(*time) - offset(clock)); }

// Sets the timers again whose clocks have moved, as the kernel does.
static void *watch(void *unused) {
    (void)unused;
    int64_t realtime = shared->realtime, boottime = shared->boottime;
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = WATCH_INTERVAL}, NULL);
        if (realtime == shared->realtime && boottime == shared->boottime) continue;
        realtime = shared->realtime;
        boottime = shared->boottime;
        pthread_mutex_lock(&lock);
        for (int fd = 0; fd < TIMERS; fd++) {
            struct itimerspec current;
            if (timers[fd].at == 0 || timers[fd].clock == CLOCK_MONOTONIC) continue;
            // Fired already, or closed.
            if (timerfd_gettime(fd, &current) != 0 || nanoseconds(current.it_value) == 0) continue;
            current.it_value = timespec_of(timers[fd].at - offset(timers[fd].clock));
            real_timerfd_settime(fd, TFD_TIMER_ABSTIME, &current, NULL);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_timerfd_create = dlsym(RTLD_NEXT, "timerfd_create");
    real_timerfd_settime = dlsym(RTLD_NEXT, "timerfd_settime");
    real_cond_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return;
    shared = memory;
    pthread_t thread;
    pthread_create(&thread, NULL, watch, NULL);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!real_gettime) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real_gettime(clock, time);
    if (status != 0 || !shared) return status;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_BOOTTIME) {
        shared->readings++;
        *time = timespec_of(nanoseconds(*time) + offset(clock));
    }
    return status;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int status = clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int timerfd_create(int clock, int flags) {
    int fd = real_timerfd_create(clock, flags);
    if (fd >= 0 && fd < TIMERS) timers[fd] = (struct timer){.clock = clock};
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *wanted, struct itimerspec *old) {
    if (fd < 0 || fd >= TIMERS || !shared) return real_timerfd_settime(fd, flags, wanted, old);
    pthread_mutex_lock(&lock);
    struct itimerspec set = *wanted;
    int is_absolute = (flags & TFD_TIMER_ABSTIME) && nanoseconds(set.it_value) != 0;
    timers[fd].at = is_absolute ? nanoseconds(set.it_value) : 0;
    if (is_absolute) moved_to_real(&set.it_value, timers[fd].clock);
    int status = real_timerfd_settime(fd, flags, &set, old);
    pthread_mutex_unlock(&lock);
    return status;
}

// Deadlines of these are times of day, or of CLOCK_MONOTONIC if the condition was made so. A time of day is after 2001, and no
// machine has run for so long.
static struct timespec real_deadline(const struct timespec *deadline) {
    struct timespec real = *deadline;
    if (real.tv_sec > 1000000000) moved_to_real(&real, CLOCK_REALTIME);
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
    struct timespec real = real_deadline(deadline);
    return real_cond_timedwait(condition, mutex, &real);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
    struct timespec real = real_deadline(deadline);
    return real_sem_timedwait(semaphore, &real);
}
