/* Random texts, needs and folders for the library in C (`native`), compared with the plainest way to find the same.
 *
 * Built with sanitizers; arguments: a seed and how many rounds.  Run in a folder with the files a, b and link. */
#include <stdint.h>

static uint64_t state;

static uint32_t draw(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

// Both widths by turns.
#define WIDER (draw(2) && __builtin_cpu_supports("avx2"))
#include "trigram.c"
#include "sealed.c"
#include "literals.c"
#include "files.c"

static const char *const pieces[] = {"abc", "foo", "ab", "FOO", "bafo", " ", "k", "oo", "\n", "\xe2\x84\xaa",
                                     "\xc5\xbf", "s", "K", "S", "\r\n", "ba\xc3\xa9", "\n\n", "f", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};

/* A block of exactly its size, so that each byte behind it is noticed. */
static uint8_t *block(size_t size) {
    uint8_t *made = malloc(size ? size : 1);
    if (!made)
        exit(90);
    return made;
}

static uint8_t *text_of(size_t *size) {
    size_t room = draw(4) ? draw(90) : draw(3000), used = 0;
    uint8_t *text = block(room);
    int bytes = !draw(3);
    while (used < room) {
        const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
        size_t length = strlen(piece);
        if (bytes || length > room - used)
            text[used++] = (uint8_t)(bytes ? draw(256) : 'o');
        else
            memcpy(text + used, piece, length), used += length;
    }
    *size = room;
    return text;
}

static uint8_t *needs_of(size_t *size, uint32_t groups, int fold) {
    uint8_t *needs = block(8192), *exact;
    size_t used = 0;
    for (uint32_t group = 0; group < groups; group++) {
        for (uint32_t one = draw(3) + 1; one; one--) {
            char literal[256] = "";
            for (uint32_t count = draw(40) ? draw(2) + 1 : 50; count; count--)
                strcat(literal, pieces[draw(6)]);
            uint32_t length = (uint32_t)strlen(literal);
            for (uint32_t at = 0; fold && at < length; at++)
                literal[at] = (char)folded((uint8_t)literal[at]);
            memcpy(needs + used, &length, 4);
            memcpy(needs + used + 4, literal, length);
            used += 4 + length;
        }
        memset(needs + used, 0, 4);
        used += 4;
    }
    exact = block(used);
    memcpy(exact, needs, used);
    free(needs);
    *size = used;
    return exact;
}

static int plainly(const uint8_t *text, size_t size, const uint8_t *needs, size_t needs_size, int fold) {
    for (size_t at = 0; at < needs_size;) {
        int met = 0;
        for (;;) {
            uint32_t length;
            memcpy(&length, needs + at, 4);
            at += 4;
            if (!length)
                break;
            for (size_t from = 0; from + length <= size; from++) {
                size_t same = 0;
                while (same < length &&
                       (fold ? folded(text[from + same]) : text[from + same]) == needs[at + same])
                    same++;
                met |= same == length;
            }
            at += length;
        }
        if (!met)
            return 0;
    }
    return 1;
}

/* Whether a text is UTF-8, by the code points. */
static int decodes(const uint8_t *text, size_t size) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t at = 0; at < size;) {
        uint8_t first = text[at];
        size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
        if (!length || length > size - at)
            return 0;
        uint32_t point = length == 1 ? first : first & (0xff >> (length + 1));
        for (size_t more = 1; more < length; more++) {
            if (text[at + more] >> 6 != 2)
                return 0;
            point = point << 6 | (text[at + more] & 63);
        }
        if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            return 0;
        at += length;
    }
    return 1;
}

/* Whether no byte of a text is higher, nor a zero or an escape, and it holds none of the literals. */
static int plain(const uint8_t *text, size_t size, const uint8_t *words, size_t words_size, uint8_t highest) {
    for (size_t at = 0; at < size; at++)
        if (!text[at] || text[at] == 27 || text[at] > highest)
            return 0;
    for (size_t at = 0; at < words_size;) {
        uint32_t length;
        memcpy(&length, words + at, 4);
        at += 4;
        for (size_t from = 0; length && from + length <= size; from++)
            if (!memcmp(text + from, words + at, length))
                return 0;
        at += length;
    }
    return 1;
}

static void check(int good, int code) {
    if (!good)
        exit(code);
}

/* Literals are found at the first place where one stands, from anywhere on. */
static void first_place(const uint8_t *text, size_t size, const needs_t *needs) {
    size_t from = draw((uint32_t)size + 2), place = from;
    int strict = (int)draw(3), which = -1, count = needs->ends[0], met = -1;
    for (; place < size; place++) {
        for (int one = 0; one < count && met < 0; one++)
            if (needs->literals[one].length <= size - place && stands_at(&needs->literals[one], text + place))
                met = one;
        if (met < 0 && strict && !is_plain(text[place], strict))
            met = count;
        if (met >= 0)
            break;
    }
    size_t found = seek_any(needs->literals, count, text, size, from, strict, &which);
    check(found == (place < size ? place : SIZE_MAX), 19);
    check(found == SIZE_MAX || which == met, 21);
}

/* The lines that are found are those that hold what is needed. */
static void lines(void) {
    enum { MOST = 7 };
    uint8_t *texts[MOST];
    const uint8_t *given[MOST];
    uint64_t sizes[MOST];
    int fold = (int)draw(2);
    size_t needs_size;
    uint8_t *needs = needs_of(&needs_size, draw(3) + 1, fold);
    uint32_t count = draw(MOST) + 1, room = draw(2) ? 400 : draw(12) + 1;
    size_t odd_size;
    uint8_t *odd = needs_of(&odd_size, draw(3) + 1, 0);
    static needs_t parts;
    static wanted_t wanted, odder;
    needs_of_bytes(&parts, needs, needs_size, fold);
    want(&wanted, needs, needs_size, fold, odd, odd_size);
    want(&odder, needs, needs_size, fold, NULL, 0);
    for (uint32_t one = 0; one < count; one++) {
        size_t size;
        given[one] = texts[one] = text_of(&size);
        sizes[one] = size;
    }
    for (uint32_t first = 0; first < count;) {
        line_t *out = (line_t *)block(room * sizeof *out);
        uint32_t done, found = find_lines(given + first, sizes + first, count - first, needs, needs_size, fold, out, room, &done);
        check(found <= room && done && first + done <= count, 10);
        uint32_t next = 0;
        for (uint32_t one = 0; one < done; one++) {
            const uint8_t *text = texts[first + one];
            size_t size = sizes[first + one];
            if (next < found && out[next].text == one && out[next].start == UNSURE) {
                next++;
                continue;
            }
            check(!fold || !holds_odd_cases(text, size), 11);
            for (size_t at = 0; at < size;) {
                const uint8_t *behind = memchr(text + at, '\n', size - at);
                size_t end = behind ? (size_t)(behind - text) : size;
                int listed = next < found && out[next].text == one && out[next].start == at;
                check(listed == plainly(text + at, end - at, needs, needs_size, fold), 12);
                if (listed) {
                    check(out[next].end == end && out[next].hit >= at && out[next].hit < end, 13);
                    next++;
                }
                at = end + 1;
            }
            int holds = plainly(text, size, needs, needs_size, fold);
            check(holds_all(text, size, &parts, 0) == holds, 14);
            check(is_odd(&wanted, text, size, NOT_ASCII) == !plain(text, size, odd, odd_size, 127), 16);
            check(is_utf8(text, size) == decodes(text, size), 22);
            holds |= fold && holds_odd_cases(text, size);
            check(judge(&odder, text, size) == (holds ? WANTED : LACKING), 17);
            int64_t judged = judge(&wanted, text, size);
            if (holds)
                check(judged == WANTED, 18);
            else if (plain(text, size, odd, odd_size, 127))
                check(judged == LACKING, 23);
            else if (plain(text, size, odd, odd_size, 255))
                check(judged == (decodes(text, size) ? LACKING_IN_UTF8 : WANTED), 24);
            else
                check(judged == WANTED, 25);
            first_place(text, size, &parts);
        }
        check(next == found, 15);
        first += done;
        free(out);
    }
    for (uint32_t one = 0; one < count; one++)
        free(texts[one]);
    free(needs);
    free(odd);
}

/* Needs that are no needs are not read beyond their end. */
static void broken(void) {
    size_t size, needs_size = draw(40);
    uint8_t *text = text_of(&size), *needs = block(needs_size);
    const uint8_t *given = text;
    uint64_t wide = size;
    line_t out[3];
    uint32_t done;
    for (size_t at = 0; at < needs_size; at++)
        needs[at] = (uint8_t)(draw(3) ? draw(4) : draw(256));
    static wanted_t wanted;
    want(&wanted, needs, needs_size, (int)draw(2), needs, draw(2) ? needs_size : 0);
    judge(&wanted, text, size);
    check(find_lines(&given, &wide, 1, needs, needs_size, (int)draw(2), out, 3, &done) <= 3, 20);
    free(text);
    free(needs);
}

/* What was added is found, and after it has rested as well. */
static void adding(void) {
    index_t *index = trigram_new();
    check(index != NULL, 30);
    uint32_t most = draw(300) + 1, number = 0, far = draw(3) ? 20 : 2;
    for (uint32_t added = 0; added < most; added++, number += draw(far) ? 1 + draw(3) : draw(1 << draw(19))) {
        number += index->next > number;
        size_t size;
        uint8_t *text = text_of(&size);
        check(trigram_add(index, number, text, size), 31);
        uint32_t *out = (uint32_t *)block(most * sizeof *out);
        size_t from = size > 20 ? size / 2 : 0, wide = size > 20 ? 2 + draw(9) : size;
        int64_t count = trigram_find(index, text + from, wide, out, most);
        // A pair is found by the byte behind it, which need not be there at the end.
        int there = wide < 3 && size <= 20 ? 1 : count < 0 ? wide < 2 : 0;
        for (int64_t at = 0; at < count; at++) {
            check(out[at] <= number && (!at || out[at] > out[at - 1]), 32);
            there |= out[at] == number;
        }
        check(there, 33);
        check(!count || trigram_find(index, text + from, wide, out, 0) <= 0, 34);
        if (!draw(40))
            trigram_rest(index);
        free(text);
        free(out);
    }
    check(!trigram_add(index, 0, (const uint8_t *)"again", 5), 35);
    check(trigram_memory(index) > 0, 36);
    trigram_free(index);
}

enum { MOST_TEXTS = 60 };

/* A block of some texts of another and of an index; NULL where there is none.  Exactly of its size. */
static uint8_t *seal(const uint8_t *before, uint64_t before_size, const index_t *index, const uint32_t *numbers,
                     uint32_t count, uint32_t texts, uint64_t *size) {
    uint64_t room = draw(2) ? draw(60000) : 0;
    uint8_t *out = block(room);
    *size = trigram_seal(before, before_size, index, numbers, count, texts, out, room);
    if (*size <= room)
        return out;
    free(out);
    out = block(*size);
    check(trigram_seal(before, before_size, index, numbers, count, texts, out, *size) == *size, 50);
    return out;
}

/* What was sealed is found as it was before, by its new numbers, also when more is added; and of bytes that are no
 * block nothing is read beyond their end. */
static void sealing(void) {
    uint8_t *sealed = NULL;
    uint64_t size = 0;
    uint8_t *texts[MOST_TEXTS];
    size_t sizes[MOST_TEXTS];
    uint32_t numbers[MOST_TEXTS], held = 0;
    for (uint32_t turn = draw(3) + 1; turn; turn--) {
        index_t *index = trigram_new();
        check(index != NULL, 51);
        uint32_t count = 0;
        for (uint32_t more = draw(MOST_TEXTS / 3); more; more--, held++) {
            texts[held] = text_of(&sizes[held]);
            check(trigram_add(index, held, texts[held], sizes[held]), 52);
        }
        for (uint32_t one = 0; one < held; one++) {
            numbers[one] = draw(5) ? count : UINT32_MAX;
            if (numbers[one] != UINT32_MAX) {
                texts[count] = texts[one], sizes[count++] = sizes[one];
            } else
                free(texts[one]);
        }
        uint64_t now;
        uint8_t *next = seal(sealed, size, index, numbers, held, count, &now);
        check(now && sealed_texts(next, now) == count, 53);
        free(sealed);
        trigram_free(index);
        sealed = next, size = now, held = count;
        for (uint32_t one = 0; one < held; one++) {
            uint32_t out[MOST_TEXTS], there = 0;
            size_t from = sizes[one] > 20 ? sizes[one] / 2 : 0, wide = sizes[one] > 20 ? 2 + draw(9) : sizes[one];
            int64_t found = sealed_find(sealed, size, texts[one] + from, wide, out, MOST_TEXTS);
            if (found < 0 || (wide < 3 && sizes[one] <= 20))
                continue;
            for (uint32_t other = 0; other < held; other++) {
                // It has to be found in each that holds it, but for a pair at the end.
                int holds = 0;
                for (size_t at = 0; wide > 2 && at + wide <= sizes[other] && !holds; at++) {
                    size_t same = 0;
                    while (same < wide && folded(texts[other][at + same]) == folded(texts[one][from + same]))
                        same++;
                    holds = same == wide;
                }
                while (there < found && out[there] < other)
                    there++;
                check(!holds || (there < found && out[there] == other), 54);
            }
            check(!found || out[found - 1] < held, 55);
        }
    }
    for (uint32_t damage = 0; damage < 20; damage++) {
        uint32_t out[MOST_TEXTS];
        uint64_t cut = draw(3) ? size : draw((uint32_t)size + 1), other;
        uint8_t *bad = block(cut);
        memcpy(bad, sealed, cut);
        for (uint32_t bytes = draw(9) + 1; bytes && cut; bytes--) {
            // The head, where lists begin, or the lists.
            uint64_t at = draw(3) ? draw(2) && cut > 17000 ? 16400 + draw((uint32_t)cut - 16400) : draw((uint32_t)cut) : draw(16) % cut;
            bad[at] = (uint8_t)(draw(2) ? draw(256) : 255);
        }
        int64_t many = sealed_texts(bad, cut);
        for (uint32_t one = 0; one < held; one++) {
            int64_t found = sealed_find(bad, cut, texts[one], sizes[one] < 9 ? sizes[one] : 2 + draw(7), out, MOST_TEXTS);
            check(found <= MOST_TEXTS && (found <= 0 || out[found - 1] < many), 56);
        }
        index_t *index = trigram_new();
        uint8_t *next = seal(bad, cut, index, numbers, draw(MOST_TEXTS), draw(MOST_TEXTS), &other);
        free(next);
        trigram_free(index);
        free(bad);
    }
    for (uint32_t one = 0; one < held; one++)
        free(texts[one]);
    free(sealed);
}

/* Files are read into as much room as there is, each whole or not at all. */
static void reading(int folder) {
    static const char names[] = "a\0b\0none\0link\0.\0a";
    const char *at = names, *end = names + sizeof names;
    uint32_t left = 6;
    size_t room = draw(3000) + 1, needs_size = 0;
    int fold = (int)draw(2);
    size_t odd_size = 0;
    uint8_t *out = block(room), *needs = needs_of(&needs_size, draw(3), fold);
    uint8_t *odd = needs_of(&odd_size, draw(2), 0);
    while (left) {
        record_t *records = (record_t *)block(left * sizeof *records);
        uint32_t done = read_files(folder, 0x0c, at, left, needs, needs_size, fold, odd, odd_size, out, room, records);
        check(done, 40);
        for (uint32_t one = 0; one < done; one++) {
            check(at < end && (records[one].size < 0 || (size_t)records[one].size < room), 41);
            at += strlen(at) + 1;
        }
        left -= done;
        free(records);
    }
    free(out);
    free(needs);
    free(odd);
}

int main(int count, char **words) {
    check(count == 3, 80);
    state = strtoull(words[1], NULL, 10) * 2654435761u + 88172645463325252u;
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    for (long rounds = strtol(words[2], NULL, 10); rounds > 0; rounds--) {
        lines();
        broken();
        if (!(rounds % 20))
            adding();
        if (!(rounds % 40))
            sealing();
        reading(folder);
    }
    return 0;
}
