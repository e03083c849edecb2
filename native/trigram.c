/* An inverted index of trigrams: which files hold which three bytes in a row.
 *
 * Letters of ASCII are folded to lower case.  Files have numbers that only grow, so each posting list is a row of
 * gaps, in as many bits as such gaps need: one where every file has the trigram.  Nothing is ever removed: a file that changed gets a new number, and who
 * keeps the numbers builds the index anew when too many of them stand for nothing.
 *
 * Not safe for several threads at once; the caller holds a lock.
 */
#include "postings.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Sizes that fill the blocks of an allocator: multiples of 16 with a head of 8. */
static const uint32_t rooms[] = {
    8, 24, 40, 56, 72, 88, 120, 152, 200, 248, 312, 392, 488, 600, 744, 920, 1128, 1384, 1688, 2072, 2536,
    3096, 3784, 4616, 5640, 6888, 8408, 10264, 12536, 15304, 18680, 22792, 27816, 33944, 41416, 50536, 61656,
    75224, 91784, 111976, 136616, 166680, 203352, 248104, 302696, 369304, 450552, 549688, 670632, 818184,
    998184, 1217784, 1485704, 1812568, 2211336, 2697832, 3291368, 4015480, 4898888, 5976648, 7291512, 8895656,
    10852712, 13240312, 16153192};
enum { GRADES = sizeof rooms / sizeof *rooms };

uint32_t trigram_version(void) { return LIBRARY_VERSION; }

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
    list->low = FIRST_LOW;
    index->slots[slot] = index->used;
    return list;
}

static int append(index_t *index, uint32_t trigram, uint32_t number) {
    list_t *list = list_for(index, trigram);
    if (!list)
        return 0;
    uint32_t low = list->low;
    uint64_t gap = (list->files ? number - list->last - 1 : number) + ((uint64_t)1 << low);
    uint32_t count = 63 - (uint32_t)__builtin_clzll(gap), zeros = count - low;
    uint64_t size = (uint64_t)list->used + zeros + 1 + count;
    if (size > UINT32_MAX || list->files == MOST_FILES)
        return 0;
    if (size > (uint64_t)rooms[list->grade] * 8) {
        uint32_t grade = list->grade + 1u;
        if (grade == GRADES)
            return 0;
        uint8_t *bytes = realloc(list->grade ? list->at.bytes : NULL, rooms[grade]);
        if (!bytes)
            return 0;
        if (!list->grade)
            memcpy(bytes, list->at.within, sizeof list->at.within);
        index->memory += rooms[grade] + HEAD - (list->grade ? rooms[list->grade] + HEAD : 0);
        list->at.bytes = bytes;
        list->grade = grade & 255;
    }
    uint8_t *bytes = list->grade ? list->at.bytes : list->at.within;
    list->used = put_gap(bytes, rooms[list->grade], list->used, low, gap);
    list->last = number;
    list->files++;
    list->low = low_bits(low, number, list->files) & 31;
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

steps_t steps_of(const list_t *list) {
    return (steps_t){postings(list), rooms[list->grade], 0, 0, FIRST_LOW, 0, list->files, UINT32_MAX};
}

static int look_up(const void *from, uint32_t trigram, steps_t *steps) {
    const index_t *index = from;
    uint32_t found = index->slots[slot_of(index, trigram)];
    if (found)
        *steps = steps_of(&index->lists[found - 1]);
    return found != 0;
}

static uint32_t read_all(steps_t steps, uint32_t *out) {
    uint32_t count = 0;
    while (step(&steps))
        out[count++] = steps.number;
    return count;
}

/* Keeps those of some sorted numbers that are in a list as well. */
static uint32_t keep_common(steps_t steps, uint32_t *out, uint32_t count) {
    uint32_t kept = 0, next = 0;
    while (next < count && step(&steps)) {
        while (next < count && out[next] < steps.number)
            next++;
        if (next < count && out[next] == steps.number)
            out[kept++] = out[next++];
    }
    return kept;
}

enum { MOST_LISTS = 64 };

static int by_size(const void *one, const void *other) {
    uint32_t a = ((const steps_t *)one)->count, b = ((const steps_t *)other)->count;
    return (a > b) - (a < b);
}

/* The files that hold two bytes in a row, and behind them any other. */
static int64_t find_pair(const void *from, lookup_t *lookup, uint32_t next, uint32_t pair, uint32_t *out, uint32_t room) {
    uint8_t *among = calloc((size_t)next / 8 + 1, 1);
    uint32_t count = 0;
    steps_t steps;
    if (!among)
        return -1;
    for (uint32_t last = 0; last < 256; last++)
        if (lookup(from, pair << 8 | last, &steps))
            while (step(&steps) && steps.number < next)
                among[steps.number >> 3] |= (uint8_t)(1 << (steps.number & 7));
    for (uint32_t number = 0; number < next; number++)
        if (among[number >> 3] & 1 << (number & 7)) {
            if (count < room)
                out[count] = number;
            count++;
        }
    free(among);
    return count > room ? -1 : (int64_t)count;
}

int64_t find_literal(const void *from, lookup_t *lookup, uint32_t next, const uint8_t *text, size_t size, uint32_t *out,
                     uint32_t room) {
    steps_t lists[MOST_LISTS];
    size_t count = 0;
    if (size < 2)
        return -1;
    if (size == 2)
        return find_pair(from, lookup, next, (uint32_t)folded(text[0]) << 8 | folded(text[1]), out, room);
    uint32_t window = (uint32_t)folded(text[0]) << 8 | folded(text[1]);
    for (size_t at = 2; at < size && count < MOST_LISTS; at++) {
        window = (window << 8 | folded(text[at])) & (TRIGRAMS - 1);
        if (!lookup(from, window, &lists[count++]))
            return 0;
    }
    qsort(lists, count, sizeof *lists, by_size);
    if (lists[0].count > room)
        return -1;
    uint32_t kept = read_all(lists[0], out);
    for (size_t at = 1; at < count && kept; at++)
        if (lists[at].bytes != lists[at - 1].bytes)
            kept = keep_common(lists[at], out, kept);
    return kept;
}

int64_t trigram_find(const index_t *index, const uint8_t *text, size_t size, uint32_t *out, uint32_t room) {
    return find_literal(index, look_up, index->next, text, size, out, room);
}

/* Bytes that the index takes, about. */
uint64_t trigram_memory(const index_t *index) { return index->memory; }
