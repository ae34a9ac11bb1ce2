/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/trace*.c: lines, samples, names, replay. */
#include "trace_text.h"

#include <errno.h>

#include "trace-replay.h"

/* ---- round trips ------------------------------------------------------- */

/* Every 8 bytes of a sample another number, so that no two members can be mixed up. */
static void test_samples(void **state)
{
	struct memcg_sample s, back;
	struct host_sample h, h_back;
	struct trace_why why;
	uint64_t *word = (uint64_t *)&s;
	json_t *j;

	(void)state;
	memset(&s, 0, sizeof(s));
	for (size_t i = offsetof(struct memcg_sample, events) / 8; i < sizeof(s) / 8; i++)
		word[i] = 1000 + i;
	s.now_usec = 5;
	s.id = UINT64_C(1) << 60;
	s.full_depth = true;
	s.psi_errno = 95;
	s.psi.some = (struct psi_line){ 77, 0 };
	s.psi.full = (struct psi_line){ 66, 0 };
	s.high_bytes = VALUE_MAX;
	s.thp_swpout_fallback = VALUE_ABSENT;
	j = trace_memcg_json(&s);
	assert_string_equal(json_string_value(json_object_get(j, "high_bytes")), "max");
	assert_null(json_object_get(j, "thp_swpout_fallback"));
	memset(&back, 0, sizeof(back));
	assert_int_equal(trace_memcg_get(j, &back, &why), 0);
	assert_memory_equal(&s, &back, sizeof(s));
	json_decref(j);

	memset(&h, 0, sizeof(h));
	word = (uint64_t *)&h;
	for (size_t i = offsetof(struct host_sample, mem_total_kb) / 8; i < sizeof(h) / 8; i++)
		word[i] = 500 + i;
	h.now_usec = 9;
	h.psi.some = (struct psi_line){ 3, 0 };
	h.psi.full = (struct psi_line){ VALUE_ABSENT, 0 };
	j = trace_host_json(&h);
	assert_int_equal(trace_host_get(j, &h_back, &why), 0);
	assert_memory_equal(&h, &h_back, sizeof(h));
	json_decref(j);
}

static void test_tree(void **state)
{
	struct thp_tree t = small_tree(), back;
	struct trace_why why;
	char buf[CHOICE_LEN];
	json_t *j = trace_tree_json(&t);

	(void)state;
	assert_int_equal(trace_tree_get(j, &back, &why), 0);
	assert_string_equal(choice_value(&back.sizes[0].enabled), "always");
	assert_string_equal(choice_value(&back.enabled), "madvise");
	assert_true(choice_lists(&back.sizes[1].enabled, "never"));
	assert_int_equal(back.pmd_nr, 512);
	assert_true(back.shrink_underused == VALUE_ABSENT);
	assert_string_equal(trace_tree_value(&back, STAND, buf), "always");
	assert_string_equal(trace_tree_value(&back, "khugepaged/max_ptes_none", buf), "511");
	assert_null(trace_tree_value(&back, "shrink_underused", buf));
	assert_null(trace_tree_value(&back, "hugepages-128kB/enabled", buf));
	json_decref(j);
}

/* What is written is read back as the same configuration: the text of it is the same. */
static void check_config(const char *text)
{
	struct config *one, *two;
	char *first, *second;

	assert_int_equal(config_load_text("test", text, strlen(text), NULL, NULL, &one), 0);
	first = trace_config_text(one);
	assert_int_equal(config_load_text("test", first, strlen(first), NULL, NULL, &two), 0);
	second = trace_config_text(two);
	assert_string_equal(first, second);
	assert_memory_equal(&one->controller, &two->controller, sizeof(one->controller));
	assert_int_equal(one->n_sizes, two->n_sizes);
	for (unsigned i = 0; i < one->n_sizes; i++)
		assert_true(one->sizes[i].kind == two->sizes[i].kind &&
			    one->sizes[i].value == two->sizes[i].value);
	assert_int_equal(one->n_policies, two->n_policies);
	for (unsigned i = 0; i < one->n_policies; i++) {
		const struct config_policy *a = &one->policies[i], *b = &two->policies[i];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->n_match, b->n_match);
		assert_int_equal(a->weight, b->weight);
		assert_int_equal(a->has_max_size, b->has_max_size);
		assert_true(a->max_ptes_none == b->max_ptes_none);
		assert_memory_equal(&a->controller, &b->controller, sizeof(a->controller));
	}
	assert_int_equal(one->foreign, two->foreign);
	assert_int_equal(one->max_mode, two->max_mode);
	assert_int_equal(one->defrag, two->defrag);
	assert_int_equal(one->shmem, two->shmem);
	assert_true(one->audit_usec == two->audit_usec && one->max_ptes_none == two->max_ptes_none);
	config_free(one);
	config_free(two);
	free(first);
	free(second);
}

static void test_config(void **state)
{
	static const char *const files[] = { "server", "database", "desktop", "android-like" };
	char path[64], text[16384];

	(void)state;
	check_config("");
	check_config("[Daemon]\nInterval=250ms\nDryRun=yes\nLogLevel=err\n[Limits]\nMaxMode=always\n"
		     "Sizes=16K pmd/4 pmd smallest\nMaxPtesNone=0\nDefrag=no\nShmem=yes\n"
		     "ForeignChanges=reassert\n[Controller]\nPressureHigh=150ms/2s\nPressureLow=0%\n"
		     "DropGain=0.5%\nHold=1s..2min\n[Policy \"a b\"]\nMatch=x/**\nMatch=y?\nWeight=7\n"
		     "MinSize=64K\nMaxSize=pmd\nMaxPtesNone=17\nProtect=yes\nPressureHigh=12.25%\n"
		     "[Policy \"c\"]\nMatch=*\nControlled=no\n");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "conf/profiles/%s.conf", files[i]);
		f = fopen(path, "r");
		assert_non_null(f);
		n = fread(text, 1, sizeof(text) - 1, f);
		text[n] = '\0';
		fclose(f);
		check_config(text);
	}
}

/* ---- names ------------------------------------------------------------- */

static void test_siphash(void **state)
{
	unsigned char key[16], data[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	memcpy(key, data, sizeof(key));
	/* The vectors of the authors' paper and program. */
	assert_true(trace_siphash(key, data, 15) == UINT64_C(0xa129ca6149be45e5));
	assert_true(trace_siphash(key, data, 0) == UINT64_C(0x726fdb47dd0e0e31));
	assert_true(trace_siphash(key, data, 8) == UINT64_C(0x93f5f5799a932462));
	assert_true(trace_siphash(key, data, 63) == UINT64_C(0x958a324ceb064572));
}

static void test_anonymize(void **state)
{
	static const unsigned char salt[16] = "0123456789abcdef", other[16] = "x";
	json_t *h = header_json("[Controller]\nPressureHigh=5%\n[Policy \"secret/shop\"]\nMatch=web/**\n");
	json_t *t = tick_json(2 * SEC, "web.slice/shop.service", 7, 0), *u, *d, *g;
	const char *path, *config;
	struct config *c;

	(void)state;
	g = json_array_get(json_object_get(t, "groups"), 0);
	json_object_set_new(g, "policy", json_string("secret/shop"));
	u = json_deep_copy(t);
	d = decision_of(2 * SEC, 1, STAND, "always", "never", "web.slice/shop.service");
	assert_true(trace_anonymize(h, salt) && trace_anonymize(t, salt) && trace_anonymize(d, salt) &&
		    trace_anonymize(u, other));
	path = json_string_value(json_object_get(g, "path"));
	assert_int_equal(strlen(path), 11 + 6 + 1 + 11 + 8);
	assert_string_equal(path + 11, strstr(path, ".slice/"));
	assert_string_equal(strrchr(path, '.'), ".service");
	assert_string_equal(path, json_string_value(json_object_get(d, "cgroup")));
	assert_true(json_is_true(json_object_get(h, "anonymized")));
	/* The policy's name is one word, in both places; the patterns match nothing. */
	config = json_string_value(json_object_get(h, "config"));
	assert_non_null(strstr(config, json_string_value(json_object_get(g, "policy"))));
	assert_null(strstr(config, "secret"));
	assert_null(strstr(config, "web"));
	assert_non_null(strstr(config, "PressureHigh=5%\n"));
	assert_int_equal(config_load_text("t", config, strlen(config), NULL, NULL, &c), 0);
	assert_null(config_policy_for(c, "web/shop", NULL));
	config_free(c);
	/* Another salt, other words. */
	g = json_array_get(json_object_get(u, "groups"), 0);
	assert_string_not_equal(path, json_string_value(json_object_get(g, "path")));
	json_decref(h);
	json_decref(t);
	json_decref(u);
	json_decref(d);
}

static void test_bytes(void **state)
{
	json_t *j = trace_bytes_json("a\xff/b"), *k = trace_bytes_json("\xc3\xa9.service");

	(void)state;
	assert_string_equal(json_string_value(j), "a\\xff/b");
	assert_string_equal(json_string_value(k), "\xc3\xa9.service");
	json_decref(j);
	json_decref(k);
}

/* ---- lines ------------------------------------------------------------- */

static int read_all(struct text *t, unsigned *ret_n, bool *ret_torn, struct trace_why *why)
{
	FILE *f = text_open(t);
	struct trace_reader *r = trace_reader_new(f);
	enum trace_kind kind;
	json_t *j;
	int e;

	for (*ret_n = 0; (e = trace_read(r, &j, &kind, why)) > 0; ++*ret_n)
		json_decref(j);
	*ret_torn = trace_torn(r);
	assert_int_equal(trace_read(r, &j, &kind, why), 0);
	trace_reader_free(r);
	fclose(f);
	free(t->buf);
	return e;
}

static void test_torn(void **state)
{
	static const struct {
		const char *tail;
		int error;
		unsigned n;
		bool torn;
	} cases[] = {
		{ "", 0, 2, false },
		{ "{\"kind\":\"tick\",\"now_u", 0, 2, true },
		{ "{\"kind\":\"end\"}", 0, 3, false },
		{ "\"", 0, 2, true },
		{ "{\"kind\":\"tick\",\"now_u\n", -EBADMSG, 2, false },
		{ "\n", -EBADMSG, 2, false },
		{ "7\n", -EBADMSG, 2, false },
		{ "{}\n", -EBADMSG, 2, false },
		{ "{\"kind\":\"tick\",\"kind\":\"tick\"}\n", -EBADMSG, 2, false },
		{ "{\"kind\":\"tick\",\"x\":\"\xff\"}\n", -EBADMSG, 2, false },
		{ "{\"kind\":\"tick\",\"x\":NaN}\n", -EBADMSG, 2, false },
		{ "{\"kind\":\"tick\",\"x\":1e999}\n", -EBADMSG, 2, false },
		{ "{\"kind\":\"tick\",\"x\":99999999999999999999}\n", -EBADMSG, 2, false },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n", -EBADMSG, 2, false },
	};
	struct trace_why why;
	unsigned n;
	bool torn;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t;

		text_new(&t);
		text_line(&t, header_json(""));
		text_line(&t, tick_json(2 * SEC, "a", 1, 0));
		fputs(cases[i].tail, t.f);
		assert_int_equal(read_all(&t, &n, &torn, &why), cases[i].error);
		assert_int_equal(n, cases[i].n);
		assert_int_equal(torn, cases[i].torn);
		if (cases[i].error)
			assert_int_equal(why.line, 3);
	}
}

/* A line of just the limit is read, one byte more is not. */
static void test_line_limit(void **state)
{
	struct trace_why why;
	unsigned n;
	bool torn;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		static const char begin[] = "{\"kind\":\"end\",\"x\":\"", end[] = "\"}\n";
		struct text t;

		text_new(&t);
		text_line(&t, header_json(""));
		fputs(begin, t.f);
		for (size_t i = sizeof(begin) + sizeof(end) - 3; i < TRACE_LINE_BYTES_MAX + more; i++)
			fputc('x', t.f);
		fputs(end, t.f);
		assert_int_equal(read_all(&t, &n, &torn, &why), more ? -EBADMSG : 0);
		assert_int_equal(n, 2 - more);
	}
	assert_non_null(strstr(why.text, "longer than 4 MiB"));
}

/* ---- replay ------------------------------------------------------------ */

struct seen {
	unsigned recorded, replayed;
	FILE *f;
};

static void on_step(const struct replay_step *s, void *userdata)
{
	struct seen *seen = userdata;

	seen->recorded += (unsigned)s->n_recorded;
	seen->replayed += (unsigned)s->n_replayed;
	for (size_t i = 0; i < s->n_replayed; i++) {
		json_t *j = trace_decision_json(&s->replayed[i]);

		json_dumpf(j, seen->f, JSON_COMPACT);
		json_decref(j);
	}
}

static char *replay_fixture(const char *config_text, struct replay_summary *sum)
{
	FILE *f = fopen(FIXTURE, "r");
	struct config *c = NULL;
	struct seen seen = { 0 };
	struct trace_why why;
	char *text = NULL;
	size_t size;

	assert_non_null(f);
	if (config_text)
		assert_int_equal(
			config_load_text("t", config_text, strlen(config_text), NULL, NULL, &c), 0);
	seen.f = open_memstream(&text, &size);
	assert_int_equal(replay_run(f, c, on_step, &seen, sum, &why), 0);
	fclose(seen.f);
	fclose(f);
	config_free(c);
	assert_int_equal(seen.recorded, sum->recorded);
	assert_int_equal(seen.replayed, sum->replayed);
	return text;
}

/* Field case C20: the same trace gives the same decisions. Whether they are those
 * of the daemon that recorded it is tested by tests/trace with the daemon itself;
 * this file may be of an older one. */
static void test_replay(void **state)
{
	struct replay_summary one, two;
	char *first = replay_fixture(NULL, &one), *second = replay_fixture(NULL, &two);

	(void)state;
	assert_string_equal(first, second);
	assert_int_equal(one.recorded, FIXTURE_DECISIONS);
	assert_true(one.replayed >= 4 && one.equal >= 4);
	assert_memory_equal(&one.sizes, &two.sizes, sizeof(one.sizes));
	assert_true(one.ended && !one.torn && !one.left_out && !one.anonymized);
	assert_true(one.worst_some > 0.5 && one.pressed_usec > 4 * SEC);
	free(first);
	free(second);
}

/* Never more than Sizes= names, whatever was recorded: the others are given back. */
static void test_other_sizes(void **state)
{
	struct replay_summary sum;
	char *text = replay_fixture("[Limits]\nSizes=2M\n", &sum);

	(void)state;
	assert_non_null(strstr(text, "hugepages-2048kB/enabled"));
	assert_null(strstr(text, "hugepages-64kB/enabled"));
	free(text);
}

/* ---- bad input --------------------------------------------------------- */

static void expect_fault(json_t *line, const char *words, uint64_t at)
{
	struct text t;
	struct replay_summary sum;
	struct trace_why why;
	FILE *f;

	text_new(&t);
	if (at > 1)
		text_line(&t, header_json(""));
	text_line(&t, line);
	f = text_open(&t);
	assert_int_equal(replay_run(f, NULL, NULL, NULL, &sum, &why), -EBADMSG);
	if (!strstr(why.text, words) || why.line != at)
		fail_msg("line %lu: %s; expected %s", (unsigned long)why.line, why.text, words);
	fclose(f);
	free(t.buf);
}

static json_t *header_with(const char *key, json_t *value)
{
	json_t *j = header_json("");

	if (value)
		json_object_set_new(j, key, value);
	else
		json_object_del(j, key);
	return j;
}

static json_t *tick_with(const char *key, json_t *value)
{
	json_t *j = tick_json(2 * SEC, "a", 1, 0);

	if (value)
		json_object_set_new(j, key, value);
	else
		json_object_del(j, key);
	return j;
}

static json_t *sample_with(const char *key, json_t *value)
{
	json_t *j = tick_json(2 * SEC, "a", 1, 0);
	json_t *s = json_object_get(json_array_get(json_object_get(j, "groups"), 0), "sample");

	if (value)
		json_object_set_new(s, key, value);
	else
		json_object_del(s, key);
	return j;
}

static void test_faults(void **state)
{
	static const char *const needed[] = { "format", "version", "mthpd", "kernel", "config", "cpus",
		"realtime_usec", "now_usec", "tree", "stands" };
	char words[64];

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		snprintf(words, sizeof(words), "header: %s is missing", needed[i]);
		expect_fault(header_with(needed[i], NULL), words, 1);
	}
	expect_fault(header_with("kind", json_string("tick")), "does not begin with a header", 1);
	expect_fault(header_with("format", json_string("pcap")), "format is not", 1);
	expect_fault(header_with("version", json_integer(2)), "version 2", 1);
	expect_fault(header_with("cpus", json_integer(0)), "cpus is out of range", 1);
	expect_fault(header_with("cpus", json_real(1.5)), "cpus is not a whole number", 1);
	expect_fault(header_with("boot_never", json_integer(1)), "neither true nor false", 1);
	expect_fault(header_with("config", json_string("[Limits]\nSizes=17K\n")), "config: line 2", 1);
	expect_fault(header_with("stands", json_pack("{s:i}", "defrag", 1)), "not a short string", 1);
	expect_fault(header_with("stands", json_pack("{s:s}", "defrag", "12345678901234567890")),
		"not a short string", 1);
	expect_fault(header_with("tree", json_object()), "tree: page_kb is missing", 1);
	expect_fault(header_with("state", json_object()), "state: version is missing", 1);
	expect_fault(header_with("state", json_pack("{s:i}", "version", TRACE_STATE_VERSION)),
		"state: now_usec is missing", 1);
	expect_fault(header_with("state", json_pack("{s:i}", "version", TRACE_STATE_VERSION + 1)),
		"this program reads", 1);
	expect_fault(header_with("state", json_pack("{s:s}", "version", "x")), "version is not a number", 1);
	expect_fault(tick_with("kind", json_string("tock")), "unknown kind of line: tock", 2);
	expect_fault(tick_with("now_usec", NULL), "tick: now_usec is missing", 2);
	expect_fault(tick_with("now_usec", json_integer(-1)), "now_usec is negative", 2);
	expect_fault(tick_with("now_usec", json_integer(5)), "goes backwards", 2);
	expect_fault(tick_with("now_usec", json_string("max")), "not a number", 2);
	expect_fault(tick_with("groups", json_object()), "groups is not an array", 2);
	expect_fault(tick_with("groups", json_pack("[i]", 1)), "not an object", 2);
	expect_fault(tick_with("host", json_object()), "host: now_usec is missing", 2);
	expect_fault(tick_with("sizes", json_pack("[{}]")), "size_kb is missing", 2);
	expect_fault(tick_with("config", json_string("[Nonsense]\n")), "config: line 1", 2);
	expect_fault(tick_with("held", json_string("yes")), "neither true nor false", 2);
	expect_fault(sample_with("id", NULL), "id is missing", 2);
	expect_fault(sample_with("now_usec", NULL), "now_usec is missing", 2);
	expect_fault(sample_with("anon", json_integer(-4096)), "anon is negative", 2);
	expect_fault(sample_with("anon", json_real(0.5)), "anon is not a whole number", 2);
	expect_fault(sample_with("anon", json_string("lots")), "anon is not a number", 2);
	expect_fault(sample_with("psi_errno", json_integer(5000)), "psi_errno is out of range", 2);
	expect_fault(decision_of(2 * SEC, 1, STAND, "always", "never", "a"), "does not stand before it", 2);
	expect_fault(header_json(""), "a second header", 2);
}

/* More groups and sizes than the limits. */
static void test_limits(void **state)
{
	json_t *j = tick_with("groups", json_array()), *groups = json_object_get(j, "groups");
	json_t *sizes = json_array();

	(void)state;
	for (int i = 0; i < TRACE_GROUPS_MAX + 1; i++)
		json_array_append_new(groups, json_pack("{s:i, s:s}", "id", i, "path", "g"));
	expect_fault(j, "more than 1000 groups", 2);
	for (int i = 0; i < THP_SIZES_MAX + 1; i++)
		json_array_append_new(sizes, json_pack("{s:i}", "size_kb", 16 << i));
	expect_fault(tick_with("sizes", sizes), "more than 24 sizes", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_siphash),
		cmocka_unit_test(test_anonymize),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_line_limit),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_other_sizes),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
