/*
 * qrdma engine fuzzing: the input as a program.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-common.h"

void fuzz_bytes(FuzzInput *input, void *bytes, size_t length)
{
    size_t there = MIN(length, input->left);

    memset(bytes, 0, length);
    if (there) {
        memcpy(bytes, input->bytes, there);
    }
    input->bytes += there;
    input->left -= there;
}

uint8_t fuzz_u8(FuzzInput *input)
{
    uint8_t value;

    fuzz_bytes(input, &value, sizeof(value));
    return value;
}

uint16_t fuzz_u16(FuzzInput *input)
{
    uint16_t value;

    fuzz_bytes(input, &value, sizeof(value));
    return qrdma_le16(value);
}

uint32_t fuzz_u32(FuzzInput *input)
{
    uint32_t value;

    fuzz_bytes(input, &value, sizeof(value));
    return qrdma_le32(value);
}

uint64_t fuzz_u64(FuzzInput *input)
{
    uint64_t value;

    fuzz_bytes(input, &value, sizeof(value));
    return qrdma_le64(value);
}

uint8_t fuzz_below(FuzzInput *input, unsigned limit)
{
    return fuzz_u8(input) % limit;
}

bool fuzz_one_in(FuzzInput *input, unsigned n)
{
    return fuzz_u8(input) % n == n - 1;
}

uint32_t fuzz_number(FuzzInput *input, uint32_t first, unsigned count)
{
    uint8_t choice = fuzz_u8(input);

    return choice >= 0xf8 ? fuzz_u32(input) : first + choice % count;
}

void fuzz_spoil(FuzzInput *input, void *bytes, size_t length)
{
    unsigned times = fuzz_u8(input);

    /* Most bytes mean: leave it as it is. */
    for (times = times < 0xc0 ? 0 : times % 4 + 1; times; times--) {
        size_t offset = fuzz_u8(input) % length;
        size_t count = 1u << fuzz_below(input, 4);

        fuzz_bytes(input, (uint8_t *)bytes + offset,
                   MIN(count, length - offset));
    }
}
