/* Puts one fault into the n-th call that changes the file system, of this process and of all libraries in it; loaded with LD_PRELOAD.
 *
 * Calls on files below the watched folder are counted, others pass; `fault_arm` says where and what.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, KILL_BEFORE, KILL_AFTER, EIO_ONCE, EIO_ON, ENOSPC_ONCE, ENOSPC_ON, TORN, INTERRUPT, INTERRUPT_TWICE };

static int mode = NONE;
static long at = -1, seen = 0;
static char folder[PATH_MAX] = "";

void fault_arm(const char *watched, long place, int what) {
    snprintf(folder, sizeof folder, "%s", watched);
    seen = 0;
    at = place;
    mode = what;
}

long fault_seen(void) { return seen; }

static int inside(const char *path) {
    return folder[0] && path && (path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0);
}

static int inside_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return path[0] == '/' && inside(path);
}

/* 0: go on; 1: fail with errno; 2: go on, then call after(). */
static int before(int watched) {
    if (!watched || mode == NONE) return 0;
    long now = seen++;
    if (now < at) return 0;
    int first = now == at;
    switch (mode) {
        case KILL_BEFORE: if (first) kill(getpid(), SIGKILL); return 0;
        case KILL_AFTER: return first ? 2 : 0;
        case EIO_ONCE: if (first) { errno = EIO; return 1; } return 0;
        case EIO_ON: errno = EIO; return 1;
        case ENOSPC_ONCE: if (first) { errno = ENOSPC; return 1; } return 0;
        case ENOSPC_ON: errno = ENOSPC; return 1;
        case TORN: return first ? 3 : 0;
        case INTERRUPT: if (first) kill(getpid(), SIGINT); return 0;
        case INTERRUPT_TWICE: if (first) { kill(getpid(), SIGINT); kill(getpid(), SIGINT); } else if (now == at + 1) kill(getpid(), SIGINT); return 0;
    }
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)
#define RUN(watched, call)                                   \
    int what = before(watched);                              \
    if (what == 1) return -1;                                \
    __typeof__(call) result = call;                          \
    if (what == 2 || what == 3) kill(getpid(), SIGKILL);     \
    return result

#define WRITE(watched, whole, half)                          \
    int what = before(watched);                              \
    if (what == 1) return -1;                                \
    ssize_t result = what == 3 ? half : whole;               \
    if (what == 2 || what == 3) kill(getpid(), SIGKILL);     \
    return result

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    WRITE(fd > 2 && inside_fd(fd), real(fd, data, size), real(fd, data, size / 2));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    WRITE(inside_fd(fd), real(fd, data, size, place), real(fd, data, size / 2, place));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    WRITE(inside_fd(fd), real(fd, data, size, place), real(fd, data, size / 2, place));
}
int fsync(int fd) { REAL(int, fsync, int); RUN(inside_fd(fd), real(fd)); }
int fdatasync(int fd) { REAL(int, fdatasync, int); RUN(inside_fd(fd), real(fd)); }
int ftruncate(int fd, off_t size) { REAL(int, ftruncate, int, off_t); RUN(inside_fd(fd), real(fd, size)); }
int ftruncate64(int fd, off64_t size) { REAL(int, ftruncate64, int, off64_t); RUN(inside_fd(fd), real(fd, size)); }
int truncate(const char *path, off_t size) { REAL(int, truncate, const char *, off_t); RUN(inside(path), real(path, size)); }
int truncate64(const char *path, off64_t size) { REAL(int, truncate64, const char *, off64_t); RUN(inside(path), real(path, size)); }
int rename(const char *from, const char *to) { REAL(int, rename, const char *, const char *); RUN(inside(from), real(from, to)); }
int link(const char *from, const char *to) { REAL(int, link, const char *, const char *); RUN(inside(from), real(from, to)); }
int unlink(const char *path) { REAL(int, unlink, const char *); RUN(inside(path), real(path)); }
int mkdir(const char *path, mode_t bits) { REAL(int, mkdir, const char *, mode_t); RUN(inside(path), real(path, bits)); }
int rmdir(const char *path) { REAL(int, rmdir, const char *); RUN(inside(path), real(path)); }
int unlinkat(int at_fd, const char *path, int flags) { REAL(int, unlinkat, int, const char *, int); RUN(1, real(at_fd, path, flags)); }

/* posix_fallocate returns the number of the error. */
int posix_fallocate(int fd, off_t start, off_t size) {
    REAL(int, posix_fallocate, int, off_t, off_t);
    int what = before(inside_fd(fd));
    if (what == 1) return errno;
    int result = real(fd, start, size);
    if (what >= 2) kill(getpid(), SIGKILL);
    return result;
}
int posix_fallocate64(int fd, off64_t start, off64_t size) { return posix_fallocate(fd, start, size); }

static int open_any(int (*real)(const char *, int, ...), const char *path, int flags, mode_t bits) {
    RUN(inside(path) && (flags & (O_WRONLY | O_RDWR | O_CREAT)), real(path, flags, bits));
}
int open(const char *path, int flags, ...) {
    REAL(int, open, const char *, int, ...);
    va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest);
    return open_any(real, path, flags, bits);
}
int open64(const char *path, int flags, ...) {
    REAL(int, open64, const char *, int, ...);
    va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest);
    return open_any(real, path, flags, bits);
}
