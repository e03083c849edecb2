/* An inverted index of trigrams: which files hold which three bytes in a row.
 *
 * Letters of ASCII are folded to lower case.  Files have numbers that only grow, so each posting list is a
 * row of differences as varints.  Nothing is ever removed: a file that changed gets a new number, and who
 * keeps the numbers builds the index anew when too many of them stand for nothing.
 *
 * Not safe for several threads at once; the caller holds a lock.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t key;   /* trigram + 1; 0 is free */
    uint32_t files; /* how many numbers are in it */
    uint32_t last;  /* the last of them */
    uint32_t used, room;
    uint8_t *bytes;
} list_t;

typedef struct {
    list_t *lists;
    uint32_t room, used; /* room is a power of two */
    uint64_t memory;
    uint8_t *seen;    /* a bit for each trigram: whether the file at hand has it */
    uint32_t *found;  /* the trigrams of the file at hand */
    uint32_t wide;    /* how many fit into it */
    uint32_t next;    /* the lowest number for the next file */
} index_t;

enum { TRIGRAMS = 1 << 24, FIRST_LISTS = 1 << 14, FIRST_BYTES = 8, FIRST_FOUND = 1 << 12 };

static uint8_t folded(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 32 : byte; }

static uint32_t place_of(const list_t *lists, uint32_t room, uint32_t key) {
    uint32_t at = (key * 2654435761u) & (room - 1);
    while (lists[at].key && lists[at].key != key)
        at = (at + 1) & (room - 1);
    return at;
}

static int grow(index_t *index) {
    uint32_t room = index->room * 2;
    list_t *lists = calloc(room, sizeof *lists);
    if (!lists)
        return 0;
    for (uint32_t at = 0; at < index->room; at++)
        if (index->lists[at].key)
            lists[place_of(lists, room, index->lists[at].key)] = index->lists[at];
    index->memory += (uint64_t)(room - index->room) * sizeof *lists;
    free(index->lists);
    index->lists = lists;
    index->room = room;
    return 1;
}

static int append(index_t *index, uint32_t trigram, uint32_t number) {
    if (index->used * 4 >= index->room * 3 && !grow(index))
        return 0;
    list_t *list = &index->lists[place_of(index->lists, index->room, trigram + 1)];
    if (!list->key) {
        list->key = trigram + 1;
        index->used++;
    }
    if (list->used + 5 > list->room) {
        uint32_t room = list->room ? list->room + list->room / 2 + 5 : FIRST_BYTES;
        uint8_t *bytes = realloc(list->bytes, room);
        if (!bytes)
            return 0;
        index->memory += room - list->room;
        list->bytes = bytes;
        list->room = room;
    }
    uint32_t step = list->files ? number - list->last : number;
    while (step >= 128) {
        list->bytes[list->used++] = (uint8_t)(step | 128);
        step >>= 7;
    }
    list->bytes[list->used++] = (uint8_t)step;
    list->last = number;
    list->files++;
    return 1;
}

index_t *trigram_new(void) {
    index_t *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->room = FIRST_LISTS;
    index->wide = FIRST_FOUND;
    index->lists = calloc(index->room, sizeof *index->lists);
    index->seen = calloc(TRIGRAMS / 8, 1);
    index->found = malloc(index->wide * sizeof *index->found);
    index->memory = index->room * sizeof *index->lists + TRIGRAMS / 8;
    if (index->lists && index->seen && index->found)
        return index;
    free(index->lists);
    free(index->seen);
    free(index->found);
    free(index);
    return NULL;
}

void trigram_free(index_t *index) {
    if (!index)
        return;
    for (uint32_t at = 0; at < index->room; at++)
        free(index->lists[at].bytes);
    free(index->lists);
    free(index->seen);
    free(index->found);
    free(index);
}

/* Adds a file; its number must be higher than all before.  Returns 1, or 0 when memory ran out: then the
 * file may be in the index in part, and its number must not be used. */
int trigram_add(index_t *index, uint32_t number, const uint8_t *text, size_t size) {
    if (number < index->next || number == UINT32_MAX)
        return 0;
    index->next = number + 1;
    if (size < 3)
        return 1;
    uint32_t count = 0;
    int good = 1;
    uint32_t window = (uint32_t)folded(text[0]) << 8 | folded(text[1]);
    for (size_t at = 2; at < size; at++) {
        window = (window << 8 | folded(text[at])) & (TRIGRAMS - 1);
        uint8_t bit = (uint8_t)(1 << (window & 7));
        if (index->seen[window >> 3] & bit)
            continue;
        if (count == index->wide) {
            uint32_t *wider = realloc(index->found, 2 * (size_t)index->wide * sizeof *wider);
            if (!wider) {
                good = 0;
                break;
            }
            index->found = wider;
            index->wide *= 2;
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

static uint32_t read_all(const list_t *list, uint32_t *out) {
    uint32_t number = 0, count = 0;
    for (uint32_t at = 0; at < list->used; count++) {
        uint32_t step = 0, shift = 0;
        uint8_t byte;
        do {
            byte = list->bytes[at++];
            step |= (uint32_t)(byte & 127) << shift;
            shift += 7;
        } while (byte & 128);
        number += step;
        out[count] = number;
    }
    return count;
}

/* Keeps those of some sorted numbers that are in a list as well. */
static uint32_t keep_common(const list_t *list, uint32_t *out, uint32_t count) {
    uint32_t number = 0, kept = 0, next = 0;
    for (uint32_t at = 0; at < list->used && next < count;) {
        uint32_t step = 0, shift = 0;
        uint8_t byte;
        do {
            byte = list->bytes[at++];
            step |= (uint32_t)(byte & 127) << shift;
            shift += 7;
        } while (byte & 128);
        number += step;
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

/* The files that hold every trigram of a literal of three bytes or more.  Writes at most `room` numbers;
 * returns how many there are, or -1 where they do not fit or the literal is too short. */
int64_t trigram_find(const index_t *index, const uint8_t *text, size_t size, uint32_t *out, uint32_t room) {
    const list_t *lists[MOST_LISTS];
    size_t count = 0;
    if (size < 3)
        return -1;
    uint32_t window = (uint32_t)folded(text[0]) << 8 | folded(text[1]);
    for (size_t at = 2; at < size && count < MOST_LISTS; at++) {
        window = (window << 8 | folded(text[at])) & (TRIGRAMS - 1);
        const list_t *list = &index->lists[place_of(index->lists, index->room, window + 1)];
        if (!list->key)
            return 0;
        lists[count++] = list;
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
