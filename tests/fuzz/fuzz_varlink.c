/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests of a varlink client, from bytes to a checked structure, and what a
 * reply makes of the same bytes. Whatever is accepted must keep the promises
 * of varlink-wire.h, and must come back unchanged from its own text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "varlink-wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_request(const uint8_t *data, size_t size)
{
	struct varlink_request r;
	struct varlink_fault f = {NULL, NULL};
	size_t len = 0;
	char *text;
	json_t *again;

	if (varlink_request_parse((const char *)data, size, &r, &f) < 0) {
		MUST(f.parameter && f.reason);
		return;
	}
	MUST(json_is_object(r.root) && json_is_object(r.parameters));
	MUST(r.method && strlen(r.method) > 0 && strlen(r.method) <= VARLINK_METHOD_BYTES_MAX);
	MUST(!(r.more && r.oneway));
	text = varlink_reply_text(r.parameters, r.more, &len);
	MUST(text && len == strlen(text) + 1);
	again = json_loads(text, 0, NULL);
	MUST(json_is_object(json_object_get(again, "parameters")));
	MUST(json_object_size(json_object_get(again, "parameters")) ==
		json_object_size(r.parameters));
	json_decref(again);
	free(text);
	varlink_request_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request(data, size);
	return 0;
}
