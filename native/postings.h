/* How posting lists are written and read, and what both forms of the index are searched with. */
#ifndef POSTINGS_H
#define POSTINGS_H
#include "literals.h"
#include <stdlib.h>

/* Most trigrams are in a few files only: their postings stand where the address of the others is. */
typedef struct {
    uint32_t trigram : 24, grade : 8; /* how much room there is, see `rooms` */
    uint32_t files : 27, low : 5;     /* how many numbers are in it, and see `low_bits` */
    uint32_t last;                    /* the last of them */
    uint32_t used;                    /* bits */
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

enum { MOST_FILES = (1 << 27) - 1, FIRST_LOW = 8, OFTEN = 7 };

static inline uint32_t width_of(uint32_t number) { return 31 - (uint32_t)__builtin_clz(number); }

/* How many bits a gap has that is as long as those so far were in the middle; looked at with every eighth number.
 *
 * A gap is written as `gap + (1 << low)`: as many zeros as that has bits more than `low`, a one, and its bits below the
 * first. */
static inline uint32_t low_bits(uint32_t low, uint32_t last, uint32_t files) {
    if (files > OFTEN && (files & OFTEN))
        return low;
    low = width_of(last + 1) - width_of(files);
    return low && (uint64_t)files << low > (uint64_t)last + 1 ? low - 1 : low;
}

static inline void put_bits(uint8_t *bytes, uint32_t room, uint32_t at, uint64_t bits, uint32_t count) {
    uint32_t place = at >> 3, before = at & 7;
    // What stands behind the last bit of a list was never written.
    bits = (bits & (((uint64_t)1 << count) - 1)) << before | (bytes[place] & ((1u << before) - 1));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (place + sizeof bits <= room) {
        memcpy(bytes + place, &bits, sizeof bits);
        return;
    }
#endif
    (void)room;
    for (; place <= (at + count - 1) >> 3; bits >>= 8)
        bytes[place++] = (uint8_t)bits;
}

/* At least 57 bits of a list, or as many as there are. */
static inline uint64_t bits_at(const uint8_t *bytes, uint32_t room, uint32_t at) {
    uint32_t place = at >> 3;
    uint64_t bits = 0;
    if (place + sizeof bits <= room)
        memcpy(&bits, bytes + place, sizeof bits);
    else
        memcpy(&bits, bytes + place, room - place);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    return bits >> (at & 7);
}

/* Writes a number behind a list of so many bits that has room for it; how many bits it has then. */
static inline uint32_t put_gap(uint8_t *bytes, uint32_t room, uint32_t used, uint32_t low, uint64_t gap) {
    uint32_t count = 63 - (uint32_t)__builtin_clzll(gap), zeros = count - low;
    put_bits(bytes, room, used, (uint64_t)1 << zeros, zeros + 1);
    if (count)
        put_bits(bytes, room, used + zeros + 1, gap, count);
    return used + zeros + 1 + count;
}

/* The numbers of a list, one after the other; `number` is right after the first `step`. */
typedef struct {
    const uint8_t *bytes;
    uint32_t room, at, files, low, number;
    uint32_t count; /* how many there are */
    uint32_t below; /* each is lower than this */
} steps_t;

/* Goes to the next number; 0 where there is none, also since the bytes are no list. */
static inline __attribute__((always_inline)) int step(steps_t *steps) {
    uint32_t low = steps->low;
    if (steps->files == steps->count || steps->at >> 3 >= steps->room)
        return 0;
    uint64_t bits = bits_at(steps->bytes, steps->room, steps->at);
    if (!bits)
        return 0;
    uint32_t zeros = (uint32_t)__builtin_ctzll(bits), count = low + zeros;
    steps->at += zeros + 1;
    if (count > 32 || steps->at >> 3 > steps->room)
        return 0;
    bits = zeros + count < 57 ? bits >> zeros >> 1 : bits_at(steps->bytes, steps->room, steps->at);
    uint64_t gap = (bits & (((uint64_t)1 << count) - 1)) + ((uint64_t)1 << count) - ((uint64_t)1 << low);
    uint64_t number = (steps->files++ ? (uint64_t)steps->number + 1 : 0) + gap;
    if (number >= steps->below)
        return 0;
    steps->number = (uint32_t)number;
    steps->at += count;
    steps->low = low_bits(low, steps->number, steps->files);
    return 1;
}

/* Where in an index the list of a trigram is; 0 where there is none. */
typedef int lookup_t(const void *from, uint32_t trigram, steps_t *steps);

/* The files below `next` that hold every trigram of a literal of two bytes or more, where each text was added with a
 * byte behind its end.  Writes at most `room` numbers, in order; returns how many there are, or -1 where they do
 * not fit or the literal is too short. */
int64_t find_literal(const void *from, lookup_t *lookup, uint32_t next, const uint8_t *text, size_t size, uint32_t *out,
                     uint32_t room);

static inline const uint8_t *postings(const list_t *list) { return list->grade ? list->at.bytes : list->at.within; }

/* The numbers of a list. */
steps_t steps_of(const list_t *list);

#endif
