// Starts a child process with limits, which needs system calls that Swift's Glibc module lacks, between fork and exec.

#ifndef CSPAWN_H
#define CSPAWN_H

#include <spawn.h>
#include <stdint.h>
#include <sys/types.h>

/// What a child may use at most.
struct confab_spawn_limits {
  /// Seconds of CPU time. The kernel then kills the child.
  uint64_t processor;
  /// Bytes of address space.
  uint64_t memory;
  /// The priority, 0 to 19, of which 19 is the lowest.
  int nice;
};

/// Creates a pipe whose ends are closed in programs that this process starts.
///
/// Returns 0, or -1 with errno.
int confab_spawn_pipe(int ends[2]);

/// Starts a program. The child is the leader of a new process group, has no descriptors but the standard ones and
/// the channel, and is killed by the kernel when the calling thread ends, so a process that is killed leaves no children.
///
/// path: the program. arguments, environment: with a null pointer at the end, and arguments[0] is the name.
/// directory: the working directory. input: becomes the standard input, which is empty if this is negative. output, errors: become
/// the standard output and error. channel: becomes descriptor 3; the child has none if this is negative.
///
/// Returns the id of the child, or -1 with errno, also if the program cannot be executed.
pid_t confab_spawn(
  const char *path, char *const arguments[], char *const environment[], const char *directory, int input, int output,
  int errors, int channel, const struct confab_spawn_limits *limits);

/// Makes posix_spawn(3) close all descriptors from 3 on in the child. On macOS a flag of posix_spawn does this, and nothing is added.
///
/// Returns 0, or an error number.
int confab_spawn_close_others(posix_spawn_file_actions_t *actions);

#endif
