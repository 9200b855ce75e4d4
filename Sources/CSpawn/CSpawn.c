#define _GNU_SOURCE
#include "CSpawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

int confab_spawn_pipe(int ends[2]) {
#ifdef __linux__
  return pipe2(ends, O_CLOEXEC);
#else
  if (pipe(ends) != 0) return -1;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return 0;
#endif
}

static void limit(int resource, uint64_t value) {
  struct rlimit both = {(rlim_t)value, (rlim_t)value};
  setrlimit(resource, &both);
}

// Closes all descriptors from `first` on, except one that is closed by exec.
static void close_others(int first, int kept) {
#ifdef __linux__
  if (kept > first) close_range((unsigned)first, (unsigned)kept - 1, 0);
  if (close_range((unsigned)kept + 1, ~0U, 0) == 0) return;
#endif
  // Kernels before 5.9, and macOS.
  for (int descriptor = first; descriptor < 65536; descriptor++) {
    if (descriptor != kept) close(descriptor);
  }
}

// The child between fork and exec. Other threads do not exist here, so only system calls are allowed.
static void run_child(
  const char *path, char *const arguments[], char *const environment[], const char *directory, int input, int output,
  int errors, int channel, const struct confab_spawn_limits *limits, int report, pid_t parent) {
  struct sigaction standard = {.sa_handler = SIG_DFL};
  // Ignored signals stay ignored in programs. There are 64, and SIGKILL and SIGSTOP fail without harm.
  for (int number = 1; number < 65; number++) sigaction(number, &standard, NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setpgid(0, 0);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before.
  if (getppid() != parent) _exit(127);
#endif
  if (input < 0) input = open("/dev/null", O_RDONLY);
  // The standard descriptors may be the ones to duplicate, if this process has none. Move them out of the way.
  input = fcntl(input, F_DUPFD_CLOEXEC, 10);
  output = fcntl(output, F_DUPFD_CLOEXEC, 10);
  errors = fcntl(errors, F_DUPFD_CLOEXEC, 10);
  int kept = fcntl(report, F_DUPFD_CLOEXEC, 10);
  int hasChannel = channel >= 0;
  // Only now is 3 free: it may have been any of these descriptors.
  if (hasChannel) channel = fcntl(channel, F_DUPFD_CLOEXEC, 10);
  if (
    input >= 0 && dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(errors, 2) == 2 && kept >= 0 &&
    (!hasChannel || dup2(channel, 3) == 3)) {
    close_others(hasChannel ? 4 : 3, kept);
    if (chdir(directory) == 0) {
      setpriority(PRIO_PROCESS, 0, limits->nice);
      limit(RLIMIT_CPU, limits->processor);
      limit(RLIMIT_AS, limits->memory);
      limit(RLIMIT_CORE, 0);
      execve(path, arguments, environment);
    }
  }
  int reason = errno;
  ssize_t ignored = write(kept, &reason, sizeof reason);
  (void)ignored;
  _exit(127);
}

pid_t confab_spawn(
  const char *path, char *const arguments[], char *const environment[], const char *directory, int input, int output,
  int errors, int channel, const struct confab_spawn_limits *limits) {
  int report[2];
  if (confab_spawn_pipe(report) != 0) return -1;
  // No handler of this process may run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    run_child(
      path, arguments, environment, directory, input, output, errors, channel, limits, report[1], parent);
  }
  int failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(report[1]);
  if (child > 0) {
    int reason = 0;
    ssize_t count;
    do { count = read(report[0], &reason, sizeof reason); } while (count < 0 && errno == EINTR);
    // Nothing is written if exec succeeds, because exec closes the pipe.
    if (count == (ssize_t)sizeof reason) {
      while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
      child = -1;
      failure = reason;
    }
  }
  close(report[0]);
  errno = failure;
  return child;
}

int confab_spawn_close_others(posix_spawn_file_actions_t *actions) {
#ifdef __linux__
  return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
  (void)actions;
  return 0;
#endif
}
