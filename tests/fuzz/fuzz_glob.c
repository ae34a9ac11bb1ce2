/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pattern and path, split at the first NUL or newline: no read past either end,
 * no blow-up (libFuzzer's -timeout), and a path always matches itself quoted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"

/* @path as a pattern of sets of one, which stand for any byte but a slash. */
static char *quoted(const char *path)
{
	char *out = malloc(3 * strlen(path) + 1), *p = out;

	for (; *path; path++) {
		if (strchr("*?[", *path)) {
			*p++ = '[';
			*p++ = *path;
			*p++ = ']';
		} else {
			*p++ = *path;
		}
	}
	*p = '\0';
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 2), *split, *itself;

	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	split = text + strcspn(text, "\n");
	if (*split)
		*split = '\0';
	if (split + 1 > text + size)
		split = text + size;
	else
		split++;
	(void)glob_check(text);
	(void)glob_specificity(text);
	(void)glob_match(text, split);
	itself = quoted(split);
	if (!glob_match(itself, split) || !glob_match("**", split))
		abort();
	free(itself);
	free(text);
	return 0;
}
