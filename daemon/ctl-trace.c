/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verbs record and replay of mthpctl(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "cleanup.h"
#include "config.h"
#include "ctl-client.h"
#include "ctl-text.h"
#include "ctl.h"
#include "trace-replay.h"

#define MONITOR "org.mthpd1.Monitor"
#define MAX_SIZE_DEFAULT "64M"
#define MAX_SIZE_MIN (UINT64_C(1) << 20)
/* Kept free behind each tick: its decisions, one per file at most, and the end. */
#define RESERVE_BYTES (64 * 1024)
/* Decisions arrive together with their tick; no longer than this behind it. */
#define DRAIN_MSEC 300
#define POLL_MSEC 500

int ctl_complain_trace(const struct ctl *ctl, const char *file, int err, const struct trace_why *why)
{
	if (err != -EBADMSG)
		ctl_complain(ctl, "%s: %s", file, err == -EIO ? why->text : strerror(-err));
	else if (why->line)
		ctl_complain(ctl, "%s:%" PRIu64 ": %s", file, why->line, why->text);
	else
		ctl_complain(ctl, "%s: %s", file, why->text);
	return CTL_NO;
}

/* ---- record ------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

struct recording {
	const struct ctl *ctl;
	struct ctl_stream *stream;
	FILE *f;
	uint64_t bytes, max_bytes, ticks, decisions;
	int64_t deadline_msec; /* INT64_MAX = none */
	json_t *tick;	       /* the last one as it came, for full names of groups */
	unsigned char salt[TRACE_SALT_BYTES];
	const char *why; /* it ended, NULL = goes on */
};

static int64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* "64M", "1G", "1000000". */
static bool parse_bytes(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	char *end;
	const char *unit;
	unsigned shift = 0;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (*end || *ret > UINT64_MAX >> shift >> 8)
		return false;
	*ret <<= shift;
	return true;
}

static int parse_limits(const struct ctl *ctl, struct recording *rec)
{
	uint64_t usec = 0;

	rec->deadline_msec = INT64_MAX;
	if (ctl->duration && (config_parse_duration(ctl->duration, &usec) < 0 || usec == 0)) {
		ctl_complain(ctl, "record: not a duration: %s (90s, 10min, 2h)", ctl->duration);
		return CTL_USAGE;
	}
	if (ctl->duration)
		rec->deadline_msec = now_msec() + (int64_t)(usec / 1000);
	if (!parse_bytes(ctl->max_size ? ctl->max_size : MAX_SIZE_DEFAULT, &rec->max_bytes)) {
		ctl_complain(ctl, "record: not a size: %s (500K, 64M, 1G)", ctl->max_size);
		return CTL_USAGE;
	}
	if (rec->max_bytes < MAX_SIZE_MIN) {
		ctl_complain(ctl, "record: --max-size=%s is less than 1M", ctl->max_size);
		return CTL_USAGE;
	}
	return CTL_OK;
}

/* A long name of a group is cut at its front in decisions; its hash would be
 * that of another name. */
static void complete_name(const struct recording *rec, json_t *decision)
{
	const char *cut = json_string_value(json_object_get(decision, "cgroup"));
	json_t *g;
	size_t i;

	if (!cut || strncmp(cut, "...", 3) != 0)
		return;
	json_array_foreach(json_object_get(rec->tick, "groups"), i, g)
	{
		const char *path = json_string_value(json_object_get(g, "path"));
		size_t n = strlen(cut + 3), m = path ? strlen(path) : 0;

		if (path && m >= n && !strcmp(path + m - n, cut + 3)) {
			json_object_set(decision, "cgroup", json_object_get(g, "path"));
			return;
		}
	}
}

/* Writes one line and lets go of it at once: after a crash at most the last
 * line is torn. @limited: the line is not begun when it does not fit. */
static int write_record(struct recording *rec, json_t *record, bool limited)
{
	_cleanup_free_ char *line = NULL;
	size_t n = 0;

	if (rec->ctl->anonymize) {
		json_t *copy = json_deep_copy(record);

		if (copy && trace_anonymize(copy, rec->salt))
			line = trace_line_text(copy, &n);
		json_decref(copy);
	} else {
		line = trace_line_text(record, &n);
	}
	if (!line)
		return -ENOMEM;
	if (limited && rec->bytes + n + RESERVE_BYTES > rec->max_bytes) {
		rec->why = "max-size";
		return 0;
	}
	if (fwrite(line, 1, n, rec->f) != n || fflush(rec->f) != 0)
		return -errno;
	rec->bytes += n;
	return 1;
}

static int take_decision(struct recording *rec, json_t *decision)
{
	json_t *j = json_pack("{s:s}", "kind", "decision");
	int r;

	json_object_update(j, decision);
	complete_name(rec, j);
	r = write_record(rec, j, false);
	rec->decisions += r > 0;
	json_decref(j);
	return r;
}

/* One reply of Monitor(). @draining: nothing but decisions any more. */
static int take_reply(struct recording *rec, const struct ctl_reply *reply, bool draining)
{
	json_t *decision = json_object_get(reply->parameters, "decision");
	json_t *sample = json_object_get(reply->parameters, "sample");
	const char *kind = json_string_value(json_object_get(sample, "kind"));
	int r = 0;

	if (json_is_object(decision) && rec->ticks > 0)
		r = take_decision(rec, decision);
	if (r < 0 || !json_is_object(sample))
		return r;
	if (draining)
		return -ECANCELED;
	r = write_record(rec, sample, true);
	if (r > 0 && kind && !strcmp(kind, "tick")) {
		rec->ticks++;
		json_decref(rec->tick);
		rec->tick = json_incref(sample);
	}
	return r;
}

static int next_reply(struct recording *rec, int timeout_msec, bool draining)
{
	struct ctl_reply reply;
	int r = ctl_stream_next(rec->stream, timeout_msec, &reply);

	if (r < 0)
		return r;
	if (reply.error)
		r = -EPROTO;
	else
		r = take_reply(rec, &reply, draining);
	ctl_reply_done(&reply);
	return r;
}

/* Until it is enough. 0, or -errno of the file; rec->why says the rest. */
static int follow(struct recording *rec)
{
	int r;

	while (!rec->why) {
		int64_t left = rec->deadline_msec - now_msec();

		if (interrupted)
			rec->why = "interrupted";
		else if (left <= 0)
			rec->why = "duration";
		if (rec->why)
			break;
		r = next_reply(rec, left < POLL_MSEC ? (int)left : POLL_MSEC, false);
		if (r == -ECONNRESET || r == -EPROTO)
			rec->why = "connection-lost";
		else if (r < 0 && r != -ETIMEDOUT && r != -EINTR)
			return r;
	}
	/* The decisions of the last tick belong to it. */
	while (strcmp(rec->why, "connection-lost") != 0 && strcmp(rec->why, "max-size") != 0) {
		r = next_reply(rec, DRAIN_MSEC, true);
		if (r < 0)
			return r == -ETIMEDOUT || r == -EINTR || r == -ECANCELED || r == -ECONNRESET ||
					       r == -EPROTO ?
				       0 : r;
	}
	return 0;
}

static int finish(struct recording *rec)
{
	const struct ctl *ctl = rec->ctl;
	json_t *end = json_pack("{s:s, s:s, s:I, s:I, s:I}", "kind", "end", "why", rec->why, "ticks",
		(json_int_t)rec->ticks, "decisions", (json_int_t)rec->decisions, "bytes",
		(json_int_t)rec->bytes);
	int r = write_record(rec, end, false);

	if (r < 0) {
		ctl_complain(ctl, "%s: %s", ctl->output, strerror(-r));
	} else if (ctl->json) {
		json_dumpf(end, ctl->out, JSON_INDENT(2));
		fputc('\n', ctl->out);
	} else {
		fprintf(ctl->out, "%" PRIu64 " ticks and %" PRIu64 " decisions, %" PRIu64 " KiB: %s\n",
			rec->ticks, rec->decisions, (rec->bytes + 1023) / 1024,
			!strcmp(rec->why, "max-size") ? "--max-size is reached" :
			!strcmp(rec->why, "duration") ? "the time is over" :
			!strcmp(rec->why, "interrupted") ? "interrupted" :
							   "mthpd is gone");
	}
	json_decref(end);
	if (r < 0)
		return CTL_NO;
	return strcmp(rec->why, "connection-lost") ? CTL_OK : CTL_NO;
}

/* The first reply holds the header, or says why there is none. The file is
 * opened only now: a daemon that is not there destroys no older trace. */
static int begin(struct recording *rec)
{
	const struct ctl *ctl = rec->ctl;
	struct ctl_reply reply;
	json_t *sample;
	int r = ctl_stream_next(rec->stream, CTL_TIMEOUT_MSEC, &reply), fd;

	if (r < 0)
		return ctl_unreachable(ctl, r);
	sample = json_object_get(reply.parameters, "sample");
	if (reply.error || !json_is_object(sample)) {
		r = reply.error ? ctl_explain_error(ctl, MONITOR, &reply) : CTL_NO;
		if (!reply.error)
			ctl_complain(ctl, "record: the answer of mthpd has no header");
		ctl_reply_done(&reply);
		return r;
	}
	fd = open(ctl->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	rec->f = fd >= 0 ? fdopen(fd, "w") : NULL;
	r = rec->f ? write_record(rec, sample, true) : -errno;
	ctl_reply_done(&reply);
	if (r > 0)
		return CTL_OK;
	ctl_complain(ctl, "%s: %s", ctl->output,
		r < 0 ? strerror(-r) : "the header alone is larger than --max-size");
	return CTL_NO;
}

static int run(struct recording *rec)
{
	const struct ctl *ctl = rec->ctl;
	int r = begin(rec);

	if (r != CTL_OK)
		return r;
	r = follow(rec);
	if (r < 0) {
		ctl_complain(ctl, "%s: %s", ctl->output, strerror(-r));
		return CTL_NO;
	}
	return finish(rec);
}

int ctl_record(const struct ctl *ctl)
{
	struct recording rec = { .ctl = ctl };
	struct sigaction sa = { .sa_handler = on_signal }, old_int, old_term;
	int r = parse_limits(ctl, &rec);

	if (r != CTL_OK)
		return r;
	if (getrandom(rec.salt, sizeof(rec.salt), 0) != (ssize_t)sizeof(rec.salt)) {
		ctl_complain(ctl, "record: no random numbers: %s", strerror(errno));
		return CTL_NO;
	}
	r = ctl_stream_open(ctl->socket, MONITOR, json_pack("{s:b}", "samples", 1), CTL_TIMEOUT_MSEC,
		&rec.stream);
	if (r < 0)
		return ctl_unreachable(ctl, r);
	interrupted = 0;
	sigaction(SIGINT, &sa, &old_int);
	sigaction(SIGTERM, &sa, &old_term);
	r = run(&rec);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	if (rec.f && fclose(rec.f) != 0 && r == CTL_OK) {
		ctl_complain(ctl, "%s: %s", ctl->output, strerror(errno));
		r = CTL_NO;
	}
	json_decref(rec.tick);
	ctl_stream_free(rec.stream);
	return r;
}

/* ---- replay ------------------------------------------------------------ */

struct comparison {
	const struct ctl *ctl;
	json_t *steps; /* with --json */
	bool other_policy, begun;
};

static void put_numbers(FILE *f, const struct trace_decision *d)
{
	if (d->group) {
		fputs(", ", f);
		ctl_put_line(f, d->group);
	}
	if (d->some < 0)
		return;
	fprintf(f, " (some %.0f %%, full %.0f %%", d->some * 100, d->full < 0 ? 0 : d->full * 100);
	if (value_known(d->margin_bytes))
		fprintf(f, ", margin %.1f MiB", (double)d->margin_bytes / 1048576);
	fputc(')', f);
}

static void put_decision(FILE *f, char mark, const struct trace_decision *d)
{
	fprintf(f, "  %c ", mark);
	ctl_put_line(f, d->knob);
	fputs(" ", f);
	ctl_put_line(f, d->old_value);
	fputs(" -> ", f);
	ctl_put_line(f, d->new_value);
	fputs(": ", f);
	ctl_put_line(f, d->reason);
	put_numbers(f, d);
	fputc('\n', f);
}

static bool among(const struct trace_decision *d, const struct trace_decision *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (replay_same(d, &list[i]) || replay_same(&list[i], d))
			return true;
	return false;
}

static void put_time(FILE *f, uint64_t realtime_usec)
{
	time_t t = (time_t)(realtime_usec / 1000000);
	char buf[64] = "?";
	struct tm tm;

	if (gmtime_r(&t, &tm))
		strftime(buf, sizeof(buf), "%F %T", &tm);
	fprintf(f, "%s.%03u UTC\n", buf, (unsigned)(realtime_usec / 1000 % 1000));
}

static json_t *decisions_json(const struct trace_decision *d, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, trace_decision_json(&d[i]));
	return a;
}

static void on_step(const struct replay_step *s, void *userdata)
{
	struct comparison *c = userdata;
	FILE *f = c->ctl->out;

	if (c->steps) {
		json_array_append_new(c->steps, json_pack("{s:I, s:I, s:o, s:o}", "now_usec",
			(json_int_t)s->now_usec, "realtime_usec", (json_int_t)s->realtime_usec, "recorded",
			decisions_json(s->recorded, s->n_recorded), "replayed",
			decisions_json(s->replayed, s->n_replayed)));
		return;
	}
	if (!c->begun)
		fputs("= decided in both, - only as recorded, + only in the replay\n\n", f);
	c->begun = true;
	put_time(f, s->realtime_usec);
	for (size_t i = 0; i < s->n_recorded; i++)
		put_decision(f, among(&s->recorded[i], s->replayed, s->n_replayed) ? '=' : '-',
			&s->recorded[i]);
	for (size_t i = 0; i < s->n_replayed; i++)
		if (!among(&s->replayed[i], s->recorded, s->n_recorded))
			put_decision(f, '+', &s->replayed[i]);
}

static json_t *modes_json(const uint64_t usec[REPLAY_MODES])
{
	return json_pack("{s:I, s:I, s:I}", "never_usec", (json_int_t)usec[THP_NEVER], "madvise_usec",
		(json_int_t)usec[THP_MADVISE], "always_usec", (json_int_t)usec[THP_ALWAYS]);
}

static json_t *share_json(double v)
{
	return v >= 0 ? json_real(v) : json_null();
}

static json_t *summary_json(const struct replay_summary *s)
{
	json_t *sizes = json_array();

	for (unsigned i = 0; i < s->n_sizes; i++)
		json_array_append_new(sizes, json_pack("{s:I, s:o, s:o}", "size_kb",
			(json_int_t)s->sizes[i].size_kb, "recorded", modes_json(s->sizes[i].recorded_usec),
			"replayed", modes_json(s->sizes[i].replayed_usec)));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:s, s:I, s:I, s:b, s:b}", "ticks",
		(json_int_t)s->ticks, "duration_usec", (json_int_t)(s->end_usec - s->start_usec), "recorded",
		(json_int_t)s->recorded, "replayed", (json_int_t)s->replayed, "equal", (json_int_t)s->equal,
		"sizes", sizes, "worst_some", share_json(s->worst_some), "worst_full",
		share_json(s->worst_full), "worst_cgroup", s->worst_group, "pressed_usec",
		(json_int_t)s->pressed_usec, "left_out", (json_int_t)s->left_out, "torn", s->torn, "ended",
		s->ended);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_sizes(FILE *f, const struct replay_summary *s)
{
	uint64_t all = s->end_usec - s->start_usec;

	fprintf(f, "\nShare of the time    recorded                    replayed\n"
		   "    size   always  madvise    never    always  madvise    never\n");
	for (unsigned i = 0; i < s->n_sizes; i++) {
		const struct replay_size *z = &s->sizes[i];

		fprintf(f, "%7" PRIu64 "K", z->size_kb);
		for (int side = 0; side < 2; side++) {
			const uint64_t *usec = side ? z->replayed_usec : z->recorded_usec;

			for (int m = THP_ALWAYS; m >= THP_NEVER; m--)
				fprintf(f, "%s%6.1f %%", m == THP_ALWAYS && side ? "  " : " ",
					percent(usec[m], all));
		}
		fputc('\n', f);
	}
}

static void print_summary(const struct comparison *c, const struct replay_summary *s)
{
	FILE *f = c->ctl->out;

	fprintf(f, "%s%.1f s in %" PRIu64 " ticks: %" PRIu64 " decisions recorded, %" PRIu64
		   " replayed%s, %" PRIu64 " the same\n",
		s->recorded || s->replayed ? "\n" : "", (double)(s->end_usec - s->start_usec) / 1e6,
		s->ticks, s->recorded, s->replayed, c->other_policy ? " with the other policy" : "", s->equal);
	if (s->worst_some >= 0) {
		fprintf(f, "Pressure: some up to %.1f %%, full up to %.1f %%", s->worst_some * 100,
			s->worst_full < 0 ? 0 : s->worst_full * 100);
		fputs(*s->worst_group ? ", worst in " : "", f);
		ctl_put_line(f, s->worst_group);
		fprintf(f, "; above PressureHigh for %.1f s\n", (double)s->pressed_usec / 1e6);
	}
	print_sizes(f, s);
}

static void print_notes(const struct comparison *c, const struct replay_summary *s)
{
	const struct ctl *ctl = c->ctl;

	if (s->torn)
		ctl_complain(ctl, "%s:%" PRIu64 ": the last line is torn: skipped", ctl->args[0], s->torn_line);
	if (!s->ended)
		ctl_complain(ctl, "%s: has no end: decisions of its last tick may be missing", ctl->args[0]);
	if (s->left_out)
		ctl_complain(ctl, "%s: %" PRIu64 " looks at groups are not in it: decisions may differ",
			ctl->args[0], s->left_out);
	if (s->anonymized && c->other_policy)
		ctl_complain(ctl, "%s: names were replaced: no Match= of the other policy can match",
			ctl->args[0]);
}

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	if (line)
		ctl_complain(userdata, "%s:%u: %s", file, line, message);
	else
		ctl_complain(userdata, "%s: %s", file, message);
}

static int compare(const struct ctl *ctl, FILE *f, const struct config *config)
{
	struct comparison c = {
		.ctl = ctl,
		.steps = ctl->json ? json_array() : NULL,
		.other_policy = config != NULL,
	};
	struct replay_summary sum;
	struct trace_why why;
	int r;

	r = replay_run(f, config, on_step, &c, &sum, &why);
	if (r < 0) {
		json_decref(c.steps);
		return ctl_complain_trace(ctl, ctl->args[0], r, &why);
	}
	if (ctl->json) {
		json_t *j = json_pack("{s:o, s:o}", "steps", c.steps, "summary", summary_json(&sum));

		json_dumpf(j, ctl->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', ctl->out);
		json_decref(j);
	} else {
		print_summary(&c, &sum);
	}
	print_notes(&c, &sum);
	/* With the recorded policy the answer should be "the same". */
	return config || (sum.equal == sum.recorded && sum.equal == sum.replayed) ? CTL_OK : CTL_NO;
}

int ctl_replay(const struct ctl *ctl)
{
	struct config *config = NULL;
	FILE *f;
	int r = CTL_NO;

	if (ctl->config && config_load(ctl->config, "", on_fault, (void *)ctl, &config) < 0)
		return CTL_NO;
	f = fopen(ctl->args[0], "re");
	if (f) {
		r = compare(ctl, f, config);
		fclose(f);
	} else {
		ctl_complain(ctl, "%s: %s", ctl->args[0], strerror(errno));
	}
	config_free(config);
	return r;
}
