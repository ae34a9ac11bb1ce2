/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An actuator over a fake tree, for test_actuator.c. The shim is compiled in: it
 * makes the plain files fail as sysfs does and records what is opened and written.
 */
#ifndef MTHP_TESTS_ACTUATOR_WORLD_H
#define MTHP_TESTS_ACTUATOR_WORLD_H

/* first: it redefines what _FORTIFY_SOURCE wraps */
#include "../fixtures/errno-shim.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "notices.h"

#include "actuator.h"
#include "../fixtures/thp-tree.h"

#define S16 "hugepages-16kB/enabled"
#define S64 "hugepages-64kB/enabled"
#define PTES "khugepaged/max_ptes_none"

struct world {
	struct tree tree;
	struct baseline *baseline;
	struct actuator *actuator;
	struct notices said;
	char rules[128], log[128];
};

static inline void start(struct world *w)
{
	static const struct actuator_ops ops = {
		.warn = note_warning, .trouble = note_trouble, .foreign = note_foreign};
	const char *warning = NULL;

	assert_int_equal(baseline_open(w->tree.run, w->tree.root, &w->baseline, &warning), 0);
	assert_null(warning);
	assert_int_equal(actuator_new(w->tree.thp_fd, w->baseline, &ops, &w->said, &w->actuator), 0);
}

static inline void stop(struct world *w)
{
	actuator_free(w->actuator);
	baseline_free(w->baseline);
}

static inline int manage_all(struct world *w)
{
	for (size_t i = 0; i < TREE_FILES; i++) {
		int r = actuator_manage(w->actuator, tree_files[i].path);

		if (r < 0)
			return r;
	}
	return 0;
}

static inline void set_rules(struct world *w, const char *text)
{
	tree_write(w->rules, text);
}

static inline void clear_log(struct world *w)
{
	tree_write(w->log, "");
}

/* Lines of the log for operation @op that have @what. */
static inline unsigned logged(struct world *w, const char *op, const char *what)
{
	char *text = strdup(tree_text(w->log)), *save = NULL;
	size_t len = strlen(op);
	unsigned n = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		n += !strncmp(line, op, len) && line[len] == '\t' && strstr(line, what);
	free(text);
	return n;
}

/* Nothing was opened for writing, the lock apart: no kernel file, no journal. */
static inline bool untouched(struct world *w)
{
	return logged(w, "open-write", "") == logged(w, "open-write", "/lock\t") &&
	       logged(w, "write", "") == 0;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	tree_new(&w->tree);
	snprintf(w->rules, sizeof(w->rules), "%s/rules", w->tree.root);
	snprintf(w->log, sizeof(w->log), "%s/log", w->tree.root);
	set_rules(w, "");
	clear_log(w);
	setenv("MTHP_SHIM_RULES", w->rules, 1);
	setenv("MTHP_SHIM_LOG", w->log, 1);
	unsetenv("INVOCATION_ID");
	start(w);
	*state = w;
	return manage_all(w);
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

static inline enum actuator_result apply(struct world *w, const char *path, const char *value)
{
	return actuator_apply(w->actuator, path, value, NULL);
}

static inline const char *value_of(struct world *w, const char *path)
{
	static char value[BASELINE_VALUE_LEN];

	return actuator_read(w->actuator, path, value, sizeof(value)) < 0 ? NULL : value;
}

static inline struct actuator_counts counts(struct world *w)
{
	struct actuator_counts c;

	actuator_counts(w->actuator, &c);
	return c;
}

#endif
