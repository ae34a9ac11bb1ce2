/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/trace-plot.c and trace-svg*.c: a trace as a picture. */
#include "trace_text.h"

#include <errno.h>

#include "trace-plot.h"

/* The picture of @t, to be freed; closes and frees the text. */
static char *draw(struct text *t)
{
	FILE *in = text_open(t), *out;
	struct trace_why why;
	struct plot *p;
	char *svg = NULL;
	size_t size;

	if (plot_read(in, &p, &why) < 0)
		fail_msg("line %lu: %s", (unsigned long)why.line, why.text);
	out = open_memstream(&svg, &size);
	assert_int_equal(plot_draw(p, out), 0);
	assert_int_equal(fclose(out), 0);
	fclose(in);
	plot_free(p);
	free(t->buf);
	assert_int_equal(strncmp(svg, "<?xml", 5), 0);
	assert_non_null(strstr(svg, "</svg>\n"));
	assert_null(strstr(svg, "nan"));
	assert_null(strstr(svg, "inf\""));
	return svg;
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void has(const char *svg, const char *words)
{
	if (!strstr(svg, words))
		fail_msg("no \"%s\" in the picture", words);
}

/* A header and nothing else, as after a quiet minute. */
static void test_empty(void **state)
{
	struct text t;
	char *svg;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	svg = draw(&t);
	has(svg, "No group was looked at");
	has(svg, "2026-01-02 03:04:05 UTC (0 s)");
	has(svg, "0 changes");
	has(svg, ">64K</text>");
	free(svg);
}

static void test_one_tick(void **state)
{
	struct text t;
	char *svg;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	text_line(&t, tick_json(2 * SEC, "a.service", 1, 0));
	svg = draw(&t);
	has(svg, "a.service");
	free(svg);
}

/* The worst three of five groups, the worst first, with their numbers. */
static void test_worst(void **state)
{
	static const char *const names[] = { "g1", "g2", "g3", "g4", "g5" };
	static const unsigned share[] = { 1, 9, 3, 7, 5 };
	struct text t;
	char *svg, *a, *b, *c;

	(void)state;
	text_new(&t);
	text_line(&t, header_json("[Controller]\nPressureHigh=33%\n"));
	for (uint64_t n = 2; n < 12; n++) {
		json_t *tick = json_pack(
			"{s:s, s:I, s:[]}", "kind", "tick", "now_usec", (json_int_t)(n * SEC), "groups");

		for (unsigned g = 0; g < 5; g++) {
			struct memcg_sample s = sample_of(n * SEC, g + 1, n * share[g] * 100000);

			json_array_append_new(json_object_get(tick, "groups"),
				json_pack("{s:I, s:s, s:o}", "id", (json_int_t)(g + 1), "path", names[g],
					"sample", trace_memcg_json(&s)));
		}
		text_line(&t, tick);
	}
	svg = draw(&t);
	a = strstr(svg, ">g2</tspan>");
	b = strstr(svg, ">g4</tspan>");
	c = strstr(svg, ">g5</tspan>");
	assert_true(a && b && c && a < b && b < c);
	assert_null(strstr(svg, ">g3</tspan>"));
	has(svg, "stalled for 8.1 s, some up to 90 %, least margin 4M");
	has(svg, "PressureHigh 33 %");
	has(svg, "5 groups looked at");
	free(svg);
}

/* Names and values that would be markup, or end the file for a careless reader. */
static void test_hostile_names(void **state)
{
	struct text t;
	char *svg;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	text_line(&t, tick_json(2 * SEC, "</text><script>alert(\"1\")</script>&x\x01\x7f", 1, 0));
	text_line(&t, tick_json(3 * SEC, "</text><script>alert(\"1\")</script>&x\x01\x7f", 1, 900000));
	text_line(&t, decision_of(3 * SEC, 1, STAND, "always", "<never>", "\"><b>"));
	svg = draw(&t);
	assert_null(strstr(svg, "<script"));
	assert_null(strstr(svg, "<never"));
	assert_null(strstr(svg, "<b>"));
	has(svg, "&lt;/text&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;x??");
	free(svg);
}

/* A long name keeps its end, cut between characters. */
static void test_long_name(void **state)
{
	char name[600];
	struct text t;
	char *svg;

	(void)state;
	for (size_t i = 0; i < 500; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	strcpy(name + 500, "/the-end.service");
	text_new(&t);
	text_line(&t, header_json(""));
	text_line(&t, tick_json(2 * SEC, name, 1, 0));
	svg = draw(&t);
	has(svg, ">…\xc3\xa9\xc3\xa9");
	has(svg, "\xc3\xa9/the-end.service<");
	assert_int_equal(count(svg, "\xc3\xa9"), 80 - 1 - 16);
	free(svg);
}

/* Each change has its tooltip; changes of one tick have one number; the list ends
 * somewhere and says so. */
static void test_changes(void **state)
{
	struct text t;
	char *svg;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	for (unsigned i = 0; i < 20; i++) {
		uint64_t now = (2 + 20 * i) * SEC;
		const char *was = i % 2 ? "never" : "always", *is = i % 2 ? "always" : "never";

		text_line(&t, tick_json(now, "a.service", 1, i));
		text_line(&t, decision_of(now, 2 * i + 1, STAND, was, is, "a.service"));
		text_line(&t, decision_of(now, 2 * i + 2, "khugepaged/max_ptes_none", i % 2 ? "0" : "511",
				      i % 2 ? "511" : "0", "a.service"));
	}
	svg = draw(&t);
	has(svg, "<title>2026-01-02 03:04:06.000 UTC  64K always → never\n"
		 "drop-pressure: a.service, some 71 %, full 50 %, margin 300K\n");
	/* 20 marks in two bands, and 20 numbers. */
	assert_int_equal(count(svg, "<title>2026-01-02"), 60);
	has(svg, "40 changes");
	has(svg, "64K always → never,  khugepaged/max_ptes_none 511 → 0");
	has(svg, "and 6 more: mthpctl replay lists them all");
	has(svg, "max_ptes_none</text>");
	free(svg);
}

/* Other hands, holds, OOM kills, and a last line that was torn. */
static void test_events(void **state)
{
	struct memcg_sample s = sample_of(4 * SEC, 1, 10);
	struct text t;
	json_t *tick;
	char *svg;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	s.events.oom_kill = 0;
	tick = tick_json(2 * SEC, "a.service", 1, 0);
	json_object_set_new(json_array_get(json_object_get(tick, "groups"), 0), "sample", trace_memcg_json(&s));
	text_line(&t, tick);
	s.now_usec = 5 * SEC;
	s.events.oom_kill = 3;
	tick = tick_json(5 * SEC, "a.service", 1, 0);
	json_object_set_new(json_array_get(json_object_get(tick, "groups"), 0), "sample", trace_memcg_json(&s));
	json_object_set_new(tick, "held", json_true());
	json_object_set_new(tick, "stands", json_pack("{s:s, s:s}", STAND, "madvise", "defrag", "never"));
	text_line(&t, tick);
	text_line(&t, tick_json(9 * SEC, "a.service", 1, 20));
	fputs("{\"kind\":\"ti", t.f);
	svg = draw(&t);
	has(svg, "<title>OOM kill in a.service (3)</title>");
	has(svg, "changed by somebody else");
	has(svg, ">held</text>");
	has(svg, "the recording was cut off");
	/* A file that is not steered is none of ours. */
	has(svg, "1 change ·");
	free(svg);
}

static void test_faults(void **state)
{
	struct text t;
	struct trace_why why;
	struct plot *p;
	FILE *f;

	(void)state;
	text_new(&t);
	text_line(&t, header_json(""));
	text_line(&t, tick_json(5 * SEC, "a", 1, 0));
	text_line(&t, tick_json(4 * SEC, "a", 1, 0));
	f = text_open(&t);
	assert_int_equal(plot_read(f, &p, &why), -EBADMSG);
	assert_int_equal(why.line, 3);
	assert_non_null(strstr(why.text, "goes backwards"));
	fclose(f);
	free(t.buf);
}

/* Recordings of a real daemon, on a fake tree and on a real kernel
 * (tests/trace/guest.sh): every decision is in the picture. */
static void test_fixtures(void **state)
{
	static const struct {
		const char *path, *worst;
		size_t changes;
	} cases[] = {
		{ FIXTURE, "web.slice/web-shop.service", FIXTURE_DECISIONS },
		{ "tests/fixtures/traces/linux-6.12.ndjson", "batch.slice/nightly.service", 13 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *f = fopen(cases[i].path, "r"), *out;
		struct trace_why why;
		char *svg = NULL, words[80];
		struct plot *p;
		size_t size;

		assert_non_null(f);
		assert_int_equal(plot_read(f, &p, &why), 0);
		assert_int_equal(p->n_changes, cases[i].changes);
		assert_int_equal(p->n_groups, 3);
		assert_int_equal(p->n_kills, 0);
		assert_false(p->torn);
		out = open_memstream(&svg, &size);
		assert_int_equal(plot_draw(p, out), 0);
		fclose(out);
		snprintf(words, sizeof(words), "<tspan class=\"b\">%s", cases[i].worst);
		/* The first group that is named is the worst. */
		assert_ptr_equal(strstr(svg, "<tspan class=\"b\">"), strstr(svg, words));
		free(svg);
		plot_free(p);
		fclose(f);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_one_tick),
		cmocka_unit_test(test_worst),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_fixtures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
