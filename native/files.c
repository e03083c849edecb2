/* Reading many files, or listing many folders, in one call. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "literals.h"
#include <fcntl.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

/* A file as it was read. */
typedef struct {
    int64_t size; /* or why it has no bytes */
    uint64_t inode;
    int64_t modified, changed; /* nanoseconds */
} record_t;

/* It has to be read in another way; it lacks a literal; it does if nobody says that it is not UTF-8. */
enum { WANTED = 0, OTHERWISE = -1, LACKING = -2, LACKING_IN_UTF8 = -3 };

/* What makes a file wanted: literals that it must hold, or words by which it is odd and has to be looked at. */
typedef struct {
    needs_t needs, odd;
    literal_t both[2 * MOST_LITERALS]; /* the first group of the needs, and behind it the words */
    int needed, words;                 /* how many of each; `words` is below 0 where no oddness matters */
    int fold, at_once;
} wanted_t;

enum { MOST_WORDS = 16 };

static void want(wanted_t *wanted, const uint8_t *needs, size_t needs_size, int fold, const uint8_t *odd,
                 size_t odd_size) {
    needs_of_bytes(&wanted->needs, needs, needs_size, fold);
    needs_of_bytes(&wanted->odd, odd, odd_size, 0);
    wanted->fold = fold;
    wanted->needed = wanted->needs.groups ? wanted->needs.ends[0] : 0;
    wanted->words = odd_size ? wanted->odd.groups ? wanted->odd.ends[wanted->odd.groups - 1] : 0 : -1;
    wanted->at_once = wanted->words >= 0 && wanted->words <= MOST_WORDS && wanted->needed;
    for (int one = 0; wanted->at_once && one < wanted->needed; one++)
        wanted->both[one] = wanted->needs.literals[one];
    for (int one = 0; wanted->at_once && one < wanted->words; one++)
        wanted->both[wanted->needed + one] = wanted->odd.literals[one];
}

/* Whether words or bytes by which a text is odd stand in it. */
static int is_odd(const wanted_t *wanted, const uint8_t *text, size_t size, int strict) {
    int which;
    return wanted->odd.doubtful || wanted->words > MOST_LITERALS ||
           seek_any(wanted->odd.literals, wanted->words, text, size, 0, strict, &which) != SIZE_MAX;
}

/* Of a text that is odd in ASCII: it lacks what is needed all the same, if it is UTF-8. */
static int64_t judge_wide(const wanted_t *wanted, const uint8_t *text, size_t size) {
    if (is_odd(wanted, text, size, NOT_TEXT) || (wanted->fold && holds_odd_cases(text, size)) ||
        holds_all(text, size, &wanted->needs, 0) || !is_utf8(text, size))
        return WANTED;
    return LACKING_IN_UTF8;
}

static int64_t judge(const wanted_t *wanted, const uint8_t *text, size_t size) {
    int which;
    if (wanted->needs.doubtful || wanted->odd.doubtful || !wanted->needs.groups)
        return WANTED;
    if (wanted->at_once) {
        size_t hit = seek_any(wanted->both, wanted->needed + wanted->words, text, size, 0, NOT_ASCII, &which);
        if (hit == SIZE_MAX)
            return LACKING;
        if (which == wanted->needed + wanted->words && text[hit] > 127)
            return judge_wide(wanted, text, size);
        if (which >= wanted->needed || holds_all(text, size, &wanted->needs, 1))
            return WANTED;
    } else if (holds_all(text, size, &wanted->needs, 0) || (wanted->fold && holds_odd_cases(text, size)))
        return WANTED;
    if (wanted->words < 0 || !is_odd(wanted, text, size, NOT_ASCII))
        return LACKING;
    return judge_wide(wanted, text, size);
}

#ifdef __linux__
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static int64_t nanoseconds(struct timespec time) { return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec; }

static void note(record_t *record, const struct stat *status) {
    record->size = status->st_size;
    record->inode = status->st_ino;
    record->modified = nanoseconds(status->st_mtim);
    record->changed = nanoseconds(status->st_ctim);
}

/* Reads an open file of `status`; whether that was one state of it. */
static int read_open(int file, const struct stat *status, uint8_t *out, size_t room) {
    size_t size = 0;
    ssize_t got;
    struct stat after;
    while ((off_t)size < status->st_size && (got = pread(file, out + size, room - size, (off_t)size)) > 0)
        size += (size_t)got;
    return !fstat(file, &after) && (off_t)size == status->st_size && after.st_size == status->st_size &&
           nanoseconds(after.st_mtim) == nanoseconds(status->st_mtim) &&
           nanoseconds(after.st_ctim) == nanoseconds(status->st_ctim);
}
#endif

/* Reads regular files with one name beneath a folder, one behind the other into `out`, as many as fit.
 *
 * `paths` are names that were listed as those of regular files, each with a zero behind it; `resolve` are the flags
 * of openat2.  What is opened is looked at before it is read.  Of a file that lacks what is needed no
 * bytes are kept, if it is plain or UTF-8 without a word that is odd, or `odd_size` is 0.  Returns how many records it wrote. */
uint32_t read_files(int folder, uint64_t resolve, const char *paths, uint32_t count, const uint8_t *needs,
                    size_t needs_size, int fold, const uint8_t *odd, size_t odd_size, uint8_t *out, size_t room,
                    record_t *records) {
    size_t used = 0;
    uint32_t done = 0;
    wanted_t wanted;
    want(&wanted, needs, needs_size, fold, odd, odd_size);
    for (; done < count; done++, paths += strlen(paths) + 1) {
        records[done].size = OTHERWISE;
#ifdef __linux__
        uint64_t how[3] = {O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, resolve};
        int file = (int)syscall(SYS_openat2, folder, paths, how, sizeof how);
        if (file < 0)
            continue;
        struct stat status;
        int fine = !fstat(file, &status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                   (uint64_t)status.st_size < room;
        if (fine && (uint64_t)status.st_size >= room - used) {
            close(file);
            break;
        }
        if (fine && read_open(file, &status, out + used, room - used)) {
            note(&records[done], &status);
            int64_t judged = judge(&wanted, out + used, (size_t)status.st_size);
            if (judged == WANTED)
                used += (size_t)status.st_size;
            else
                records[done].size = judged;
        }
        close(file);
#else
        (void)folder, (void)resolve, (void)out, (void)room, (void)used, (void)judge;
#endif
    }
    return done;
}

#ifdef __linux__
typedef struct {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t kind;
    char name[];
} entry_t;

enum { ENTRIES = 1 << 15, KIND_FOLDER = 4, KIND_FILE = 8, KIND_LINK = 10 };

/* Writes the names in an open folder; returns behind the last of them, NULL where something is not clear, or
 * `end` where they do not fit. */
static uint8_t *list_open(int folder, uint8_t *out, uint8_t *end) {
    _Alignas(entry_t) char entries[ENTRIES];
    long got;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < got;) {
            const entry_t *entry = (const entry_t *)(entries + at);
            size_t length = strlen(entry->name);
            at += entry->size;
            if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
                continue;
            if (!entry->kind)
                return NULL;
            if ((size_t)(end - out) < length + 4)
                return end;
            memcpy(out, entry->name, length);
            out += length;
            if (entry->kind != KIND_FILE)
                *out++ = '/';
            if (entry->kind != KIND_FILE && entry->kind != KIND_FOLDER)
                *out++ = entry->kind == KIND_LINK ? '@' : '?';
            *out++ = 0;
        }
    return got < 0 ? NULL : out;
}
#endif

/* Lists folders beneath a folder; `paths` and `resolve` as for `read_files`.  Behind each name stands a zero, and
 * before that "/" for a folder, "/@" for a link and "/?" for what is neither nor a file.  `sizes` has for each folder
 * how many bytes its names take, or OTHERWISE.  Returns how many folders were gone through. */
uint32_t list_folders(int folder, uint64_t resolve, const char *paths, uint32_t count, uint8_t *out, size_t room,
                      int64_t *sizes) {
    uint8_t *at = out;
    uint32_t done = 0;
    for (; done < count; done++, paths += strlen(paths) + 1) {
        sizes[done] = OTHERWISE;
#ifdef __linux__
        uint64_t how[3] = {O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, resolve};
        int opened = (int)syscall(SYS_openat2, folder, paths, how, sizeof how);
        if (opened < 0)
            continue;
        uint8_t *behind = list_open(opened, at, out + room);
        close(opened);
        if (behind == out + room) {
            if (at != out)
                break;
        } else if (behind) {
            sizes[done] = behind - at;
            at = behind;
        }
#else
        (void)folder, (void)resolve, (void)at, (void)room;
#endif
    }
    return done;
}
