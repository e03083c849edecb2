/* Looks for literals by two bytes of each, in blocks of one width; included once for each width.
 *
 * `SEEK` is the name, `BLOCK` the width, `block_t` its type, `MASK` what makes a bit of each byte that is not 0.
 * Of `*at` on as many whole blocks are looked at as `room` has behind it; then `*at` is behind them.  A literal
 * stands only where it ends before `size`. */
ATTRIBUTE static size_t SEEK(const literal_t *group, int count, const uint8_t *text, size_t size, size_t room,
                             size_t reach, size_t *at, int strict, int *which) {
    block_t rare[MOST_AT_ONCE][4];
    for (int one = 0; one < count; one++) {
        memset(&rare[one][0], group[one].bytes[group[one].first], BLOCK);
        memset(&rare[one][1], group[one].bytes[group[one].second], BLOCK);
        memset(&rare[one][2], group[one].masks[0], BLOCK);
        memset(&rare[one][3], group[one].masks[1], BLOCK);
    }
    for (; *at + reach + BLOCK <= room; *at += BLOCK) {
        block_t any, here, other;
        memset(&any, 0, BLOCK);
        if (strict) {
            memcpy(&here, text + *at, BLOCK);
            any = (block_t)(here == 0) | (block_t)(here == 27);
            if (strict == NOT_ASCII)
                any |= (block_t)(here > 127);
        }
        for (int one = 0; one < count; one++) {
            memcpy(&here, text + *at + group[one].first, BLOCK);
            memcpy(&other, text + *at + group[one].second, BLOCK);
            any |= (block_t)((here | rare[one][2]) == rare[one][0]) & (block_t)((other | rare[one][3]) == rare[one][1]);
        }
        for (uint32_t bits = MASK(any); bits; bits &= bits - 1) {
            size_t place = *at + (size_t)__builtin_ctz(bits);
            for (int one = 0; one < count; one++)
                if (place + group[one].length <= size && stands_at(&group[one], text + place)) {
                    *which = one;
                    return place;
                }
            if (strict && place < size && !is_plain(text[place], strict)) {
                *which = count;
                return place;
            }
        }
    }
    return SIZE_MAX;
}
