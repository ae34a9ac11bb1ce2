/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A baseline over a fake tree, for test_baseline.c and test_restore.c. The
 * shim is compiled in: with its "sysfs" rule the plain files show their values
 * as sysfs does, so that "byte-exact" can be checked.
 */
#ifndef MTHP_TESTS_BASELINE_WORLD_H
#define MTHP_TESTS_BASELINE_WORLD_H

/* first: it redefines what _FORTIFY_SOURCE wraps */
#include "../fixtures/errno-shim.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "notices.h"

#include "baseline.h"
#include "../fixtures/thp-tree.h"

#define S16 "hugepages-16kB/enabled"
#define S64 "hugepages-64kB/enabled"
#define S2M "hugepages-2048kB/enabled"
#define PTES "khugepaged/max_ptes_none"
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct world {
	struct tree tree;
	struct baseline *b;
	const char *warning;
	char rules[128], log[128], journal[128];
	struct notices said;
};

static inline int start(struct world *w)
{
	w->b = NULL;
	w->warning = NULL;
	return baseline_open(w->tree.run, w->tree.root, &w->b, &w->warning);
}

static inline void stop(struct world *w)
{
	baseline_free(w->b);
	w->b = NULL;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	tree_new(&w->tree);
	snprintf(w->rules, sizeof(w->rules), "%s/rules", w->tree.root);
	snprintf(w->log, sizeof(w->log), "%s/log", w->tree.root);
	snprintf(w->journal, sizeof(w->journal), "%s/baseline.json", w->tree.run);
	tree_write(w->rules, "*/transparent_hugepage/* write sysfs\n");
	tree_write(w->log, "");
	setenv("MTHP_SHIM_RULES", w->rules, 1);
	setenv("MTHP_SHIM_LOG", w->log, 1);
	*state = w;
	return start(w);
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	stop(w);
	unsetenv("MTHP_SHIM_RULES");
	unsetenv("MTHP_SHIM_LOG");
	tree_free(&w->tree);
	free(w);
	return 0;
}

static inline int restore(struct world *w)
{
	forget_reports(&w->said);
	return baseline_restore(w->b, w->tree.thp_fd, -1, note_report, &w->said);
}

static inline int command(struct world *w, bool only_if_wanted)
{
	forget_reports(&w->said);
	w->warning = NULL;
	return baseline_restore_command(
		w->tree.run, w->tree.root, only_if_wanted, note_report, &w->said, &w->warning);
}

static inline bool note(struct world *w, const char *path, const char *value)
{
	bool foreign = false;

	assert_int_equal(baseline_note_start(w->b, path, value, &foreign), 0);
	return foreign;
}

/* As the actuator does it. */
static inline void change(struct world *w, const char *path, const char *old, const char *new)
{
	assert_int_equal(baseline_journal(w->b, path, old, new), 0);
	assert_int_equal(knob_write(w->tree.thp_fd, path, new), 0);
	assert_int_equal(baseline_written_done(w->b, path, true), 0);
}

static inline bool has_journal(struct world *w)
{
	return tree_text(w->journal) != NULL;
}

static inline unsigned kernel_writes(struct world *w)
{
	char *text = strdup(tree_text(w->log)), *save = NULL;
	unsigned n = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		n += !strncmp(line, "open-write\t", 11) && strstr(line, "/transparent_hugepage/");
	free(text);
	return n;
}

static inline void assert_tree_is_as_at_start(struct world *w)
{
	for (size_t i = 0; i < TREE_FILES; i++)
		assert_string_equal(tree_get(&w->tree, tree_files[i].path), tree_files[i].text);
}

/* Runs @step in a child that is killed right behind it, then opens again. */
static inline void killed_after(struct world *w, void (*step)(struct world *w))
{
	int status = 0;
	pid_t pid;

	stop(w);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (start(w) < 0)
			_exit(1);
		step(w);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(start(w), 0);
	assert_null(w->warning);
}

/* One file changed, and a hold. Returns the text of its journal. */
static inline char *real_journal(struct world *w)
{
	note(w, S64, "always");
	change(w, S64, "always", "never");
	tree_put(&w->tree, S64, "always inherit madvise [never]\n");
	assert_int_equal(baseline_set_hold(w->b, "an incident"), 0);
	return strdup(tree_text(w->journal));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
