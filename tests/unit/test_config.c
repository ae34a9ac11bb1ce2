/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One text as a configuration: keys, faults, sections, policies. Single values
 * are in test_config_units.c, files and drop-ins in test_config_files.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cleanup.h"
#include "config-internal.h"
#include "config_faults.h"

static void cleanup_config(struct config **c)
{
	config_free(*c);
}

#define _cleanup_config_ __attribute__((cleanup(cleanup_config)))

/* The configuration of a text that must be free of faults. */
static struct config *load_good(const char *text)
{
	struct config *c = NULL;
	struct faults f = {0};

	if (config_load_text("t", text, strlen(text), collect_fault, &f, &c) != 0)
		fail_msg("refused: %s\n%s", f.text, text);
	return c;
}

/* All faults of a text, "LINE: message\n" each; the text must have some. */
static const char *faults_of(const char *text, size_t length)
{
	static struct faults f;
	struct config *c = (struct config *)&f;

	f = (struct faults){.hide_file = true};
	assert_int_equal(config_load_text("t", text, length, collect_fault, &f, &c), -EINVAL);
	assert_ptr_equal(c, &f); /* untouched */
	assert_true(f.n > 0);
	return f.text;
}

static void test_defaults(void **state)
{
	_cleanup_config_ struct config *c = config_new_default();
	_cleanup_config_ struct config *empty = load_good("");

	(void)state;
	for (const struct config *d = c; d; d = d == c ? empty : NULL) {
		assert_int_equal(d->interval_usec, 1000000);
		assert_int_equal(d->psi_window_usec, 2000000);
		assert_int_equal(d->audit_usec, 60000000);
		assert_false(d->dry_run);
		assert_int_equal(d->log_level, LOG_LEVEL_INFO);
		assert_int_equal(d->max_mode, MAX_MODE_INHERIT);
		assert_true(d->all_sizes);
		assert_int_equal(d->n_sizes, 0);
		assert_int_equal(d->max_ptes_none, CONFIG_PTES_BASELINE);
		assert_true(d->defrag);
		assert_false(d->shmem);
		assert_int_equal(d->foreign, FOREIGN_ADOPT);
		assert_true(d->restore_on_exit);
		assert_true(d->controller.pressure_high == 0.1);
		assert_true(d->controller.pressure_low == 0.02);
		assert_true(d->controller.drop_gain == 0.15);
		assert_int_equal(d->controller.hold_min_usec, 10000000);
		assert_int_equal(d->controller.hold_max_usec, 600000000);
		assert_int_equal(d->controller.settle_min_usec, 2000000);
		assert_int_equal(d->controller.settle_max_usec, 30000000);
		assert_int_equal(d->controller.max_changes_per_hour, 60);
		assert_null(d->metrics_listen);
		assert_int_equal(d->n_policies, 0);
	}
}

static void test_every_key_takes_effect(void **state)
{
	_cleanup_config_ struct config *c = load_good(
		"[Daemon]\nInterval=250ms\nPsiWindow=200ms\nAuditInterval=1h\nDryRun=yes\n"
		"LogLevel=debug\n[Limits]\nMaxMode=madvise\nSizes=64K, 2M, pmd, 1G\n"
		"MaxPtesNone=2047\nDefrag=no\nShmem=on\nForeignChanges=reassert\nRestoreOnExit=no\n"
		"[Controller]\nPressureHigh=50ms/s\nPressureLow=0.5%\nDropGain=5%\n"
		"Hold=1min .. 1h\nSettle=3s\nMaxChangesPerHour=7\n"
		"[Metrics]\nListen=127.0.0.1:9100\n"
		"[Policy \"p q\"]\nMatch=a.slice/*\nControlled=no\nWeight=10000\nMinSize=64K\n"
		"MaxSize=pmd/2\nProtect=yes\nMaxPtesNone=0\nPressureHigh=6%\nPressureLow=1%\n"
		"DropGain=1%\nHold=5s..6s\nSettle=1s..2s\nMaxChangesPerHour=8\n");
	const struct config_policy *p = &c->policies[0];

	(void)state;
	assert_int_equal(c->interval_usec, 250000);
	assert_int_equal(c->psi_window_usec, 200000);
	assert_int_equal(c->audit_usec, 3600000000);
	assert_true(c->dry_run);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(c->max_mode, MAX_MODE_MADVISE);
	assert_false(c->all_sizes);
	assert_int_equal(c->n_sizes, 4);
	assert_int_equal(config_size_kb(&c->sizes[0], 32768, 64), 64);
	assert_int_equal(config_size_kb(&c->sizes[2], 32768, 64), 32768);
	assert_int_equal(config_size_kb(&c->sizes[3], 32768, 64), 1048576);
	assert_int_equal(c->max_ptes_none, 2047);
	assert_false(c->defrag);
	assert_true(c->shmem);
	assert_int_equal(c->foreign, FOREIGN_REASSERT);
	assert_false(c->restore_on_exit);
	assert_true(c->controller.pressure_high == 0.05);
	assert_true(c->controller.pressure_low == 0.005);
	assert_int_equal(c->controller.hold_min_usec, 60000000);
	assert_int_equal(c->controller.hold_max_usec, 3600000000);
	assert_int_equal(c->controller.settle_min_usec, 3000000);
	assert_int_equal(c->controller.settle_max_usec, 3000000);
	assert_int_equal(c->controller.max_changes_per_hour, 7);
	assert_string_equal(c->metrics_listen, "127.0.0.1:9100");
	assert_int_equal(c->n_policies, 1);
	assert_string_equal(p->name, "p q");
	assert_string_equal(p->file, "t");
	assert_int_equal(p->line, 24);
	assert_int_equal(p->n_match, 1);
	assert_false(p->controlled);
	assert_int_equal(p->weight, 10000);
	assert_true(p->has_min_size && p->has_max_size && p->protect);
	assert_int_equal(config_size_kb(&p->max_size, 2048, 16), 1024);
	assert_int_equal(p->max_ptes_none, 0);
	assert_true(p->controller.pressure_high == 0.06 && p->controller.pressure_low == 0.01);
	assert_true(p->controller.drop_gain == 0.01);
	assert_int_equal(p->controller.hold_max_usec, 6000000);
	assert_int_equal(p->controller.settle_max_usec, 2000000);
	assert_int_equal(p->controller.max_changes_per_hour, 8);
}

#define P "[Policy \"p\"]\nMatch=a\n"

/* Each text has exactly this fault. */
static const struct {
	const char *text, *fault;
} fault_cases[] = {
	{"Interval=1s\n", "1: 'Interval' stands before any section; put a line [Daemon] above it"},
	{"Foo=1\n", "1: 'Foo' stands before any section; put a line [Daemon] above it"},
	{"[Controller]\nPresureHigh=1%\n",
		"2: unknown key 'PresureHigh' in [Controller]; did you mean PressureHigh?"},
	{"[Controller]\npressurehigh=1%\n",
		"2: unknown key 'pressurehigh' in [Controller]; did you mean PressureHigh?"},
	{"[Controller]\nMaxChanges=1\n",
		"2: unknown key 'MaxChanges' in [Controller]; did you mean MaxChangesPerHour?"},
	{"[Daemon]\nSizes=all\n", "2: unknown key 'Sizes' in [Daemon]; it belongs in [Limits]"},
	{"[Metrics]\nColour=1\n", "2: unknown key 'Colour' in [Metrics], which takes Listen"},
	{P "Nice=5\n",
		"3: unknown key 'Nice' in [Policy], which takes Match, Controlled, Weight, "
		"MinSize, MaxSize, Protect, MaxPtesNone, PressureHigh, PressureLow, DropGain, "
		"Hold, Settle, Density, SmallGroup, MaxChangesPerHour"},
	{"[Deamon]\n", "1: unknown section [Deamon]; did you mean [Daemon]?"},
	{"[daemon]\nInterval=1s\n", "1: unknown section [daemon]; did you mean [Daemon]?"},
	{"[ Daemon]\n", "1: unknown section [ Daemon]; there are [Daemon], [Limits], [Controller], "
			"[Metrics] and [Policy \"NAME\"]"},
	{"[Unit]\nFoo=1\n",
		"1: unknown section [Unit]; there are [Daemon], [Limits], [Controller], "
		"[Metrics] and [Policy \"NAME\"]"},
	{"[]\n", "1: unknown section []; there are [Daemon], [Limits], [Controller], "
		 "[Metrics] and [Policy \"NAME\"]"},
	{"[policy \"a\"]\n", "1: unknown section [policy \"a\"]; did you mean [Policy \"NAME\"]?"},
	{"[Kernel 5.14.*]\n", "1: unknown section [Kernel 5.14.*]; rules by kernel version are not "
			      "built: what a kernel can do is detected"},
	{"[Daemon\n", "1: a section without its closing ']'"},
	{"[Daemon] x\n", "1: text after the ']' of a section"},
	{"[Policy]\n", "1: a policy's section needs a name in quotes: [Policy \"NAME\"]"},
	{"[Policy web]\n", "1: a policy's section needs a name in quotes: [Policy \"NAME\"]"},
	{"[Policy \"]\n", "1: a policy's section needs a name in quotes: [Policy \"NAME\"]"},
	{"[Policy \"\"]\n", "1: a policy's name has 1 to 64 bytes; this one has 0"},
	{"[Policy \"a]b\"]\n", "1: a policy's name is valid UTF-8 without quotes or brackets"},
	{"[Policy \"\xff\"]\n", "1: a policy's name is valid UTF-8 without quotes or brackets"},
	{"[Policy \"p\"]\n", "1: policy \"p\" has no Match=, so it applies to nothing; name its "
			     "cgroups, such as Match=system.slice/*"},
	{P "Match=\n", "1: policy \"p\" has no Match=, so it applies to nothing; name its "
		       "cgroups, such as Match=system.slice/*"},
	{"[Daemon]\nInterval\n", "2: neither [Section] nor Key=value"},
	{"[Daemon]\nInterval: 1s\n", "2: write '=' between key and value, not ':'"},
	{"[Daemon]\n=1s\n", "2: no key before the '='"},
	{"[Daemon]\nInterval=1s # slow\n",
		"2: a comment behind a value would be taken for a part of "
		"it; give it a line of its own"},
	{"[Daemon]\nInterval=1s\t; slow\n",
		"2: a comment behind a value would be taken for a part of "
		"it; give it a line of its own"},
	{"[Daemon]\nInterval=\\\n1s\n", "2: a backslash at the end does not continue a line here; "
					"write it as one line\n3: neither [Section] nor Key=value"},
	{"[Daemon]\nInterval=1\x01s\n", "2: a control character in the line; remove it"},
	{"[Daemon]\nInterval=1\rs\n", "2: a control character in the line; remove it"},
	{"[Daemon]\nLogLevel=inf\xf6\n", "2: LogLevel=inf\\xf6: invalid UTF-8"},
	{"[Daemon]\nInterv\xe4l=1s\n",
		"2: unknown key 'Interv\\xe4l' in [Daemon]; did you mean Interval?"},
	{"[Daemon]\nInterval=\"1s\"\n",
		"2: Interval=\"1s\": quotes are not taken off; write the value without them"},
	{"[Daemon]\nInterval=10x\n",
		"2: Interval=10x: not a duration; write a number and us, ms, s, "
		"min, h or d (a number alone is seconds)"},
	{"[Daemon]\nInterval=0\n", "2: Interval=0: out of range; allowed is 100ms..60s"},
	/* C07: a window longer than the kernel's, a threshold longer than its window */
	{"[Daemon]\nPsiWindow=11s\n", "2: PsiWindow=11s: out of range; allowed is 100ms..10s"},
	{"[Controller]\nPressureHigh=3s/2s\n",
		"2: PressureHigh=3s/2s: the threshold is longer than "
		"its window; at most all of it can be lost to stalls"},
	{"[Daemon]\nDryRun=maybe\n", "2: DryRun=maybe: write yes or no"},
	{"[Daemon]\nLogLevel=waring\n", "2: LogLevel=waring: did you mean warning? (it takes err, "
					"warning, info or debug)"},
	{"[Daemon]\nLogLevel=7\n", "2: LogLevel=7: write err, warning, info or debug"},
	{"[Limits]\nMaxMode=never\n", "2: MaxMode=never: write inherit, madvise or always"},
	{"[Limits]\nForeignChanges=fight\n", "2: ForeignChanges=fight: write adopt or reassert"},
	{"[Limits]\nSizes=16K 48K\n",
		"2: Sizes=16K 48K: 48K is no folio size; those are the powers of two "
		"from 4K to 16G (4K, 8K, 16K, 32K and so on), and pmd/4096 to pmd"},
	{"[Policy \"x\"]\nMatch=a\nMaxSize=5K\n",
		"3: MaxSize=5K: 5K is no folio size; those are the powers of two "
		"from 4K to 16G (4K, 8K, 16K, 32K and so on), and pmd/4096 to pmd"},
	{"[Limits]\nSizes=16K huge\n",
		"2: Sizes=16K huge: huge is no folio size; write 64K, 2M, pmd, "
		"pmd/2 or smallest"},
	{"[Limits]\nSizes=all 16K\n",
		"2: Sizes=all 16K: 'all' stands alone; take it out or the other sizes"},
	{"[Limits]\nSizes=,\n",
		"2: Sizes=,: names no size; write all, or sizes such as 16K 64K pmd"},
	{"[Limits]\nMaxPtesNone=8192\n", "2: MaxPtesNone=8192: out of range; allowed is 0..8191"},
	{"[Limits]\nMaxPtesNone=max\n",
		"2: MaxPtesNone=max: write baseline or a number of page table "
		"entries, 0..8191"},
	{"[Controller]\nPressureHigh=10\n",
		"2: PressureHigh=10: not a share of time; write a "
		"percentage such as 10%, or a threshold over its window such as 200ms/2s"},
	{"[Controller]\nPressureHigh=0%\n",
		"2: PressureHigh=0%: out of range; allowed is 0.1%..100%"},
	{"[Controller]\nDropGain=91%\n", "2: DropGain=91%: out of range; allowed is 0%..90%"},
	{"[Controller]\nPressureLow=11%\n",
		"2: PressureLow (11%) is above PressureHigh (10%); lower "
		"the one or raise the other"},
	{"[Controller]\nPressureLow=5%\nPressureHigh=4%\n",
		"3: PressureLow (5%) is above "
		"PressureHigh (4%); lower the one or raise the other"},
	{P "PressureHigh=1%\n",
		"3: PressureLow (2%) is above PressureHigh (1%); lower the one or "
		"raise the other (what the policy does not set is taken from [Controller])"},
	{"[Controller]\nHold=600s..10s\n", "2: Hold=600s..10s: the range runs backwards; write the "
					   "shorter duration first"},
	{"[Controller]\nHold=10s..x\n",
		"2: Hold=10s..x: not a duration; write a number and us, ms, "
		"s, min, h or d (a number alone is seconds)"},
	{"[Controller]\nHold=10s..20s..30s\n",
		"2: Hold=10s..20s..30s: not a duration; write a number "
		"and us, ms, s, min, h or d (a number alone is seconds)"},
	{"[Controller]\nHold=10s..2d\n", "2: Hold=10s..2d: out of range; allowed is 1s..1d"},
	{"[Controller]\nMaxChangesPerHour=-1\n",
		"2: MaxChangesPerHour=-1: not a whole number; allowed is 1..3600"},
	{"[Controller]\nMaxChangesPerHour=18446744073709551617\n",
		"2: MaxChangesPerHour=18446744073709551617: out of range; allowed is 1..3600"},
	{P "Weight=0\n", "3: Weight=0: out of range; allowed is 1..10000"},
	{P "MinSize=2M\nMaxSize=64K\n",
		"4: MinSize is above MaxSize in policy \"p\"; exchange them, "
		"or remove one"},
	{P "MinSize=pmd\nMaxSize=pmd/2\n", "4: MinSize is above MaxSize in policy \"p\"; exchange "
					   "them, or remove one"},
	{P "Match=/a\n", "3: Match=/a: a cgroup path is written without the leading '/'"},
	{P "Match=[a\n", "3: Match=[a: unclosed '[' (a literal one is written [[])"},
	{P "Match=a b\n",
		"3: Match=a b: one pattern for each Match=; a blank in a name is written [ ]"},
	{"[Metrics]\nListen=0.0.0.0:9100\n",
		"2: Listen=0.0.0.0:9100: write the path of a unix socket, "
		"or 127.0.0.1: and a port of 1..65535"},
	{"[Metrics]\nListen=127.0.0.1:65536\n",
		"2: Listen=127.0.0.1:65536: write the path of a unix "
		"socket, or 127.0.0.1: and a port of 1..65535"},
};

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(fault_cases); i++) {
		const char *text = fault_cases[i].text;
		_cleanup_free_ char *want = NULL;

		assert_true(asprintf(&want, "%s\n", fault_cases[i].fault) > 0);
		if (strcmp(faults_of(text, strlen(text)), want) != 0)
			fail_msg("%s\ngave %swanted %s", text, faults_of(text, strlen(text)), want);
	}
}

/* Any key with a letter missing, doubled or swapped is found again. */
static void test_every_typo_is_recognised(void **state)
{
	size_t n_keys;
	const struct config_key_info *keys = config_keys(&n_keys);

	(void)state;
	for (size_t k = 0; k < n_keys; k++)
		for (size_t i = 0; i + 1 < strlen(keys[k].key); i++)
			for (unsigned kind = 0; kind < 3; kind++) {
				char key[64], text[256], want[64];
				bool policy = strcmp(keys[k].section, "Policy") == 0;

				strcpy(key, keys[k].key);
				if (kind == 0) {
					memmove(key + i, key + i + 1, strlen(key + i));
				} else if (kind == 1) {
					memmove(key + i + 1, key + i, strlen(key + i) + 1);
				} else {
					key[i] = keys[k].key[i + 1];
					key[i + 1] = keys[k].key[i];
				}
				if (strcmp(key, keys[k].key) == 0)
					continue;
				snprintf(text, sizeof(text), "[%s%s]\n%s%s=1\n", keys[k].section,
					policy ? " \"p\"" : "", policy ? "Match=a\n" : "", key);
				snprintf(want, sizeof(want), "did you mean %s?", keys[k].key);
				if (!strstr(faults_of(text, strlen(text)), want))
					fail_msg("%s: %s", key, faults_of(text, strlen(text)));
			}
}

static void test_all_faults_in_one_pass(void **state)
{
	static const char text[] = "\xef\xbb\xbf# comment\r\n"
				   "[Daemon]\r\n"
				   "  Interval=1x\r\n"
				   "\r\n"
				   "; comment ; with # signs \xff and = and : \\\r\n"
				   "\tDryRun=perhaps\r\n"
				   "[Nonsense]\r\n"
				   "Anything=is skipped here\r\n"
				   "[Controller]\r\n"
				   "PressureHigh=5x\r\n"
				   "PressureLow=50%\r\n"
				   "[Policy \"x\"]\r\n"
				   "Match=[\r\n"
				   "[Policy \"y\"]";

	(void)state;
	/* Neither PressureLow nor Match= is reported twice: what is wrong with the
	 * other key comes first. */
	assert_string_equal(faults_of(text, sizeof(text) - 1),
		"3: Interval=1x: not a duration; write a number and us, ms, s, min, h or d (a "
		"number "
		"alone is seconds)\n"
		"6: DryRun=perhaps: write yes or no\n"
		"7: unknown section [Nonsense]; there are [Daemon], [Limits], [Controller], "
		"[Metrics] "
		"and [Policy \"NAME\"]\n"
		"10: PressureHigh=5x: not a share of time; write a percentage such as 10%, or a "
		"threshold over its window such as 200ms/2s\n"
		"13: Match=[: unclosed '[' (a literal one is written [[])\n"
		"14: policy \"y\" has no Match=, so it applies to nothing; name its cgroups, such "
		"as "
		"Match=system.slice/*\n");
}

static void test_nul_ends_the_file(void **state)
{
	static const char text[] = "[Daemon]\nInterval=1\0s\nDryRun=x\n";

	(void)state;
	assert_string_equal(faults_of(text, sizeof(text) - 1),
		"2: a NUL byte: this is no text file; the rest of it was not read\n");
}

/* libinih would cut a longer line and read the rest as another one. */
static void test_long_lines(void **state)
{
	char text[8192], pattern[1024];
	_cleanup_config_ struct config *c = NULL;

	(void)state;
	memset(pattern, 'x', sizeof(pattern));
	pattern[CONFIG_LINE_BYTES_MAX - strlen("Match=")] = '\0';
	snprintf(text, sizeof(text), "[Policy \"p\"]\n   Match=%s   \r\n# %s%s%s\nWeight=7\n",
		pattern, pattern, pattern, pattern);
	c = load_good(text);
	assert_string_equal(c->policies[0].match[0], pattern);
	assert_int_equal(c->policies[0].weight, 7);
	snprintf(text, sizeof(text), "[Policy \"p\"]\nMatch=a\nMatch=%sx\nWeight=0\n", pattern);
	assert_string_equal(faults_of(text, strlen(text)),
		"3: a line of more than 199 bytes; shorten it (in a pattern, * stands for any part "
		"of "
		"a name)\n4: Weight=0: out of range; allowed is 1..10000\n");
	memset(pattern, 'x', 900);
	pattern[900] = '\0';
	snprintf(text, sizeof(text), "[%s]\n", pattern);
	assert_string_equal(faults_of(text, strlen(text)),
		"1: a line of more than 199 bytes; shorten it (in a pattern, * stands for any part "
		"of "
		"a name)\n");
}

/* Every odd byte that may stand in a name on disk stands in a pattern (D15). */
static void test_patterns_are_bytes(void **state)
{
	_cleanup_config_ struct config *c =
		load_good("[Policy \"a\"]\nMatch=app.slice/app-*\\x2dw-*.scope\n"
			  "[Policy \"b\"]\nMatch=system-backup\\x2dprune.slice/backup@*.service\n"
			  "[Policy \"c\"]\nMatch=**/a-b.slice\n"
			  "[Policy \"d\"]\nMatch=caf\xe9[ ]a:b=c\"d\n");

	(void)state;
	assert_string_equal(
		config_policy_for(c, "app.slice/app-gnome-firefox\\x2dw-96379.scope", NULL)->name,
		"a");
	assert_string_equal(
		config_policy_for(c, "system-backup\\x2dprune.slice/backup@minio.service", NULL)
			->name,
		"b");
	assert_string_equal(config_policy_for(c, "a.slice/a-b.slice", NULL)->name, "c");
	assert_string_equal(config_policy_for(c, "caf\xe9 a:b=c\"d", NULL)->name, "d");
	assert_null(config_policy_for(c, "app.slice/app-gnome-firefox-w-96379.scope", NULL));
}

static void test_most_specific_policy(void **state)
{
	_cleanup_config_ struct config *c =
		load_good("[Policy \"exact\"]\nMatch=system.slice/nginx.service\n"
			  "[Policy \"star\"]\nMatch=other/*\nMatch=system.slice/nginx*.service\n"
			  "[Policy \"slice\"]\nMatch=system.slice/*\n"
			  "[Policy \"tie\"]\nMatch=system.slice/*\n"
			  "[Policy \"rest\"]\nMatch=**\n");
	const char *pattern = "unset";

	(void)state;
	assert_string_equal(
		config_policy_for(c, "system.slice/nginx.service", &pattern)->name, "exact");
	assert_string_equal(pattern, "system.slice/nginx.service");
	assert_string_equal(
		config_policy_for(c, "system.slice/nginx@1.service", &pattern)->name, "star");
	assert_string_equal(pattern, "system.slice/nginx*.service");
	assert_string_equal(config_policy_for(c, "system.slice/x", &pattern)->name, "tie");
	assert_string_equal(config_policy_for(c, "system.slice/x/y", NULL)->name, "rest");
	assert_string_equal(config_policy_for(c, "", NULL)->name, "rest");
}

/* A29: a latency-sensitive group has a threshold of its own in stall per second. */
static void test_policy_inherits_controller(void **state)
{
	_cleanup_config_ struct config *c = load_good(
		"[Policy \"db\"]\nMatch=db.slice\nPressureHigh=50ms/s\nHold=1min..2min\nHold=\n"
		"MaxSize=64K\nMaxSize=\n"
		"[Controller]\nPressureHigh=100ms/s\nPressureLow=3%\nHold=20s..30s\nSettle=4s..5s\n"
		"MaxChangesPerHour=9\n");
	const struct config_policy *p = config_policy_for(c, "db.slice", NULL);

	(void)state;
	assert_true(c->controller.pressure_high == 0.1);
	assert_true(p->controller.pressure_high == 0.05);
	assert_true(p->controller.pressure_low == 0.03);
	assert_true(p->controller.drop_gain == 0.15);
	assert_int_equal(p->controller.hold_min_usec, 20000000);
	assert_int_equal(p->controller.hold_max_usec, 30000000);
	assert_int_equal(p->controller.settle_min_usec, 4000000);
	assert_int_equal(p->controller.settle_max_usec, 5000000);
	assert_int_equal(p->controller.max_changes_per_hour, 9);
	assert_false(p->has_min_size || p->has_max_size);
	assert_int_equal(config_size_kb(&p->max_size, 2048, 16), 2048);
}

static void test_merge_and_reset(void **state)
{
	_cleanup_config_ struct config *c = load_good(
		"[Policy \"a\"]\nMatch=x\nMatch=y\nWeight=5\n"
		"[Policy \"b\"]\nMatch=z\n"
		"[Policy  \"a\"]\nMatch=z2\nWeight=6\nProtect=yes\n"
		"[Policy \"b\"]\nMatch=\nMatch=w\n"
		"[Limits]\nSizes=16K\nSizes=32K 64K\n[Metrics]\nListen=/run/a\nListen=/run/b\n"
		"[Daemon]\nInterval=5s\nInterval=\n");

	(void)state;
	assert_int_equal(c->n_policies, 2);
	assert_int_equal(c->policies[0].n_match, 3);
	assert_string_equal(c->policies[0].match[2], "z2");
	assert_int_equal(c->policies[0].weight, 6);
	assert_true(c->policies[0].protect);
	assert_int_equal(c->policies[0].line, 1);
	assert_int_equal(c->policies[1].n_match, 1);
	assert_string_equal(c->policies[1].match[0], "w");
	assert_int_equal(c->n_sizes, 2);
	assert_int_equal(c->sizes[0].value, 32);
	assert_string_equal(c->metrics_listen, "/run/b");
	assert_int_equal(c->interval_usec, 1000000);
}

/* @head, then @n times the text with the number in place of '#'. */
static char *numbered(const char *head, const char *text_of_one, unsigned n)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs(head, f);
	for (unsigned i = 0; i < n; i++) {
		const char *hole = strchr(text_of_one, '#');

		fprintf(f, "%.*s%u%s", (int)(hole - text_of_one), text_of_one, i, hole + 1);
	}
	fclose(f);
	return text;
}

static void test_limits(void **state)
{
	static const struct {
		const char *head, *format;
		unsigned most;
		const char *fault;
	} cases[] = {
		{"", "[Policy \"p#\"]\nMatch=a\n", CONFIG_POLICIES_MAX, "more than 256 policies"},
		{"[Policy \"p\"]\n", "Match=a#\n", CONFIG_MATCH_MAX, "more than 16 patterns"},
	};
	char name[80], text[128];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *good = numbered(cases[i].head, cases[i].format, cases[i].most);
		_cleanup_free_ char *bad =
			numbered(cases[i].head, cases[i].format, cases[i].most + 1);
		const char *faults;

		config_free(load_good(good));
		faults = faults_of(bad, strlen(bad));
		assert_non_null(strstr(faults, cases[i].fault));
		assert_ptr_equal(strchr(faults, '\n') + 1, faults + strlen(faults));
	}
	for (unsigned n = CONFIG_POLICY_NAME_MAX; n <= CONFIG_POLICY_NAME_MAX + 1; n++) {
		memset(name, 'n', n);
		name[n] = '\0';
		snprintf(text, sizeof(text), "[Policy \"%s\"]\nMatch=a\n", name);
		if (n == CONFIG_POLICY_NAME_MAX)
			config_free(load_good(text));
		else
			assert_non_null(strstr(faults_of(text, strlen(text)), "1 to 64 bytes"));
	}
}

static void test_too_many_sizes(void **state)
{
	char text[256] = "[Limits]\nSizes=";

	(void)state;
	for (unsigned i = 0; i < CONFIG_SIZES_MAX; i++)
		strcat(text, "pmd ");
	config_free(load_good(text));
	strcat(text, "64K");
	assert_non_null(strstr(faults_of(text, strlen(text)), "more than 24 sizes; write all"));
}

static void test_socket_path_limit(void **state)
{
	char text[256] = "[Metrics]\nListen=/";
	size_t head = strlen(text);

	(void)state;
	memset(text + head, 'x', 106);
	config_free(load_good(text));
	text[head + 106] = 'x';
	assert_non_null(strstr(faults_of(text, strlen(text)), "at most 107 bytes"));
}

static void test_text_size_limit(void **state)
{
	_cleanup_free_ char *text = malloc(CONFIG_FILE_BYTES_MAX + 2);

	(void)state;
	memset(text, '\n', CONFIG_FILE_BYTES_MAX + 1);
	text[CONFIG_FILE_BYTES_MAX] = '\0';
	config_free(load_good(text));
	text[CONFIG_FILE_BYTES_MAX] = '\n';
	assert_string_equal(
		faults_of(text, CONFIG_FILE_BYTES_MAX + 1), "0: is larger than 256 KiB\n");
}

/* The ranges in the table are words; they must read as what they stand for. */
static void test_table_is_sound(void **state)
{
	_cleanup_config_ struct config *c = load_good("[Policy \"p\"]\nMatch=a\n");
	size_t n;
	const struct config_key_info *keys = config_keys(&n);
	char text[128];

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct config_field *f = keys[i].field;
		bool policy = strcmp(keys[i].section, "Policy") == 0;

		for (unsigned end = 0; end < 2 && f->low; end++) {
			snprintf(text, sizeof(text), "[%s%s]\n%s%s%s=%s\n", keys[i].section,
				policy ? " \"p\"" : "", policy ? "Match=a\n" : "",
				strcmp(keys[i].key, "PressureLow") == 0	   ? "PressureHigh=100%\n"
				: strcmp(keys[i].key, "PressureHigh") == 0 ? "PressureLow=0%\n"
									   : "",
				keys[i].key, end == 0 ? f->low : f->high);
			config_free(load_good(text));
		}
	}
	snprintf(text, sizeof(text), "%u", CONFIG_PTES_MAX);
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].key, "MaxPtesNone") == 0)
			assert_string_equal(keys[i].field->high, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key_takes_effect),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_every_typo_is_recognised),
		cmocka_unit_test(test_all_faults_in_one_pass),
		cmocka_unit_test(test_nul_ends_the_file),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_patterns_are_bytes),
		cmocka_unit_test(test_most_specific_policy),
		cmocka_unit_test(test_policy_inherits_controller),
		cmocka_unit_test(test_merge_and_reset),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_too_many_sizes),
		cmocka_unit_test(test_socket_path_limit),
		cmocka_unit_test(test_text_size_limit),
		cmocka_unit_test(test_table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
