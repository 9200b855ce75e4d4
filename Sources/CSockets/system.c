#include "CSockets.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

int64_t confab_descriptor_limit(int highest) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    rlim_t value = highest ? limit.rlim_max : limit.rlim_cur;
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int64_t confab_free_bytes(const char *folder) {
    struct statvfs answer;
    if (statvfs(folder, &answer) != 0) return -1;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)answer.f_bavail, (uint64_t)answer.f_frsize, &bytes) || bytes > INT64_MAX) {
        return INT64_MAX;
    }
    return (int64_t)bytes;
}

int confab_is_folder(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int64_t confab_file_size(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? (int64_t)status.st_size : -1;
}
