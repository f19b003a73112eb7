/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qrdma_exporter.h"
#include "stamp.h"

#define WORDS (PAGE / sizeof(uint64_t))

void stamp_pages(void *memory, uint64_t seed, uint64_t index, uint64_t count)
{
	volatile uint64_t *word = memory;
	uint64_t page, i;

	for (page = index; page < index + count; page++) {
		uint64_t value = qrdma_exporter_stamp_base(seed, page);

		for (i = 0; i < WORDS; i++)
			*word++ = value + i;
	}
}

static uint64_t first_wrong(const volatile uint64_t *word, uint64_t value)
{
	uint64_t i;

	for (i = 0; i < WORDS; i++)
		if (word[i] != value + i)
			break;
	return i;
}

uint64_t stamp_check(const void *memory, uint64_t seed, uint64_t index,
		     uint64_t count, uint64_t *wrong)
{
	const volatile uint64_t *word = memory;
	uint64_t page, bad = 0;

	for (page = 0; page < count; page++, word += WORDS) {
		uint64_t value = qrdma_exporter_stamp_base(seed, index + page);
		uint64_t i = first_wrong(word, value);

		if (i < WORDS && !bad++ && wrong)
			*wrong = page * PAGE + i * sizeof(*word);
	}
	return bad;
}

bool stamp_check_either(const void *page, uint64_t seed, uint64_t other,
			uint64_t index)
{
	const volatile uint64_t *word = page;
	uint64_t a = qrdma_exporter_stamp_base(seed, index);
	uint64_t b = qrdma_exporter_stamp_base(other, index);
	uint64_t i;

	for (i = 0; i < WORDS; i++) {
		uint64_t value = word[i];

		if (value != a + i && value != b + i)
			return false;
	}
	return true;
}

uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return qrdma_exporter_stamp_base(*state, 0);
}

uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return random_next(state) % limit;
}
