/* An index that is not added to any more: one block of bytes, a third of the size, which several processes may map.
 *
 * Whatever the bytes are, nothing outside of them is read, and no number is found that is not below that of texts; so a
 * block may come from a file.
 */
#include "postings.h"

/* The block: this, then of each trigram's first half where its lists begin (FIRSTS words), where each list's bytes
 * begin (lists + 1 words), each list's second half of its trigram (2 bytes each, in order), and the bytes.  Each list
 * begins with its length, seven bits a byte. */
typedef struct {
    uint32_t magic, texts, lists, bytes;
} head_t;

enum { MOST_SEALED = 1 << 24, MAGIC = 0x31535446, HALF = 12, HALVES = 1 << HALF, FIRSTS = HALVES + 1, LONGEST_COUNT = 5 };

typedef struct {
    head_t head;
    const uint8_t *firsts, *starts, *seconds, *bytes;
} sealed_t;

static uint32_t word(const uint8_t *words, uint32_t at) {
    uint32_t found;
    memcpy(&found, words + 4 * (size_t)at, sizeof found);
    return found;
}

static uint32_t half(const uint8_t *halves, uint32_t at) {
    uint16_t found;
    memcpy(&found, halves + 2 * (size_t)at, sizeof found);
    return found;
}

static uint64_t size_of(const head_t *head) {
    return sizeof *head + 4 * (uint64_t)FIRSTS + 4 * ((uint64_t)head->lists + 1) + 2 * (uint64_t)head->lists + head->bytes;
}

static int open_sealed(sealed_t *sealed, const uint8_t *block, uint64_t size) {
    if (size < sizeof sealed->head)
        return 0;
    memcpy(&sealed->head, block, sizeof sealed->head);
    if (sealed->head.magic != MAGIC || size_of(&sealed->head) != size || sealed->head.texts > MOST_SEALED)
        return 0;
    sealed->firsts = block + sizeof sealed->head;
    sealed->starts = sealed->firsts + 4 * (size_t)FIRSTS;
    sealed->seconds = sealed->starts + 4 * ((size_t)sealed->head.lists + 1);
    sealed->bytes = sealed->seconds + 2 * (size_t)sealed->head.lists;
    return 1;
}

/* The numbers of one list; none where the bytes are no list. */
static steps_t list_at(const sealed_t *sealed, uint32_t at) {
    uint32_t start = word(sealed->starts, at), end = word(sealed->starts, at + 1), count = 0;
    steps_t none = {sealed->bytes, 0, 0, 0, FIRST_LOW, 0, 0, 0};
    if (start > end || end > sealed->head.bytes)
        return none;
    for (uint32_t shift = 0; shift < 7 * LONGEST_COUNT && start < end; shift += 7) {
        uint8_t byte = sealed->bytes[start++];
        count |= (uint32_t)((uint64_t)(byte & 127) << shift);
        if (byte < 128)
            return (steps_t){sealed->bytes + start, end - start, 0, 0, FIRST_LOW, 0,
                             count <= sealed->head.texts ? count : 0, sealed->head.texts};
    }
    return none;
}

static int look_up_sealed(const void *from, uint32_t trigram, steps_t *steps) {
    const sealed_t *sealed = from;
    uint32_t low = word(sealed->firsts, trigram >> HALF), high = word(sealed->firsts, (trigram >> HALF) + 1);
    uint32_t wanted = trigram & (HALVES - 1);
    if (high > sealed->head.lists)
        return 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, found = half(sealed->seconds, middle);
        if (found == wanted) {
            *steps = list_at(sealed, middle);
            return 1;
        }
        if (found < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* As `trigram_find`; -1 also where the bytes are no block. */
int64_t sealed_find(const uint8_t *block, uint64_t size, const uint8_t *text, size_t length, uint32_t *out, uint32_t room) {
    sealed_t sealed;
    if (!open_sealed(&sealed, block, size))
        return -1;
    return find_literal(&sealed, look_up_sealed, sealed.head.texts, text, length, out, room);
}

/* How many texts are in a block; -1 where the bytes are none. */
int64_t sealed_texts(const uint8_t *block, uint64_t size) {
    sealed_t sealed;
    return open_sealed(&sealed, block, size) ? (int64_t)sealed.head.texts : -1;
}

/* What is written: lists as they come, and where they are. */
typedef struct {
    uint8_t *list; /* the one at hand: as many bytes as it may need */
    uint32_t *starts;
    uint16_t *seconds;
    uint32_t firsts[FIRSTS];
    head_t head;
    uint64_t used;
    uint8_t *out;
    uint64_t room;
} writer_t;

enum { MOST_BYTES_EACH = 8 };

/* The numbers that those of a list stand for now. */
typedef struct {
    uint32_t used, low, last, files;
} row_t;

static void renumber(writer_t *writer, row_t *row, steps_t steps, const uint32_t *numbers, uint32_t count) {
    while (step(&steps)) {
        uint32_t number = steps.number < count ? numbers[steps.number] : UINT32_MAX;
        if (number >= writer->head.texts || (row->files && number <= row->last))
            continue;
        uint64_t gap = (row->files ? number - row->last - 1 : number) + ((uint64_t)1 << row->low);
        row->used = put_gap(writer->list, MOST_BYTES_EACH * (writer->head.texts + 1), row->used, row->low, gap);
        row->last = number;
        row->files++;
        row->low = low_bits(row->low, number, row->files);
    }
}

static void put_list(writer_t *writer, uint32_t trigram, const row_t *row) {
    if (!row->files)
        return;
    uint8_t count[LONGEST_COUNT];
    uint32_t wide = 0, bytes = (row->used + 7) / 8;
    for (uint32_t left = row->files; left || !wide; left >>= 7)
        count[wide++] = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
    if (writer->used + wide + bytes <= writer->room) {
        memcpy(writer->out + writer->used, count, wide);
        memcpy(writer->out + writer->used + wide, writer->list, bytes);
    }
    writer->starts[writer->head.lists] = (uint32_t)writer->used;
    writer->seconds[writer->head.lists++] = trigram & (HALVES - 1);
    writer->firsts[(trigram >> HALF) + 1] = writer->head.lists;
    writer->used += wide + bytes;
}

static int by_trigram(const void *one, const void *other) {
    uint32_t a = (*(list_t *const *)one)->trigram, b = (*(list_t *const *)other)->trigram;
    return (a > b) - (a < b);
}

/* The lists of a block and of an index, merged in the order of their trigrams. */
static void merge(writer_t *writer, const sealed_t *sealed, const list_t **lists, uint32_t added, const uint32_t *numbers,
                  uint32_t count) {
    uint32_t first = 0, next = 0, at = 0;
    while (at < added || next < sealed->head.lists) {
        uint32_t trigram = at < added ? lists[at]->trigram : UINT32_MAX, before = UINT32_MAX;
        if (next < sealed->head.lists) {
            while (first < HALVES - 1 && word(sealed->firsts, first + 1) <= next)
                first++;
            before = first << HALF | (half(sealed->seconds, next) & (HALVES - 1));
        }
        row_t row = {0, FIRST_LOW, 0, 0};
        uint32_t here = before < trigram ? before : trigram;
        if (before == here)
            renumber(writer, &row, list_at(sealed, next++), numbers, count);
        if (trigram == here)
            renumber(writer, &row, steps_of(lists[at++]), numbers, count);
        put_list(writer, here, &row);
    }
}

/* Writes a block with the texts of another (none: NULL) and of an index behind it, whose numbers follow its.
 *
 * `numbers` says of each number which it is now, in the same order, UINT32_MAX for what is left out; there are `texts`
 * of them now.  Returns the size of the block, which is written only if there is room for it; 0 where memory ran out or
 * there is too much. */
uint64_t trigram_seal(const uint8_t *block, uint64_t size, const index_t *index, const uint32_t *numbers, uint32_t count,
                      uint32_t texts, uint8_t *out, uint64_t room) {
    sealed_t sealed;
    memset(&sealed, 0, sizeof sealed);
    if (texts > MOST_SEALED || (block && !open_sealed(&sealed, block, size)))
        return 0;
    writer_t *writer = calloc(1, sizeof *writer);
    uint64_t most = (uint64_t)sealed.head.lists + index->used + 1, needed = 0;
    const list_t **lists = malloc((index->used + 1) * sizeof *lists);
    if (writer) {
        writer->head = (head_t){MAGIC, texts, 0, 0};
        writer->list = malloc((size_t)MOST_BYTES_EACH * (texts + 1));
        writer->starts = malloc(most * sizeof *writer->starts);
        writer->seconds = malloc(most * sizeof *writer->seconds);
    }
    if (writer && lists && writer->list && writer->starts && writer->seconds) {
        for (uint32_t at = 0; at < index->used; at++)
            lists[at] = &index->lists[at];
        qsort(lists, index->used, sizeof *lists, by_trigram);
        // The bytes come last in the block, and how many lists there are is known at the end: they are moved then.
        writer->out = out;
        writer->room = room;
        merge(writer, &sealed, lists, index->used, numbers, count);
        writer->starts[writer->head.lists] = (uint32_t)writer->used;
        for (uint32_t at = 1; at < FIRSTS; at++)
            if (writer->firsts[at] < writer->firsts[at - 1])
                writer->firsts[at] = writer->firsts[at - 1];
        writer->head.bytes = (uint32_t)writer->used;
        needed = writer->used > UINT32_MAX ? 0 : size_of(&writer->head);
        if (needed && needed <= room) {
            size_t words = 4 * ((size_t)writer->head.lists + 1), halves = 2 * (size_t)writer->head.lists;
            memmove(out + needed - writer->used, out, writer->used);
            memcpy(out, &writer->head, sizeof writer->head);
            memcpy(out + sizeof writer->head, writer->firsts, sizeof writer->firsts);
            memcpy(out + sizeof writer->head + sizeof writer->firsts, writer->starts, words);
            memcpy(out + sizeof writer->head + sizeof writer->firsts + words, writer->seconds, halves);
        }
    }
    if (writer) {
        free(writer->list);
        free(writer->starts);
        free(writer->seconds);
    }
    free(writer);
    free(lists);
    return needed;
}
