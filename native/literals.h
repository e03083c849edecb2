/* Looking for literals in texts, many at once. */
#ifndef LITERALS_H
#define LITERALS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Who calls says which version it was written for: goes up with each change of what a function takes or gives. */
enum { LIBRARY_VERSION = 5 };

static inline uint8_t folded(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 32 : byte; }

/* A literal, in lower case where case does not matter. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
    size_t first, second; /* where in it two bytes stand that are rare in texts */
    uint8_t masks[2];     /* the bit by which cases differ, where case does not matter */
    uint8_t fold;         /* whether it does not */
} literal_t;

enum { MOST_LITERALS = 64, MOST_GROUPS = 16 };

/* Groups of literals; of each group a text must hold one at least. */
typedef struct {
    literal_t literals[4 * MOST_LITERALS];
    int ends[MOST_GROUPS]; /* behind the last literal of each group */
    int groups;
    int doubtful; /* whether they could not be understood: then every text may be meant */
} needs_t;

/* Understands groups of literals: each literal behind its length, 0 behind each group.  Of many groups only the
 * first count. */
void needs_of_bytes(needs_t *needs, const uint8_t *bytes, size_t size, int fold);

/* Bytes that are looked for besides: those by which a text may be none or of an encoding with escapes, and those
 * beyond ASCII as well. */
enum { NOT_TEXT = 1, NOT_ASCII = 2 };

/* Where the first of some literals stands in a text, from an offset on, and which; SIZE_MAX where none does.
 *
 * `strict` is 0, or which bytes are looked for as well: for those `which` is `count`. */
size_t seek_any(const literal_t *group, int count, const uint8_t *text, size_t size, size_t at, int strict, int *which);

/* Whether a text is UTF-8, as strictly as Python reads it. */
int is_utf8(const uint8_t *text, size_t size);

/* Whether letters beyond ASCII stand in a text that are cases of letters of ASCII. */
int holds_odd_cases(const uint8_t *text, size_t size);

/* Whether a text holds of each group from `first` on one literal at least; what cannot be told, it does. */
int holds_all(const uint8_t *text, size_t size, const needs_t *needs, int first);

#endif
