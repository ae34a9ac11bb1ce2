/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cleanup.h"
#include "engine.h"
#include "trace-replay.h"

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	if (line)
		fprintf(userdata, "%s:%u: %s\n", file, line, message);
	else
		fprintf(userdata, "%s: %s\n", file, message);
}

static void print_step(const struct replay_step *step, void *userdata)
{
	for (size_t i = 0; i < step->n_replayed; i++) {
		json_t *j = trace_decision_json(&step->replayed[i]);
		size_t n = 0;
		_cleanup_free_ char *line = j ? trace_line_text(j, &n) : NULL;

		if (line)
			fwrite(line, 1, n, userdata);
		json_decref(j);
	}
}

static int complain(const char *trace, int e, const struct trace_why *why, FILE *err)
{
	if (e != -EBADMSG)
		fprintf(err, "%s: %s\n", trace, e == -EIO ? why->text : strerror(-e));
	else if (why->line)
		fprintf(err, "%s:%" PRIu64 ": %s\n", trace, why->line, why->text);
	else
		fprintf(err, "%s: %s\n", trace, why->text);
	return e == -EBADMSG ? REPLAY_EX_TRACE : 1;
}

static int run(const char *trace, FILE *f, const struct config *config, FILE *out, FILE *err)
{
	struct replay_summary sum;
	struct trace_why why;
	int e = replay_run(f, config, print_step, out, &sum, &why);

	if (e < 0)
		return complain(trace, e, &why, err);
	if (sum.torn)
		fprintf(err, "%s:%" PRIu64 ": the last line is torn: skipped\n", trace, sum.torn_line);
	if (sum.left_out)
		fprintf(err,
			"%s: %" PRIu64 " looks at groups are not in the trace: decisions may differ\n",
			trace, sum.left_out);
	if (fflush(out) != 0 || ferror(out)) {
		fprintf(err, "mthpd: cannot write: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

int replay_command(const char *trace, const char *config_file, FILE *out, FILE *err)
{
	struct config *config = NULL;
	FILE *f;
	int r;

	if (config_file) {
		r = config_load(config_file, "", on_fault, err, &config);
		if (r < 0)
			return r == -EINVAL ? ENGINE_EX_CONFIG : 1;
	}
	f = fopen(trace, "re");
	if (f) {
		r = run(trace, f, config, out, err);
		fclose(f);
	} else {
		fprintf(err, "%s: %s\n", trace, strerror(errno));
		r = 1;
	}
	config_free(config);
	return r;
}
