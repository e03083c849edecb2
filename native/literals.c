/* Looking for literals in texts, and for the lines that hold them. */
#include "literals.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

#ifndef WIDER
#define WIDER __builtin_cpu_supports("avx2")
#endif

enum { MOST_AT_ONCE = MOST_LITERALS + 16, NARROW = 16, WIDE = 32, SHORT = 24, LONG = 128 };

static const char common[] = " etaoinsrlcdumpfhgyb_.,()=\"':xw-vk/[]01";

static size_t rareness(uint8_t byte) {
    const char *found = byte ? strchr(common, folded(byte)) : NULL;
    size_t rare = found ? (size_t)(found - common) : sizeof common;
    return byte >= 'A' && byte <= 'Z' ? rare + sizeof common / 4 : rare;
}

static uint8_t mask_of(uint8_t byte, int fold) { return fold && byte >= 'a' && byte <= 'z' ? 32 : 0; }

static literal_t literal_of(const uint8_t *bytes, size_t length, int fold) {
    literal_t literal = {bytes, length, 0, length - 1, {0, 0}, fold != 0};
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

void needs_of_bytes(needs_t *needs, const uint8_t *bytes, size_t size, int fold) {
    int count = 0, begins = 0;
    needs->groups = needs->doubtful = 0;
    for (size_t at = 0; at < size && needs->groups < MOST_GROUPS;) {
        uint32_t length = 0;
        if (size - at < 4)
            break;
        memcpy(&length, bytes + at, 4);
        at += 4;
        if (!length) {
            needs->ends[needs->groups++] = begins = count;
            continue;
        }
        if (length > size - at || count - begins == MOST_LITERALS) {
            needs->doubtful = 1;
            return;
        }
        if (count == 4 * MOST_LITERALS)
            return;
        needs->literals[count++] = literal_of(bytes + at, length, fold);
        at += length;
    }
    needs->doubtful = count != begins;
}

static int stands_at(const literal_t *literal, const uint8_t *text) {
    if (!literal->fold)
        return !memcmp(text, literal->bytes, literal->length);
    for (size_t at = 0; at < literal->length; at++)
        if (folded(text[at]) != literal->bytes[at])
            return 0;
    return 1;
}

static int is_plain(uint8_t byte, int strict) { return byte && byte != 27 && (byte < 128 || strict != NOT_ASCII); }

typedef uint8_t narrow_t __attribute__((vector_size(NARROW)));

#ifdef __SSE2__
#define MASK_NARROW(block) (uint32_t) _mm_movemask_epi8((__m128i)(block))
#else
static uint32_t narrow_mask(narrow_t block) {
    uint64_t halves[2];
    uint32_t bits = 0;
    memcpy(halves, &block, NARROW);
    for (int place = 0; (halves[0] | halves[1]) && place < NARROW; place++)
        bits |= (uint32_t)(block[place] & 1) << place;
    return bits;
}
#define MASK_NARROW narrow_mask
#endif

#define SEEK seek_narrow
#define ATTRIBUTE
#define BLOCK NARROW
#define block_t narrow_t
#define MASK MASK_NARROW
#include "seek.h"

#ifdef __x86_64__
#undef SEEK
#undef ATTRIBUTE
#undef BLOCK
#undef block_t
#undef MASK
typedef uint8_t wide_t __attribute__((vector_size(WIDE)));
#define SEEK seek_wide
#define ATTRIBUTE __attribute__((target("avx2")))
#define BLOCK WIDE
#define block_t wide_t
#define MASK(block) (uint32_t) _mm256_movemask_epi8((__m256i)(block))
#include "seek.h"
#endif

static size_t seek_blocks(const literal_t *group, int count, const uint8_t *text, size_t size, size_t room,
                          size_t reach, size_t *at, int strict, int *which) {
#ifdef __x86_64__
    if (WIDER)
        return seek_wide(group, count, text, size, room, reach, at, strict, which);
#endif
    return seek_narrow(group, count, text, size, room, reach, at, strict, which);
}

size_t seek_any(const literal_t *group, int count, const uint8_t *text, size_t size, size_t at, int strict, int *which) {
    size_t reach = 0, hit = SIZE_MAX;
    if (count > MOST_AT_ONCE)
        return SIZE_MAX;
    for (int one = 0; one < count; one++)
        if (group[one].length > reach + 1)
            reach = group[one].length - 1;
    if (at < size && size - at > SHORT)
        hit = seek_blocks(group, count, text, size, size, reach, &at, strict, which);
    if (hit != SIZE_MAX || at >= size)
        return hit;
    if (size - at > SHORT && reach <= LONG) {
        // The rest is looked at with blanks behind it, so that it has whole blocks as well.
        uint8_t rest[LONG + LONG + 4 * WIDE];
        size_t left = size - at, from = 0;
        size_t room = (left + WIDE - 1) / WIDE * WIDE + reach;
        memcpy(rest, text + at, left);
        memset(rest + left, ' ', room - left);
        hit = seek_blocks(group, count, rest, left, room, reach, &from, strict, which);
        return hit == SIZE_MAX ? hit : at + hit;
    }
    for (; at < size; at++) {
        for (int one = 0; one < count; one++)
            if (group[one].length <= size - at && stands_at(&group[one], text + at)) {
                *which = one;
                return at;
            }
        if (strict && !is_plain(text[at], strict)) {
            *which = count;
            return at;
        }
    }
    return SIZE_MAX;
}

int is_utf8(const uint8_t *text, size_t size) {
    for (size_t at = 0; at < size;) {
        uint64_t some;
        if (size - at >= sizeof some) {
            memcpy(&some, text + at, sizeof some);
            if (!(some & 0x8080808080808080u)) {
                at += sizeof some;
                continue;
            }
        }
        uint8_t first = text[at++];
        if (first < 0x80)
            continue;
        int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        // The second byte tells what is too long, half of a pair, or beyond what there is.
        uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (first < 0xc2 || first > 0xf4 || size - at < (size_t)more || text[at] < low || text[at] > high)
            return 0;
        for (at++; --more; at++)
            if ((text[at] & 0xc0) != 0x80)
                return 0;
    }
    return 1;
}

int holds_odd_cases(const uint8_t *text, size_t size) {
    static const literal_t odd[] = {{(const uint8_t *)"\xe2\x84\xaa", 3, 1, 2, {0, 0}, 0},
                                    {(const uint8_t *)"\xc5\xbf", 2, 0, 1, {0, 0}, 0}};
    int which;
    return seek_any(odd, 2, text, size, 0, 0, &which) != SIZE_MAX;
}

int holds_all(const uint8_t *text, size_t size, const needs_t *needs, int first) {
    int which;
    for (int group = first; !needs->doubtful && group < needs->groups; group++) {
        int begins = group ? needs->ends[group - 1] : 0;
        if (seek_any(needs->literals + begins, needs->ends[group] - begins, text, size, 0, 0, &which) == SIZE_MAX)
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
static uint32_t lines_of(const uint8_t *text, size_t size, const needs_t *needs, int fold, line_t *out, uint32_t room) {
    uint32_t found = 0;
    int which, count = needs->groups ? needs->ends[0] : 0;
    if (size >= UNSURE || needs->doubtful || !count || (fold && holds_odd_cases(text, size))) {
        if (room)
            *out = (line_t){0, UNSURE, 0, 0};
        return 1;
    }
    for (size_t at = 0;;) {
        size_t hit = seek_any(needs->literals, count, text, size, at, 0, &which);
        if (hit == SIZE_MAX)
            return found;
        size_t start = hit;
        while (start > at && text[start - 1] != '\n')
            start--;
        const uint8_t *behind = memchr(text + hit, '\n', size - hit);
        size_t end = behind ? (size_t)(behind - text) : size;
        if (holds_all(text + start, end - start, needs, 1)) {
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
uint32_t find_lines(const uint8_t *const *texts, const uint64_t *sizes, uint32_t count, const uint8_t *bytes,
                    size_t size, int fold, line_t *out, uint32_t room, uint32_t *done) {
    uint32_t used = 0;
    needs_t needs;
    needs_of_bytes(&needs, bytes, size, fold);
    for (*done = 0; *done < count && used < room; ++*done) {
        uint32_t left = room - used;
        uint32_t found = lines_of(texts[*done], sizes[*done], &needs, fold, out + used, left);
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
