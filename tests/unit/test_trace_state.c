/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/trace-state.c: the memory of the loop goes into a trace and comes back whole. */
#include "trace_text.h"

/* A member that is new in one of these is missing in the tables of
 * trace-state.c: put it there, then the new size here. */
static void test_state_is_complete(void **state)
{
	(void)state;
#if __SIZEOF_POINTER__ == 8
	assert_int_equal(sizeof(struct controller), 464);
	assert_int_equal(sizeof(struct ctl_wish), 48);
	assert_int_equal(sizeof(struct arbiter_size), 56);
	assert_int_equal(sizeof(struct hostrules_size), 40);
	assert_int_equal(sizeof(struct hostrules) - sizeof(struct host_sample) -
				 THP_SIZES_MAX * (sizeof(struct thp_stats) + sizeof(struct hostrules_size)),
		88);
	assert_int_equal(sizeof(struct memcg_delta), 288);
	assert_int_equal(sizeof(struct arbiter) - sizeof(((struct arbiter *)0)->size), 88);
	assert_int_equal(sizeof(struct loop_group) - sizeof(struct controller) - sizeof(struct ctl_wish) -
				 sizeof(struct memcg_delta) - sizeof(struct memcg_sample) -
				 sizeof(struct own) - sizeof(struct rate),
		52);
	assert_int_equal(sizeof(struct own), 196);
	assert_int_equal(sizeof(struct rate), 24);
	assert_int_equal(sizeof(struct loop) - sizeof(struct plan) - sizeof(struct hostrules) -
				 sizeof(struct arbiter) - sizeof(((struct loop *)0)->wants) - sizeof(struct rate),
		96);
	assert_int_equal(sizeof(struct hostrules_input), 48);
#endif
}

/* Every member's place and kind in an order that does not depend on the values. */
static uint64_t layout_of(const json_t *j, const char *place)
{
	static const unsigned char key[16];
	uint64_t sum = 0;
	char name[200];
	const char *k;
	json_t *v;
	int n;

	json_object_foreach((json_t *)j, k, v)
	{
		bool text = json_is_string(v);

		n = snprintf(name, sizeof(name), "%s/%s %c", place, k,
			json_is_object(v) ? 'o' : json_is_array(v) ? 'a' : json_is_real(v) ? 'r' :
			json_is_boolean(v) ? 'b' : text ? 's' : 'i');
		assert_in_range(n, 1, sizeof(name) - 1);
		sum += trace_siphash(key, name, (size_t)n);
		/* The first of an array speaks for all. */
		sum += layout_of(json_is_array(v) ? json_array_get(v, 0) : v, name);
	}
	return sum;
}

static const char *const paths[] = { "a.service", "b.service", "c.scope" };

static struct loop_group *add(
	struct loop *l, uint64_t id, const char *path, const char *policy, void *userdata)
{
	(void)policy;
	(void)userdata;
	for (size_t i = 0; i < 3; i++)
		if (!strcmp(paths[i], path))
			return loop_group_add(l, id, paths[i]);
	return NULL;
}

/* One tick of three groups: two take turns in trouble, by a fixed recipe. */
static bool step(struct loop *l, uint64_t now_usec)
{
	uint64_t n = now_usec / SEC;
	struct host_sample h;
	struct thp_stats stats[THP_SIZES_MAX];
	const struct hostrules_input in = { .host = &h, .stats = stats, .full_scans = n };
	bool changed;

	memset(&h, 0xff, sizeof(h));
	memset(stats, 0xff, sizeof(stats));
	h.now_usec = now_usec;
	h.psi_errno = 0;
	h.mem_total_kb = 8 << 20;
	h.mem_available_kb = 4 << 20;
	h.swap_total_kb = h.swap_free_kb = 1 << 20;
	stats[0].anon_fault_alloc = n * 150;
	stats[0].anon_fault_fallback = stats[0].anon_fault_fallback_charge = n;
	stats[0].split_deferred = n % 200 < 30 ? n * 100 : n;
	loop_begin(l, now_usec);
	loop_observe_host(l, &in);
	for (size_t i = l->n_groups; i-- > 0;) {
		struct loop_group *g = l->groups[i];
		bool bad = i < 2 && (n / 45) % 4 == 2 * i;
		struct memcg_sample s = g->has_prev ? g->prev : sample_of(now_usec, g->id, 0);

		s.now_usec = now_usec;
		s.psi.some.total_usec += bad ? 700000 + n * 10 : 1000;
		s.psi.full.total_usec += bad ? 500000 : 0;
		s.current_bytes = (bad ? 64 << 20 : 30 << 20) - 4096;
		s.margin_bytes = (64 << 20) - s.current_bytes;
		s.anon = s.current_bytes;
		s.events.max = value_or(s.events.max, 0) + (bad ? 50 : 0);
		s.events.oom_kill = s.events.oom_kill == VALUE_ABSENT ? 0 : s.events.oom_kill;
		s.pgfault = value_or(s.pgfault, 0) + (bad ? 4000 : 900 + n % 7);
		s.pgmajfault = value_or(s.pgmajfault, 0) + (bad ? 900 : 0);
		s.refault_anon = value_or(s.refault_anon, 0) + (bad ? 3000 : 0);
		s.user_usec = value_or(s.user_usec, 0) + 100000 + 10 * (n % 13);
		s.system_usec = value_or(s.system_usec, 0) + (bad ? 800000 : 20000);
		s.usage_usec = s.user_usec + s.system_usec;
		if (g->own.present) {
			s.pswpin = value_or(s.pswpin, 0) + (bad ? 900 : 0);
			s.margin_swpin = value_or(s.margin_swpin, 0) + (bad ? 60 : 0);
			s.thp_scanned = value_or(s.thp_scanned, 0) + (bad ? 700 : 0);
			s.thp_young = value_or(s.thp_young, 0) + (bad ? (n / 180) % 2 ? 100 : 690 : 0);
		}
		loop_observe(l, g, &s);
	}
	changed = loop_decide(l, false);
	if (changed)
		loop_applied(l, now_usec);
	for (size_t i = 0; i < l->n_groups; i++) {
		struct loop_group *g = l->groups[i];

		if (!own_differs(&g->own))
			continue;
		g->own.stands = g->own.want;
		loop_group_applied(l, g, now_usec);
	}
	return changed;
}

static const char *path_of(const struct loop_group *g)
{
	return g ? g->path : "";
}

/* After any number of ticks, a loop that was made of another's memory goes on
 * as the other does: same memory, same wants, tick for tick. */
static void test_state(void **state)
{
	static const unsigned at[] = { 1, 3, 47, 60, 95, 140, 200, 233 };
	static const struct own_values start = { { "max", "inherit", "inherit" } };
	struct thp_tree tree = small_tree();
	struct config *c;
	struct plan p;
	struct trace_why why;
	unsigned changes = 0, opened = 0;

	(void)state;
	assert_int_equal(config_load_text("t", "", 0, NULL, NULL, &c), 0);
	plan_build(&tree, c, false, 8 << 20, &p);
	/* The second time with files of the groups' own. */
	for (size_t k = 0; k < 2 * sizeof(at) / sizeof(at[0]); k++) {
		struct loop *l = loop_new(c, &p, 2, SEC), *m = loop_new(c, &p, 2, SEC);
		bool own = k >= sizeof(at) / sizeof(at[0]);
		unsigned begin = at[k % (sizeof(at) / sizeof(at[0]))];
		uint64_t decisions = 0;
		json_t *j, *i;

		for (size_t g = 0; g < 3; g++)
			assert_non_null(loop_group_add(l, 100 + g, paths[g]));
		for (size_t g = 0; own && g < 3; g++)
			loop_group_own(l, l->groups[g], &start, &start);
		for (unsigned n = 2; n < 2 + begin; n++)
			changes += step(l, n * SEC);
		j = trace_state_json(l, 4711);
		if (trace_state_get(j, m, add, NULL, &decisions, &why) < 0)
			fail_msg("%s", why.text);
		assert_int_equal(decisions, 4711);
		json_decref(j);
		for (unsigned n = 2 + begin; n < 202 + begin; n++) {
			assert_int_equal(step(l, n * SEC), step(m, n * SEC));
			assert_int_equal(l->n_wants, m->n_wants);
			for (size_t g = 0; g < 3; g++) {
				for (unsigned f = 0; f < OWN_FILES; f++)
					assert_string_equal(l->groups[g]->own.want.value[f], m->groups[g]->own.want.value[f]);
				opened += !strcmp(l->groups[g]->own.want.value[OWN_MARGIN], "0");
			}
			for (unsigned w = 0; w < l->n_wants; w++) {
				assert_string_equal(l->wants[w].value, m->wants[w].value);
				assert_int_equal(l->wants[w].reason, m->wants[w].reason);
				assert_string_equal(path_of(l->wants[w].cause), path_of(m->wants[w].cause));
			}
			i = trace_state_json(l, 0);
			j = trace_state_json(m, 0);
			assert_true(json_equal(i, j));
			json_decref(i);
			json_decref(j);
		}
		loop_free(l);
		loop_free(m);
	}
	assert_true(changes >= 20 && opened >= 20);
	config_free(c);
}

/* A replay with the wrong meaning would be worse than none: the members of the
 * state may change only together with their version. */
static void test_state_version(void **state)
{
	struct thp_tree tree = small_tree();
	struct config *c;
	struct plan p;
	struct loop_group *g;
	struct loop *l;
	json_t *j;

	(void)state;
	assert_int_equal(config_load_text("t", "", 0, NULL, NULL, &c), 0);
	plan_build(&tree, c, false, 8 << 20, &p);
	l = loop_new(c, &p, 2, SEC);
	g = loop_group_add(l, 100, paths[0]);
	assert_non_null(g);
	/* Zeros everywhere: no member is left out as unknown, and no tuning shows here. */
	memset(&g->ctl, 0, sizeof(g->ctl));
	memset(&g->wish, 0, sizeof(g->wish));
	memset(&g->delta, 0, sizeof(g->delta));
	memset(&l->arbiter, 0, sizeof(l->arbiter));
	memset(&l->host, 0, sizeof(l->host));
	g->delta.dt_usec = 1;
	j = trace_state_json(l, 1);
	/* Another sum: raise TRACE_STATE_VERSION in lib/trace.h, then put both here. */
	assert_int_equal(TRACE_STATE_VERSION, 4);
	assert_int_equal(layout_of(j, ""), UINT64_C(0x4f19c006cc510554));
	json_decref(j);
	loop_free(l);
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_is_complete),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
