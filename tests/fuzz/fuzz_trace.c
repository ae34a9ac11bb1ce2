/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as a trace: read, made anonymous, replayed, drawn. */
#include <stdio.h>
#include <stdlib.h>

#include "trace-plot.h"
#include "trace-replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_and_hide(FILE *f)
{
	static const unsigned char salt[TRACE_SALT_BYTES] = "salt";
	struct trace_reader *r = trace_reader_new(f);
	struct trace_why why;
	enum trace_kind kind;
	json_t *j;

	while (trace_read(r, &j, &kind, &why) > 0) {
		if (!trace_anonymize(j, salt))
			abort();
		json_decref(j);
	}
	trace_reader_free(r);
}

static void on_step(const struct replay_step *s, void *userdata)
{
	(void)userdata;
	for (size_t i = 0; i < s->n_replayed; i++) {
		json_t *j = trace_decision_json(&s->replayed[i]);

		if (!j)
			abort();
		json_decref(j);
	}
}

static void draw(FILE *f)
{
	struct trace_why why;
	struct plot *p;
	char *svg = NULL;
	size_t size;
	FILE *out;

	if (plot_read(f, &p, &why) < 0)
		return;
	out = open_memstream(&svg, &size);
	plot_draw(p, out);
	fclose(out);
	free(svg);
	plot_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay_summary sum;
	struct trace_why why;
	FILE *f;

	if (size == 0)
		return 0;
	f = fmemopen((void *)data, size, "r");
	if (!f)
		return 0;
	read_and_hide(f);
	rewind(f);
	replay_run(f, NULL, on_step, NULL, &sum, &why);
	rewind(f);
	draw(f);
	fclose(f);
	return 0;
}
