/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"

#define LINE 15
#define TABLE_EVENTS 14
#define TABLE_CHARS 172 /* of 11 px, about, between the margins */

/* ---- texts ------------------------------------------------------------- */

void svg_put_escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
		}
	}
}

void svg_put_cut(FILE *f, const char *s, size_t max, bool front)
{
	size_t n = 0;
	const char *p;

	for (p = s; *p; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	if (n <= max) {
		svg_put_escaped(f, s);
		return;
	}
	if (front) {
		for (n -= max - 1; n > 0 || ((unsigned char)*s & 0xc0) == 0x80; s++)
			n -= ((unsigned char)*s & 0xc0) != 0x80;
		fputs("…", f);
		svg_put_escaped(f, s);
		return;
	}
	for (p = s, n = max; n > 0; p++)
		n -= ((unsigned char)p[1] & 0xc0) != 0x80;
	{
		_cleanup_free_ char *head = strndup(s, (size_t)(p - s));

		svg_put_escaped(f, head ? head : "");
	}
	fputs("…", f);
}

void svg_put_bytes(FILE *f, double bytes)
{
	static const char units[] = "BKMGTP";
	unsigned u = 0;

	for (; bytes >= 1024 && units[u + 1]; u++)
		bytes /= 1024;
	fprintf(f, bytes >= 100 || bytes == (double)(int)bytes ? "%.0f%c" : "%.1f%c", bytes, units[u]);
}

void svg_put_kb(FILE *f, uint64_t kb)
{
	svg_put_bytes(f, (double)kb * 1024);
}

void svg_put_clock(FILE *f, uint64_t realtime_usec, int what)
{
	time_t t = (time_t)(realtime_usec / 1000000);
	struct tm tm;

	if (!gmtime_r(&t, &tm)) {
		fputs("?", f);
		return;
	}
	if (what & CLOCK_DAY)
		fprintf(f, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
	if (what & CLOCK_DAY && what & ~CLOCK_DAY)
		fputc(' ', f);
	if (what & (CLOCK_MINUTES | CLOCK_SECONDS))
		fprintf(f, "%02d:%02d", tm.tm_hour, tm.tm_min);
	if (what & CLOCK_SECONDS)
		fprintf(f, ":%02d", tm.tm_sec);
}

void svg_put_span(FILE *f, uint64_t usec)
{
	uint64_t s = (usec + 500000) / 1000000;

	if (s >= 86400)
		fprintf(f, "%" PRIu64 " d ", s / 86400);
	if (s >= 3600)
		fprintf(f, "%" PRIu64 " h ", s % 86400 / 3600);
	if (s >= 60)
		fprintf(f, "%" PRIu64 " min ", s % 3600 / 60);
	fprintf(f, "%" PRIu64 " s", s % 60);
}

void svg_put_knob(FILE *f, const struct plot_knob *k)
{
	if (k->size_kb)
		svg_put_kb(f, k->size_kb);
	else
		svg_put_escaped(f, k->path);
}

static void put_numbers(FILE *f, const struct plot_change *c)
{
	if (c->some >= 0)
		fprintf(f, ", some %.0f %%, full %.0f %%", c->some * 100, c->full < 0 ? 0 : c->full * 100);
	if (c->some >= 0 && value_known(c->margin_bytes)) {
		fputs(", margin ", f);
		svg_put_bytes(f, (double)c->margin_bytes);
	}
	if (!strcmp(c->outcome, "dry-run"))
		fputs(" (dry run: not written)", f);
}

static void put_cause(FILE *f, const struct plot_change *c)
{
	svg_put_escaped(f, c->foreign ? "changed by somebody else" : c->reason);
	if (*c->group) {
		fputs(": ", f);
		svg_put_escaped(f, c->group);
	}
	put_numbers(f, c);
}

static const char *explain(const char *word)
{
	for (unsigned i = 0; i < REASON_MAX; i++)
		if (!strcmp(word, reason_word((enum reason)i)))
			return reason_text((enum reason)i);
	return "";
}

void svg_put_title(const struct drawing *d, const struct plot_change *c)
{
	const struct plot_knob *k = &d->p->knobs[c->knob];

	fputs("<title>", d->f);
	svg_put_clock(d->f, c->realtime_usec, CLOCK_DAY | CLOCK_SECONDS);
	fprintf(d->f, ".%03u UTC  ", (unsigned)(c->realtime_usec / 1000 % 1000));
	svg_put_knob(d->f, k);
	fputs(" ", d->f);
	svg_put_escaped(d->f, c->old_value);
	fputs(" → ", d->f);
	svg_put_escaped(d->f, c->new_value);
	fputs("\n", d->f);
	put_cause(d->f, c);
	if (!c->foreign && *explain(c->reason)) {
		fputs("\n", d->f);
		svg_put_escaped(d->f, explain(c->reason));
	}
	fputs("</title>", d->f);
}

/* ---- the changes in words ---------------------------------------------- */

/* One line of text, cut to the width of the picture; @text is freed. */
static void put_row(const struct drawing *d, double y, const char *class, char *text)
{
	fprintf(d->f, "<text class=\"%s\" x=\"%d\" y=\"%.1f\">", class, LEFT + 78, y);
	svg_put_cut(d->f, text ? text : "", TABLE_CHARS, false);
	fputs("</text>\n", d->f);
	free(text);
}

static char *changes_text(const struct plot *p, const struct event *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; f && i < e->n; i++) {
		const struct plot_change *c = &p->changes[e->first + i];
		const struct plot_knob *k = &p->knobs[c->knob];

		fputs(i ? ",  " : "", f);
		if (k->size_kb) {
			uint64_t kb = k->size_kb;

			fprintf(f, "%" PRIu64 "%c", kb >= 1024 ? kb / 1024 : kb, kb >= 1024 ? 'M' : 'K');
		} else {
			fputs(k->path, f);
		}
		fprintf(f, " %s → %s", c->old_value, c->new_value);
	}
	if (f)
		fclose(f);
	return text;
}

static bool same_cause(const struct plot_change *a, const struct plot_change *b)
{
	return a->foreign == b->foreign && !strcmp(a->group, b->group);
}

/* The reasons that the changes from @i on share with the cause of change @i. */
static void put_reasons(FILE *f, const struct plot *p, const struct event *e, size_t i)
{
	const struct plot_change *cause = &p->changes[e->first + i];
	const char *last = "";

	for (size_t k = i; k < e->n; k++) {
		const struct plot_change *c = &p->changes[e->first + k];

		if (!same_cause(c, cause) || !strcmp(c->reason, last))
			continue;
		fprintf(f, "%s%s", *last ? ", " : "", c->reason);
		last = c->reason;
	}
}

/* The causes, each once. Plain text: it is escaped when it is put. */
static char *causes_text(const struct plot *p, const struct event *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; f && i < e->n; i++) {
		const struct plot_change *c = &p->changes[e->first + i];
		size_t k = 0;

		while (k < i && !same_cause(&p->changes[e->first + k], c))
			k++;
		if (k < i)
			continue;
		fputs(i ? ";  " : "", f);
		if (c->foreign)
			fputs("changed by somebody else", f);
		else
			put_reasons(f, p, e, i);
		fprintf(f, "%s%s", *c->group ? ": " : "", c->group);
		put_numbers(f, c);
	}
	if (f)
		fclose(f);
	return text;
}

void svg_draw_table(struct drawing *d)
{
	fprintf(d->f, "<text class=\"b\" x=\"24\" y=\"%.1f\">Changes</text>\n", d->y);
	for (size_t i = 0; i < d->n_events && i < TABLE_EVENTS; i++) {
		const struct event *e = &d->events[i];
		uint64_t t = d->p->changes[e->first].realtime_usec;

		fprintf(d->f, "<circle cx=\"%d\" cy=\"%.1f\" r=\"8.5\"/><text class=\"mid b\" x=\"%d\" y=\"%.1f\" "
			      "style=\"fill:#fff;font-size:10px\">%zu</text><text x=\"%d\" y=\"%.1f\">", LEFT - 8,
			d->y - 4, LEFT - 8, d->y - 0.5, i + 1, LEFT + 8, d->y);
		svg_put_clock(d->f, t, CLOCK_SECONDS);
		fprintf(d->f, ".%u</text>\n", (unsigned)(t / 100000 % 10));
		put_row(d, d->y, "b", changes_text(d->p, e));
		put_row(d, d->y + LINE, "dim", causes_text(d->p, e));
		d->y += 2 * LINE + 6;
	}
	if (d->n_events == 0)
		fprintf(d->f, "<text class=\"dim\" x=\"%d\" y=\"%.1f\">none</text>\n", LEFT, d->y);
	if (d->n_events > TABLE_EVENTS) {
		fprintf(d->f, "<text class=\"dim\" x=\"%d\" y=\"%.1f\">and %zu more: mthpctl replay lists them all"
			      "</text>\n", LEFT + 78, d->y, d->n_events - TABLE_EVENTS);
		d->y += LINE;
	}
	d->y += 12;
}
