/* An inverted index of trigrams: which files hold which three bytes in a row.
 *
 * Letters of ASCII are folded to lower case.  Files have numbers that only grow, so each posting list is a
 * row of differences as varints.  Nothing is ever removed: a file that changed gets a new number, and who
 * keeps the numbers builds the index anew when too many of them stand for nothing.
 *
 * Not safe for several threads at once; the caller holds a lock.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <stdio.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Most trigrams are in a few files only: their postings stand where the address of the others is. */
typedef struct {
    uint32_t trigram : 24, grade : 8; /* how much room there is, see `rooms` */
    uint32_t files;                   /* how many numbers are in it */
    uint32_t last;                    /* the last of them */
    uint32_t used;
    union {
        uint8_t within[8];
        uint8_t *bytes;
    } at;
} list_t;

typedef struct {
    list_t *lists;
    uint32_t used, room;
    uint32_t *slots; /* by hash: where a trigram's list is, plus 1; 0 is free */
    uint32_t wide;   /* how many slots, a power of two */
    uint64_t memory;
    uint8_t *seen;   /* a bit for each trigram: whether the file at hand has it; or NULL */
    uint32_t *found; /* the trigrams of the file at hand; or NULL */
    uint32_t most;   /* how many fit into it */
    uint32_t next;   /* the lowest number for the next file */
} index_t;

enum { TRIGRAMS = 1 << 24, FIRST_SLOTS = 1 << 14, FIRST_LISTS = 1 << 12, FIRST_FOUND = 1 << 12, HEAD = 8 };

/* Sizes that fill the blocks of an allocator: multiples of 16 with a head of 8. */
static const uint32_t rooms[] = {
    8, 24, 40, 56, 72, 88, 120, 152, 200, 248, 312, 392, 488, 600, 744, 920, 1128, 1384, 1688, 2072, 2536,
    3096, 3784, 4616, 5640, 6888, 8408, 10264, 12536, 15304, 18680, 22792, 27816, 33944, 41416, 50536, 61656,
    75224, 91784, 111976, 136616, 166680, 203352, 248104, 302696, 369304, 450552, 549688, 670632, 818184,
    998184, 1217784, 1485704, 1812568, 2211336, 2697832, 3291368, 4015480, 4898888, 5976648, 7291512, 8895656,
    10852712, 13240312, 16153192};
enum { GRADES = sizeof rooms / sizeof *rooms };

/* Who calls says which version it was written for: goes up with each change of what a function takes or gives. */
uint32_t trigram_version(void) { return 2; }

static uint8_t folded(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 32 : byte; }

static const uint8_t *postings(const list_t *list) { return list->grade ? list->at.bytes : list->at.within; }

static uint32_t slot_of(const index_t *index, uint32_t trigram) {
    uint32_t at = ((trigram + 1) * 2654435761u) >> 7 & (index->wide - 1);
    while (index->slots[at] && index->lists[index->slots[at] - 1].trigram != trigram)
        at = (at + 1) & (index->wide - 1);
    return at;
}

static int widen(index_t *index) {
    uint32_t *slots = calloc((size_t)index->wide * 2, sizeof *slots);
    if (!slots)
        return 0;
    free(index->slots);
    index->slots = slots;
    index->memory += (uint64_t)index->wide * sizeof *slots;
    index->wide *= 2;
    for (uint32_t at = 0; at < index->used; at++)
        slots[slot_of(index, index->lists[at].trigram)] = at + 1;
    return 1;
}

static list_t *list_for(index_t *index, uint32_t trigram) {
    uint32_t slot = slot_of(index, trigram);
    if (index->slots[slot])
        return &index->lists[index->slots[slot] - 1];
    if (index->used == index->room) {
        uint32_t room = index->room + index->room / 4;
        list_t *lists = realloc(index->lists, (size_t)room * sizeof *lists);
        if (!lists)
            return NULL;
        index->memory += (uint64_t)(room - index->room) * sizeof *lists;
        index->lists = lists;
        index->room = room;
    }
    if (index->used * 4 >= index->wide * 3) {
        if (!widen(index))
            return NULL;
        slot = slot_of(index, trigram);
    }
    list_t *list = &index->lists[index->used++];
    memset(list, 0, sizeof *list);
    list->trigram = trigram;
    index->slots[slot] = index->used;
    return list;
}

static int append(index_t *index, uint32_t trigram, uint32_t number) {
    list_t *list = list_for(index, trigram);
    if (!list)
        return 0;
    uint8_t step[5];
    uint32_t size = 0, rest = list->files ? number - list->last : number;
    for (; rest >= 128; rest >>= 7)
        step[size++] = (uint8_t)(rest | 128);
    step[size++] = (uint8_t)rest;
    if (list->used + size > rooms[list->grade]) {
        uint32_t grade = list->grade + 1u;
        if (grade == GRADES)
            return 0;
        uint8_t *bytes = realloc(list->grade ? list->at.bytes : NULL, rooms[grade]);
        if (!bytes)
            return 0;
        if (!list->grade)
            memcpy(bytes, list->at.within, list->used);
        index->memory += rooms[grade] + HEAD - (list->grade ? rooms[list->grade] + HEAD : 0);
        list->at.bytes = bytes;
        list->grade = grade & 255;
    }
    memcpy((list->grade ? list->at.bytes : list->at.within) + list->used, step, size);
    list->used += size;
    list->last = number;
    list->files++;
    return 1;
}

void trigram_free(index_t *index) {
    if (!index)
        return;
    for (uint32_t at = 0; at < index->used; at++)
        if (index->lists[at].grade)
            free(index->lists[at].at.bytes);
    free(index->lists);
    free(index->slots);
    free(index->seen);
    free(index->found);
    free(index);
}

index_t *trigram_new(void) {
    index_t *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->wide = FIRST_SLOTS;
    index->room = FIRST_LISTS;
    index->slots = calloc(index->wide, sizeof *index->slots);
    index->lists = malloc(index->room * sizeof *index->lists);
    index->memory = index->wide * sizeof *index->slots + index->room * sizeof *index->lists;
    if (index->slots && index->lists)
        return index;
    trigram_free(index);
    return NULL;
}

/* Gives back what only `trigram_add` needs; it takes it anew. */
void trigram_rest(index_t *index) {
    if (index->seen)
        index->memory -= TRIGRAMS / 8;
    free(index->seen);
    free(index->found);
    index->seen = NULL;
    index->found = NULL;
    uint32_t room = index->used > FIRST_LISTS ? index->used : FIRST_LISTS;
    list_t *lists = realloc(index->lists, (size_t)room * sizeof *lists);
    if (lists) {
        index->memory -= (uint64_t)(index->room - room) * sizeof *lists;
        index->lists = lists;
        index->room = room;
    }
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static int wake(index_t *index) {
    if (!index->seen && (index->seen = calloc(TRIGRAMS / 8, 1)))
        index->memory += TRIGRAMS / 8;
    if (!index->found) {
        index->most = FIRST_FOUND;
        index->found = malloc(index->most * sizeof *index->found);
    }
    return index->seen && index->found;
}

/* Adds a file; its number must be higher than all before.  Returns 1, or 0 when memory ran out: then the
 * file may be in the index in part, and its number must not be used. */
int trigram_add(index_t *index, uint32_t number, const uint8_t *text, size_t size) {
    if (number < index->next || number == UINT32_MAX)
        return 0;
    index->next = number + 1;
    if (size < 3)
        return 1;
    if (!wake(index))
        return 0;
    uint32_t count = 0;
    int good = 1;
    uint32_t window = (uint32_t)folded(text[0]) << 8 | folded(text[1]);
    for (size_t at = 2; at < size; at++) {
        window = (window << 8 | folded(text[at])) & (TRIGRAMS - 1);
        uint8_t bit = (uint8_t)(1 << (window & 7));
        if (index->seen[window >> 3] & bit)
            continue;
        if (count == index->most) {
            uint32_t *wider = realloc(index->found, 2 * (size_t)index->most * sizeof *wider);
            if (!wider) {
                good = 0;
                break;
            }
            index->found = wider;
            index->most *= 2;
        }
        index->seen[window >> 3] |= bit;
        index->found[count++] = window;
    }
    for (uint32_t at = 0; at < count; at++) {
        index->seen[index->found[at] >> 3] = 0;
        good = good && append(index, index->found[at], number);
    }
    return good;
}

/* The difference that begins at `*at`, which then is behind it. */
static uint32_t next_step(const uint8_t *bytes, uint32_t *at) {
    uint32_t step = 0, shift = 0;
    uint8_t byte;
    do {
        byte = bytes[(*at)++];
        step |= (uint32_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    return step;
}

static uint32_t read_all(const list_t *list, uint32_t *out) {
    const uint8_t *bytes = postings(list);
    uint32_t number = 0, count = 0;
    for (uint32_t at = 0; at < list->used; count++) {
        number += next_step(bytes, &at);
        out[count] = number;
    }
    return count;
}

/* Keeps those of some sorted numbers that are in a list as well. */
static uint32_t keep_common(const list_t *list, uint32_t *out, uint32_t count) {
    const uint8_t *bytes = postings(list);
    uint32_t number = 0, kept = 0, next = 0;
    for (uint32_t at = 0; at < list->used && next < count;) {
        number += next_step(bytes, &at);
        while (next < count && out[next] < number)
            next++;
        if (next < count && out[next] == number)
            out[kept++] = out[next++];
    }
    return kept;
}

enum { MOST_LISTS = 64 };

static int by_size(const void *one, const void *other) {
    uint32_t a = (*(list_t *const *)one)->files, b = (*(list_t *const *)other)->files;
    return (a > b) - (a < b);
}

/* The files that hold two bytes in a row, and behind them any other. */
static int64_t find_pair(const index_t *index, uint32_t pair, uint32_t *out, uint32_t room) {
    uint8_t *among = calloc((size_t)index->next / 8 + 1, 1);
    uint32_t count = 0;
    if (!among)
        return -1;
    for (uint32_t last = 0; last < 256; last++) {
        uint32_t found = index->slots[slot_of(index, pair << 8 | last)];
        if (!found)
            continue;
        const list_t *list = &index->lists[found - 1];
        const uint8_t *bytes = postings(list);
        for (uint32_t at = 0, number = 0; at < list->used;) {
            number += next_step(bytes, &at);
            among[number >> 3] |= (uint8_t)(1 << (number & 7));
        }
    }
    for (uint32_t number = 0; number < index->next; number++)
        if (among[number >> 3] & 1 << (number & 7)) {
            if (count < room)
                out[count] = number;
            count++;
        }
    free(among);
    return count > room ? -1 : (int64_t)count;
}

/* The files that hold every trigram of a literal of two bytes or more, where each text was added with a byte
 * behind its end.  Writes at most `room` numbers, in order; returns how many there are, or -1 where they do
 * not fit or the literal is too short. */
int64_t trigram_find(const index_t *index, const uint8_t *text, size_t size, uint32_t *out, uint32_t room) {
    const list_t *lists[MOST_LISTS];
    size_t count = 0;
    if (size < 2)
        return -1;
    if (size == 2)
        return find_pair(index, (uint32_t)folded(text[0]) << 8 | folded(text[1]), out, room);
    uint32_t window = (uint32_t)folded(text[0]) << 8 | folded(text[1]);
    for (size_t at = 2; at < size && count < MOST_LISTS; at++) {
        window = (window << 8 | folded(text[at])) & (TRIGRAMS - 1);
        uint32_t found = index->slots[slot_of(index, window)];
        if (!found)
            return 0;
        lists[count++] = &index->lists[found - 1];
    }
    qsort(lists, count, sizeof *lists, by_size);
    if (lists[0]->files > room)
        return -1;
    uint32_t kept = read_all(lists[0], out);
    for (size_t at = 1; at < count && kept; at++)
        if (lists[at] != lists[at - 1])
            kept = keep_common(lists[at], out, kept);
    return kept;
}

/* Bytes that the index takes, about. */
uint64_t trigram_memory(const index_t *index) { return index->memory; }

/* A file as it was read. */
typedef struct {
    int64_t size; /* or why it has no bytes */
    uint64_t inode;
    int64_t modified, changed; /* nanoseconds */
} record_t;

enum { OTHERWISE = -1, LACKING = -2 }; /* it has to be read in another way; it lacks a literal */

/* A literal, in lower case where case does not matter. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
    size_t first, second;    /* where in it two bytes stand that are rare in texts */
    uint8_t masks[2];        /* the bit by which cases differ, where case does not matter */
    size_t next;             /* where it was found last */
} literal_t;

enum { BLOCK = 16, MOST_LITERALS = 64 };
typedef uint8_t block_t __attribute__((vector_size(BLOCK)));

static const char common[] = " etaoinsrlcdumpfhgyb_.,()=\"':xw-vk/[]01";

static size_t rareness(uint8_t byte) {
    const char *found = byte ? strchr(common, folded(byte)) : NULL;
    return found ? (size_t)(found - common) : sizeof common;
}

static uint8_t mask_of(uint8_t byte, int fold) { return fold && byte >= 'a' && byte <= 'z' ? 32 : 0; }

static literal_t literal_of(const uint8_t *bytes, size_t length, int fold) {
    literal_t literal = {bytes, length, 0, length - 1, {0, 0}, 0};
    for (size_t at = 0; at < length; at++)
        if (rareness(bytes[at]) > rareness(bytes[literal.first]))
            literal.first = at;
    literal.second = literal.first ? 0 : length - 1;
    for (size_t at = 0; at < length; at++)
        if (at != literal.first && rareness(bytes[at]) > rareness(bytes[literal.second]))
            literal.second = at;
    literal.masks[0] = mask_of(bytes[literal.first], fold);
    literal.masks[1] = mask_of(bytes[literal.second], fold);
    return literal;
}

static int stands_at(const literal_t *literal, const uint8_t *text, int fold) {
    if (!fold)
        return !memcmp(text, literal->bytes, literal->length);
    for (size_t at = 0; at < literal->length; at++)
        if (folded(text[at]) != literal->bytes[at])
            return 0;
    return 1;
}

/* Where a literal stands in a text, from an offset on; SIZE_MAX where it does not. */
static size_t seek(const literal_t *literal, const uint8_t *text, size_t size, size_t at, int fold) {
    block_t first, second, masks[2];
    memset(&first, literal->bytes[literal->first], BLOCK);
    memset(&second, literal->bytes[literal->second], BLOCK);
    memset(&masks[0], literal->masks[0], BLOCK);
    memset(&masks[1], literal->masks[1], BLOCK);
    for (; at + literal->length - 1 + BLOCK <= size; at += BLOCK) {
        block_t one, other;
        memcpy(&one, text + at + literal->first, BLOCK);
        memcpy(&other, text + at + literal->second, BLOCK);
        block_t same = (block_t)((one | masks[0]) == first) & (block_t)((other | masks[1]) == second);
        uint64_t halves[2];
        memcpy(halves, &same, BLOCK);
        if (!(halves[0] | halves[1]))
            continue;
        for (size_t place = 0; place < BLOCK; place++)
            if (same[place] && stands_at(literal, text + at + place, fold))
                return at + place;
    }
    for (; at + literal->length <= size; at++)
        if (stands_at(literal, text + at, fold))
            return at;
    return SIZE_MAX;
}

/* Reads the next group of literals; each stands behind its length, 0 ends the group.  Returns how many, or -1. */
static int next_group(const uint8_t *needs, size_t size, size_t *at, literal_t *group, int fold) {
    for (int count = 0; *at + 4 <= size;) {
        uint32_t length;
        memcpy(&length, needs + *at, 4);
        *at += 4;
        if (!length)
            return count;
        if (length > size - *at || count == MOST_LITERALS)
            return -1;
        group[count++] = literal_of(needs + *at, length, fold);
        *at += length;
    }
    return -1;
}

/* Whether letters beyond ASCII stand in a text that are cases of letters of ASCII. */
static int holds_odd_cases(const uint8_t *text, size_t size) {
    static const literal_t kelvin = {(const uint8_t *)"\xe2\x84\xaa", 3, 1, 2, {0, 0}, 0};
    static const literal_t long_s = {(const uint8_t *)"\xc5\xbf", 2, 0, 1, {0, 0}, 0};
    return seek(&kelvin, text, size, 0, 0) != SIZE_MAX || seek(&long_s, text, size, 0, 0) != SIZE_MAX;
}

/* Whether a text holds of each group of literals one at least; what cannot be told, it does. */
static int holds_all(const uint8_t *text, size_t size, const uint8_t *needs, size_t needs_size, int fold) {
    literal_t group[MOST_LITERALS];
    for (size_t at = 0; at < needs_size;) {
        int count = next_group(needs, needs_size, &at, group, fold), one = 0;
        if (count < 0)
            return 1;
        while (one < count && seek(&group[one], text, size, 0, fold) == SIZE_MAX)
            one++;
        if (one == count)
            return 0;
    }
    return 1;
}

int text_holds(const uint8_t *text, size_t size, const uint8_t *needs, size_t needs_size, int fold) {
    return holds_all(text, size, needs, needs_size, fold) || (fold && holds_odd_cases(text, size));
}

/* Whether the bytes are a text of ASCII in which none of some words stands, given as groups: nothing but
 * looking for other words needs to be done with it. */
static int is_plain(const uint8_t *text, size_t size, const uint8_t *odd, size_t odd_size) {
    uint8_t high = 0, zero = 0;
    for (size_t at = 0; at < size; at++) {
        high |= text[at];
        zero |= (uint8_t)(text[at] == 0) | (uint8_t)(text[at] == 0x1b);
    }
    if (high >> 7 || zero)
        return 0;
    for (size_t at = 0; at < odd_size;) {
        literal_t group[MOST_LITERALS];
        int count = next_group(odd, odd_size, &at, group, 0);
        if (count < 0)
            return 0;
        while (count--)
            if (seek(&group[count], text, size, 0, 0) != SIZE_MAX)
                return 0;
    }
    return 1;
}

/* A line that holds what is needed; where `start` is UNSURE, nobody knows which lines of the text do. */
typedef struct {
    uint32_t text, start, hit, end;
} line_t;

enum { UNSURE = 0xffffffff };

/* The lines of one text that hold of each group of literals one at least.  Returns how many, or `room` + 1. */
static uint32_t lines_of(const uint8_t *text, size_t size, const uint8_t *needs, size_t needs_size, int fold,
                         line_t *out, uint32_t room) {
    literal_t group[MOST_LITERALS];
    size_t rest = 0, at = 0;
    uint32_t found = 0;
    int count = size < UNSURE ? next_group(needs, needs_size, &rest, group, fold) : -1;
    if (count < 1 || (fold && holds_odd_cases(text, size))) {
        if (room)
            *out = (line_t){0, UNSURE, 0, 0};
        return 1;
    }
    for (int one = 0; one < count; one++)
        group[one].next = seek(&group[one], text, size, 0, fold);
    for (;;) {
        size_t hit = SIZE_MAX;
        for (int one = 0; one < count; one++) {
            if (group[one].next < at)
                group[one].next = seek(&group[one], text, size, at, fold);
            if (group[one].next < hit)
                hit = group[one].next;
        }
        if (hit == SIZE_MAX)
            return found;
        size_t start = hit;
        while (start > at && text[start - 1] != '\n')
            start--;
        const uint8_t *behind = memchr(text + hit, '\n', size - hit);
        size_t end = behind ? (size_t)(behind - text) : size;
        if (holds_all(text + start, end - start, needs + rest, needs_size - rest, fold)) {
            if (found == room)
                return room + 1;
            out[found++] = (line_t){0, (uint32_t)start, (uint32_t)hit, (uint32_t)end};
        }
        if (end == size)
            return found;
        at = end + 1;
    }
}

/* The lines of several texts; as `lines_of`.  Of a text with more than fit it is not known which.  Returns how
 * many records there are; the texts before `*done` were gone through. */
uint32_t find_lines(const uint8_t *const *texts, const uint64_t *sizes, uint32_t count, const uint8_t *needs,
                    size_t needs_size, int fold, line_t *out, uint32_t room, uint32_t *done) {
    uint32_t used = 0;
    for (*done = 0; *done < count && used < room; ++*done) {
        uint32_t left = room - used;
        uint32_t found = lines_of(texts[*done], sizes[*done], needs, needs_size, fold, out + used, left);
        if (found > left) {
            if (used)
                return used;
            *out = (line_t){0, UNSURE, 0, 0};
            found = 1;
        }
        for (; found; found--)
            out[used++].text = *done;
    }
    return used;
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
 * `paths` are their names, each with a zero behind it; `resolve` are the flags of openat2.  What a name leads
 * to is held before it is looked at, and only a regular file is opened.  Of a file that lacks what is needed no
 * bytes are kept, if it is plain or `odd_size` is 0.  Returns how many records it wrote. */
uint32_t read_files(int folder, uint64_t resolve, const char *paths, uint32_t count, const uint8_t *needs,
                    size_t needs_size, int fold, const uint8_t *odd, size_t odd_size, uint8_t *out, size_t room,
                    record_t *records) {
    size_t used = 0;
    uint32_t done = 0;
    for (; done < count; done++, paths += strlen(paths) + 1) {
        records[done].size = OTHERWISE;
#ifdef __linux__
        uint64_t how[3] = {O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, resolve};
        int held = (int)syscall(SYS_openat2, folder, paths, how, sizeof how);
        if (held < 0)
            continue;
        struct stat status;
        int fine = !fstat(held, &status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                   (uint64_t)status.st_size < room;
        if (fine && (uint64_t)status.st_size >= room - used) {
            close(held);
            break;
        }
        if (fine) {
            char name[32];
            snprintf(name, sizeof name, "/proc/self/fd/%d", held);
            int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
            if (file >= 0) {
                if (read_open(file, &status, out + used, room - used)) {
                    note(&records[done], &status);
                    size_t size = (size_t)status.st_size;
                    if (text_holds(out + used, size, needs, needs_size, fold) ||
                        (odd_size && !is_plain(out + used, size, odd, odd_size)))
                        used += (size_t)status.st_size;
                    else
                        records[done].size = LACKING;
                }
                close(file);
            }
        }
        close(held);
#else
        (void)folder, (void)resolve, (void)needs, (void)needs_size, (void)fold;
        (void)odd, (void)odd_size;
        (void)out, (void)room, (void)used;
#endif
    }
    return done;
}
