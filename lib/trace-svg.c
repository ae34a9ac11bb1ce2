/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The picture of trace-plot.h. From top to bottom: what this is, the worst
 * groups, stall shares, margin, a strip with the numbers of the changes, one
 * band per size and per other file that changed, the time, and the changes in
 * words. Groups differ by line pattern, modes by filling: colour only helps.
 */
#include "trace-svg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define WIDTH 1200
#define STALL_TOP_GAP 14
#define STALL_HEIGHT 170
#define MARGIN_HEIGHT 130
#define STRIP_ROW 19
#define STRIP_ROWS 3
#define BAND 18
#define BAND_GAP 4
#define FLOOR_BYTES (64.0 * 1024)
/* A group that is not looked at for so many intervals was quiet: no line is drawn. */
#define GAP_INTERVALS 5
#define GAP_MIN_USEC 5000000


struct style {
	const char *colour, *dash;
};
/* Colours that colour-blind people tell apart (Okabe and Ito). */
static const struct style styles[PLOT_GROUPS] = {
	{ "#d55e00", "none" },
	{ "#0072b2", "8 3" },
	{ "#009e73", "2 3" },
};

/* ---- geometry ---------------------------------------------------------- */

static double x_of(const struct plot *p, uint64_t usec)
{
	double span = p->end_usec > p->start_usec ? (double)(p->end_usec - p->start_usec) : 1;

	return LEFT + (RIGHT - LEFT) * ((double)usec - (double)p->start_usec) / span;
}

static double margin_y(const struct drawing *d, double bytes)
{
	double top = log2(d->top_bytes / FLOOR_BYTES);

	bytes = bytes < FLOOR_BYTES ? FLOOR_BYTES : bytes > d->top_bytes ? d->top_bytes : bytes;
	return d->margin_top + MARGIN_HEIGHT - MARGIN_HEIGHT * log2(bytes / FLOOR_BYTES) / top;
}

static double stall_y(const struct drawing *d, double share)
{
	return d->stall_top + STALL_HEIGHT * (1 - (share > 1 ? 1 : share));
}

/* ---- choosing ---------------------------------------------------------- */

/* More time lost to stalls; where nobody lost any, less room. */
static bool worse(const struct plot_group *a, const struct plot_group *b)
{
	if (a->stalled_usec != b->stalled_usec)
		return a->stalled_usec > b->stalled_usec;
	return a->least_margin_bytes < b->least_margin_bytes;
}

static void choose_groups(struct drawing *d)
{
	const struct plot *p = d->p;

	for (size_t i = 0; i < p->n_groups; i++) {
		const struct plot_group *g = &p->groups[i];
		unsigned at = d->n_worst;

		if (g->n_points == 0)
			continue;
		while (at > 0 && worse(g, d->worst[at - 1]))
			at--;
		if (at == PLOT_GROUPS)
			continue;
		if (d->n_worst < PLOT_GROUPS)
			d->n_worst++;
		for (unsigned k = d->n_worst - 1; k > at; k--)
			d->worst[k] = d->worst[k - 1];
		d->worst[at] = g;
	}
}

static void choose_top(struct drawing *d)
{
	d->top_bytes = FLOOR_BYTES * 16;
	for (unsigned i = 0; i < d->n_worst; i++)
		for (size_t k = 0; k < d->worst[i]->n_points; k++) {
			uint64_t v = d->worst[i]->points[k].margin_bytes;

			while (value_known(v) && (double)v > d->top_bytes)
				d->top_bytes *= 4;
		}
}

static int collect_events(struct drawing *d)
{
	const struct plot *p = d->p;
	double last[STRIP_ROWS] = { -100, -100, -100 };

	d->events = calloc(p->n_changes + 1, sizeof(*d->events));
	if (!d->events)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_changes; i++) {
		struct event *e = &d->events[d->n_events];

		if (i > 0 && p->changes[i].now_usec == p->changes[i - 1].now_usec) {
			e[-1].n++;
			continue;
		}
		*e = (struct event){ .first = i, .n = 1, .x = x_of(p, p->changes[i].now_usec), .row = -1 };
		for (int row = 0; row < STRIP_ROWS && e->row < 0; row++)
			if (e->x - last[row] >= STRIP_ROW) {
				e->row = row;
				last[row] = e->x;
			}
		d->n_events++;
	}
	return 0;
}

/* ---- head -------------------------------------------------------------- */

static const char head[] =
	"<style>\n"
	"text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:11px;fill:#222}\n"
	".title{font-size:18px;font-weight:bold}.sub{font-size:12px;fill:#444}\n"
	".axis{fill:#444}.b{font-weight:bold}.dim{fill:#555}.end{text-anchor:end}.mid{text-anchor:middle}\n"
	".frame{fill:none;stroke:#888}.grid{stroke:#ddd}.ev{stroke:#999;stroke-dasharray:1 3}\n"
	".some{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
	".full{fill:none;stroke-width:1;stroke-linejoin:round;stroke-linecap:round}\n"
	".always{fill:#455a64;stroke:#263238}.madvise{fill:url(#hatch);stroke:#263238}\n"
	".never{fill:#fff;stroke:#90a4ae}.value{fill:#f3f3f3;stroke:#90a4ae}\n"
	".mark{fill:#ffd54f;stroke:#000;stroke-width:1.2}\n"
	"</style>\n"
	"<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
	"<rect width=\"2.2\" height=\"6\" fill=\"#455a64\"/></pattern></defs>\n";

static void draw_head(struct drawing *d)
{
	const struct plot *p = d->p;
	uint64_t end = p->realtime_usec + (p->end_usec - p->start_usec);

	fprintf(d->f, "<text class=\"title\" x=\"24\" y=\"32\">Memory pressure and the sizes of large folios</text>\n"
		      "<text class=\"sub\" x=\"24\" y=\"52\">Linux ");
	svg_put_cut(d->f, p->kernel, 40, false);
	fputs(" · mthpd ", d->f);
	svg_put_cut(d->f, p->mthpd, 20, false);
	fputs(" · ", d->f);
	svg_put_clock(d->f, p->realtime_usec, CLOCK_DAY | CLOCK_SECONDS);
	fputs(" to ", d->f);
	svg_put_clock(d->f, end, CLOCK_DAY | CLOCK_SECONDS);
	fputs(" UTC (", d->f);
	svg_put_span(d->f, p->end_usec - p->start_usec);
	fprintf(d->f, ") · %zu change%s · %zu group%s looked at%s%s</text>\n", p->n_changes,
		p->n_changes == 1 ? "" : "s", p->n_groups, p->n_groups == 1 ? "" : "s",
		p->anonymized ? " · names replaced" : "", p->torn ? " · the recording was cut off" : "");
	d->y = 72;
}

static void draw_groups(struct drawing *d)
{
	for (unsigned i = 0; i < d->n_worst; i++, d->y += 17) {
		const struct plot_group *g = d->worst[i];

		fprintf(d->f, "<path d=\"M24 %.0fH62\" class=\"some\" stroke=\"%s\" stroke-dasharray=\"%s\"/>"
			      "<path d=\"M68 %.0fH104\" class=\"full\" stroke=\"%s\" stroke-dasharray=\"%s\"/>"
			      "<text x=\"112\" y=\"%.0f\"><tspan class=\"b\">",
			d->y, styles[i].colour, styles[i].dash, d->y, styles[i].colour, styles[i].dash, d->y + 4);
		svg_put_cut(d->f, *g->path ? g->path : "the whole machine", 80, true);
		fputs("</tspan><tspan class=\"dim\" dx=\"9\">", d->f);
		if (g->worst_some >= 0)
			fprintf(d->f, "stalled for %.1f s, some up to %.0f %%", g->stalled_usec / 1e6,
				g->worst_some * 100);
		if (value_known(g->least_margin_bytes)) {
			fputs(", least margin ", d->f);
			svg_put_bytes(d->f, (double)g->least_margin_bytes);
		} else if (g->least_margin_bytes == VALUE_MAX) {
			fputs(", no limit", d->f);
		}
		fputs("</tspan></text>\n", d->f);
	}
	if (!d->n_worst) {
		fprintf(d->f, "<text class=\"dim\" x=\"24\" y=\"%.0f\">No group was looked at: nothing happened."
			      "</text>\n", d->y + 4);
		d->y += 17;
	}
}

/* ---- lines ------------------------------------------------------------- */

static void draw_frame(const struct drawing *d, double top, double height, const char *label, const char *unit)
{
	fprintf(d->f, "<rect class=\"frame\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", LEFT, top,
		RIGHT - LEFT, height);
	fprintf(d->f, "<text class=\"axis mid\" transform=\"translate(34 %.1f) rotate(-90)\">%s</text>"
		      "<text class=\"axis mid\" transform=\"translate(50 %.1f) rotate(-90)\">%s</text>\n",
		top + height / 2, label, top + height / 2, unit);
}

/* Times of one group without a look in between that is longer than usual. */
static bool gap_before(const struct plot *p, const struct plot_group *g, size_t i)
{
	uint64_t usual = GAP_INTERVALS * p->interval_usec;

	if (usual < GAP_MIN_USEC)
		usual = GAP_MIN_USEC;
	return i == 0 || g->points[i].now_usec - g->points[i - 1].now_usec > usual;
}

enum series { SOME, FULL, MARGIN };

/* The height of a point, or -1 where there is nothing to draw. */
static double point_y(const struct drawing *d, const struct plot_point *pt, enum series s)
{
	if (s == MARGIN)
		return value_known(pt->margin_bytes) ? margin_y(d, (double)pt->margin_bytes) : -1;
	if ((s == SOME ? pt->some : pt->full) < 0)
		return -1;
	return stall_y(d, (double)(s == SOME ? pt->some : pt->full));
}

/* Of the points in one column of the picture only the worst is drawn. */
static bool column_goes_on(const struct plot *p, const struct plot_group *g, size_t i)
{
	return i + 1 < g->n_points && !gap_before(p, g, i + 1) &&
	       (int)(x_of(p, g->points[i].now_usec) * 2) == (int)(x_of(p, g->points[i + 1].now_usec) * 2);
}

static void draw_line(const struct drawing *d, unsigned which, enum series s)
{
	const struct plot_group *g = d->worst[which];
	double worst = -1;
	bool pen = false;

	fprintf(d->f, "<path class=\"%s\" stroke=\"%s\" stroke-dasharray=\"%s\" d=\"", s == FULL ? "full" : "some",
		styles[which].colour, styles[which].dash);
	for (size_t i = 0; i < g->n_points; i++) {
		double y = point_y(d, &g->points[i], s);

		if (gap_before(d->p, g, i))
			pen = false;
		/* The margin's worst is the lowest, which has the largest y. */
		if (y >= 0 && (worst < 0 || (s == MARGIN ? y > worst : y < worst)))
			worst = y;
		if (worst < 0 || column_goes_on(d->p, g, i))
			continue;
		fprintf(d->f, "%s%.1f %.1f%s", pen ? "L" : "M", x_of(d->p, g->points[i].now_usec), worst,
			pen ? "" : "h.01");
		pen = true;
		worst = -1;
	}
	fputs("\"/>\n", d->f);
}

static void draw_kills(const struct drawing *d)
{
	for (size_t i = 0; i < d->p->n_kills; i++) {
		const struct plot_kill *k = &d->p->kills[i];
		double x = x_of(d->p, k->now_usec), y = d->stall_top + 9;

		fprintf(d->f, "<g><title>OOM kill in ");
		svg_put_escaped(d->f, d->p->groups[k->group].path);
		fprintf(d->f, " (%" PRIu64 ")</title><circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"#fff\" "
			      "stroke=\"#000\"/><path d=\"M%.1f %.1fl8 8m0 -8l-8 8\" stroke=\"#000\" "
			      "stroke-width=\"2.4\"/></g>\n", k->n, x, y, x - 4, y - 4);
	}
	if (d->p->n_kills)
		fprintf(d->f, "<text class=\"end b\" x=\"%d\" y=\"%.1f\">⊗ OOM kill</text>\n", RIGHT - 6,
			d->stall_top + 28);
}

static void draw_stall(struct drawing *d)
{
	d->stall_top = d->y + STALL_TOP_GAP;
	for (int percent = 0; percent <= 100; percent += 25) {
		double y = stall_y(d, percent / 100.0);

		fprintf(d->f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"axis end\" x=\"%d\" "
			      "y=\"%.1f\">%d %%</text>\n", LEFT, y, RIGHT, LEFT - 8, y + 4, percent);
	}
	fprintf(d->f, "<path d=\"M%d %.1fH%d\" stroke=\"#000\" stroke-dasharray=\"10 3 2 3\"/>"
		      "<text class=\"end dim\" x=\"%d\" y=\"%.1f\">PressureHigh %.3g %%</text>\n", LEFT,
		stall_y(d, d->p->pressure_high), RIGHT, RIGHT - 6, stall_y(d, d->p->pressure_high) - 4,
		d->p->pressure_high * 100);
	draw_frame(d, d->stall_top, STALL_HEIGHT, "stall share", "some thick, full thin");
	for (unsigned i = d->n_worst; i-- > 0;) {
		draw_line(d, i, FULL);
		draw_line(d, i, SOME);
	}
	draw_kills(d);
	d->y = d->stall_top + STALL_HEIGHT;
}

static void draw_margin(struct drawing *d)
{
	int top = (int)log2(d->top_bytes / FLOOR_BYTES), step = top > 10 ? 4 : 2, n = top / step;

	d->margin_top = d->y + 16;
	for (int i = 0; i <= n; i++) {
		double v = FLOOR_BYTES * exp2(i * step), y = margin_y(d, v);

		fprintf(d->f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"axis end\" x=\"%d\" "
			      "y=\"%.1f\">%s", LEFT, y, RIGHT, LEFT - 8, y + 4, i == 0 ? "≤ " : "");
		svg_put_bytes(d->f, v);
		fputs("</text>\n", d->f);
	}
	draw_frame(d, d->margin_top, MARGIN_HEIGHT, "margin below limit", "bytes, log scale");
	for (unsigned i = d->n_worst; i-- > 0;)
		draw_line(d, i, MARGIN);
	d->y = d->margin_top + MARGIN_HEIGHT;
}

/* ---- bands ------------------------------------------------------------- */

static enum thp_mode mode_of(const struct plot *p, const char *value)
{
	return thp_effective(thp_mode_from_string(value), p->top);
}

static const char *class_of(const struct plot *p, const struct plot_knob *k, const char *value)
{
	static const char *const classes[] = { "never", "madvise", "always" };
	enum thp_mode m = mode_of(p, value);

	return k->size_kb && m >= THP_NEVER && m <= THP_ALWAYS ? classes[m] : "value";
}

static void draw_segment(const struct drawing *d, const struct plot_knob *k, const char *value, double from,
	double to, double y)
{
	const char *class = class_of(d->p, k, value);

	fprintf(d->f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>", class, from,
		y, to > from ? to - from : 0, BAND);
	svg_put_knob(d->f, k);
	fputs(": ", d->f);
	svg_put_escaped(d->f, value);
	fputs("</title></rect>\n", d->f);
	if (!strcmp(class, "value") && to - from > 8.0 * (double)strlen(value) + 10) {
		fprintf(d->f, "<text class=\"mid\" x=\"%.1f\" y=\"%.1f\">", (from + to) / 2, y + 13);
		svg_put_escaped(d->f, value);
		fputs("</text>\n", d->f);
	}
}

/* Points down for less, up for more; a diamond for other hands. */
static void draw_mark(const struct drawing *d, const struct plot_change *c, double y)
{
	const struct plot_knob *k = &d->p->knobs[c->knob];
	double x = x_of(d->p, c->now_usec), middle = y + BAND / 2.0;
	bool up = k->size_kb ? mode_of(d->p, c->new_value) > mode_of(d->p, c->old_value) :
			       strtoull(c->new_value, NULL, 10) > strtoull(c->old_value, NULL, 10);

	fputs("<g>", d->f);
	svg_put_title(d, c);
	if (c->foreign)
		fprintf(d->f, "<path class=\"mark\" d=\"M%.1f %.1fl7 7l-7 7l-7 -7z\"/>", x, middle - 7);
	else if (up)
		fprintf(d->f, "<path class=\"mark\" d=\"M%.1f %.1fl6 11h-12z\"/>", x, middle - 6);
	else
		fprintf(d->f, "<path class=\"mark\" d=\"M%.1f %.1fl-6 -11h12z\"/>", x, middle + 6);
	fputs("</g>\n", d->f);
}

static void draw_band(struct drawing *d, unsigned which)
{
	const struct plot_knob *k = &d->p->knobs[which];
	const char *value = k->first;
	double from = LEFT;

	fprintf(d->f, "<text class=\"end%s\" x=\"%d\" y=\"%.1f\">", k->size_kb ? " b" : "", LEFT - 8, d->y + 13);
	if (k->size_kb)
		svg_put_kb(d->f, k->size_kb);
	else
		svg_put_cut(d->f, strrchr(k->path, '/') ? strrchr(k->path, '/') + 1 : k->path, 15, false);
	fputs("</text>\n", d->f);
	for (size_t i = 0; i < d->p->n_changes; i++) {
		const struct plot_change *c = &d->p->changes[i];

		if (c->knob != which)
			continue;
		draw_segment(d, k, value, from, x_of(d->p, c->now_usec), d->y);
		from = x_of(d->p, c->now_usec);
		value = c->new_value;
	}
	draw_segment(d, k, value, from, RIGHT, d->y);
	for (size_t i = 0; i < d->p->n_changes; i++)
		if (d->p->changes[i].knob == which)
			draw_mark(d, &d->p->changes[i], d->y);
	d->y += BAND + BAND_GAP;
}

static void draw_held(const struct drawing *d)
{
	for (size_t i = 0; i < d->p->n_held; i++) {
		double x = x_of(d->p, d->p->held[i].from_usec), end = x_of(d->p, d->p->held[i].to_usec);

		fprintf(d->f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#000\" "
			      "fill-opacity=\".08\"/>", x, d->strip_top, end - x, d->bands_end - d->strip_top);
		if (end - x > 40)
			fprintf(d->f, "<text class=\"mid b\" x=\"%.1f\" y=\"%.1f\">held</text>\n", (x + end) / 2,
				d->strip_top + 13);
	}
}

static void draw_bands(struct drawing *d)
{
	double row_top[STRIP_ROWS];
	int rows = 1;

	for (size_t i = 0; i < d->n_events; i++)
		if (d->events[i].row >= rows)
			rows = d->events[i].row + 1;
	d->strip_top = d->y + 6;
	for (int i = 0; i < STRIP_ROWS; i++)
		row_top[i] = d->strip_top + STRIP_ROW * i;
	d->y = d->bands_top = d->strip_top + STRIP_ROW * rows + 4;
	/* The largest size on top, as on a ladder. */
	for (unsigned i = d->p->n_knobs; i-- > 0;)
		if (d->p->knobs[i].size_kb)
			draw_band(d, i);
	for (unsigned i = 0; i < d->p->n_knobs; i++)
		if (!d->p->knobs[i].size_kb && d->p->knobs[i].changed)
			draw_band(d, i);
	d->bands_end = d->y;
	draw_held(d);
	fprintf(d->f, "<text class=\"axis end\" x=\"%d\" y=\"%.1f\">changes</text>\n", LEFT - 8, d->strip_top + 13);
	for (size_t i = 0; i < d->n_events; i++) {
		const struct event *e = &d->events[i];

		fprintf(d->f, "<path class=\"ev\" d=\"M%.1f %.1fV%.1f\"/>\n", e->x, d->stall_top, d->bands_end);
		if (e->row < 0)
			continue;
		fprintf(d->f, "<g>");
		svg_put_title(d, &d->p->changes[e->first]);
		fprintf(d->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8.5\"/><text class=\"mid b\" x=\"%.1f\" "
			      "y=\"%.1f\" style=\"fill:#fff;font-size:%dpx\">%zu</text></g>\n", e->x,
			row_top[e->row] + 9, e->x, row_top[e->row] + 12.5, i < 99 ? 10 : 8, i + 1);
	}
}

/* ---- time -------------------------------------------------------------- */

static void draw_time(struct drawing *d)
{
	static const uint64_t steps[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
		21600, 43200, 86400, 172800, 604800, 2592000 };
	const struct plot *p = d->p;
	uint64_t span = (p->end_usec - p->start_usec) / 1000000, step = steps[0], begin;

	for (size_t i = 0; i < ELEMENTSOF(steps) && span / step > 9; i++)
		step = steps[i];
	if (span / step > 9)
		step = span / 9;
	begin = (p->realtime_usec / 1000000 / step + 1) * step;
	for (uint64_t t = begin; t < begin + 12 * step; t += step) {
		double x = x_of(p, p->start_usec + (t * 1000000 - p->realtime_usec));

		if (t * 1000000 - p->realtime_usec > p->end_usec - p->start_usec)
			break;
		fprintf(d->f, "<path d=\"M%.1f %.1fv5\" stroke=\"#444\"/><text class=\"axis mid\" x=\"%.1f\" "
			      "y=\"%.1f\">", x, d->bands_end, x, d->bands_end + 18);
		svg_put_clock(d->f, t * 1000000,
			step >= 86400 ? CLOCK_DAY : step >= 60 ? CLOCK_MINUTES : CLOCK_SECONDS);
		fputs("</text>\n", d->f);
	}
	fprintf(d->f, "<text class=\"axis end\" x=\"%d\" y=\"%.1f\">time, UTC</text>\n", LEFT - 8, d->bands_end + 18);
	d->y = d->bands_end + 32;
}

static void draw_legend(struct drawing *d)
{
	static const struct {
		const char *class, *text;
	} modes[] = { { "always", "always" }, { "madvise", "madvise: where the program asks" },
		{ "never", "never" } };
	static const int at[] = { LEFT, LEFT + 90, LEFT + 328 };
	double y = d->y;

	for (size_t i = 0; i < ELEMENTSOF(modes); i++)
		fprintf(d->f, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"26\" height=\"12\"/><text x=\"%d\" "
			      "y=\"%.1f\">%s</text>\n", modes[i].class, at[i], y, at[i] + 32, y + 10, modes[i].text);
	fprintf(d->f, "<path class=\"mark\" d=\"M%d %.1fl-6 -11h12z\"/><text x=\"%d\" y=\"%.1f\">lowered</text>"
		      "<path class=\"mark\" d=\"M%d %.1fl6 11h-12z\"/><text x=\"%d\" y=\"%.1f\">raised</text>"
		      "<path class=\"mark\" d=\"M%d %.1fl7 7l-7 7l-7 -7z\"/><text x=\"%d\" y=\"%.1f\">by somebody else"
		      "</text>\n", LEFT + 430, y + 12, LEFT + 442, y + 10, LEFT + 510, y + 1, LEFT + 522, y + 10,
		LEFT + 590, y - 1, LEFT + 603, y + 10);
	fprintf(d->f, "<text class=\"dim end\" x=\"%d\" y=\"%.1f\">A line ends where a group was quiet and not "
		      "looked at.</text>\n", RIGHT, y + 10);
	d->y += 34;
}

static void draw_all(struct drawing *d)
{
	draw_head(d);
	draw_groups(d);
	draw_stall(d);
	draw_margin(d);
	draw_bands(d);
	draw_time(d);
	draw_legend(d);
	svg_draw_table(d);
}

int plot_draw(const struct plot *p, FILE *out)
{
	struct drawing d = { .p = p };
	char *body = NULL;
	size_t size;

	choose_groups(&d);
	choose_top(&d);
	if (collect_events(&d) < 0)
		return -ENOMEM;
	/* The height is known at the end only. */
	d.f = open_memstream(&body, &size);
	if (d.f)
		draw_all(&d);
	if (!d.f || fclose(d.f) != 0) {
		free(body);
		free(d.events);
		return -ENOMEM;
	}
	fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		     "viewBox=\"0 0 %d %.0f\" role=\"img\">\n%s<rect width=\"100%%\" height=\"100%%\" "
		     "fill=\"#fff\"/>\n", WIDTH, d.y, WIDTH, d.y, head);
	fwrite(body, 1, size, out);
	fputs("</svg>\n", out);
	free(body);
	free(d.events);
	return 0;
}
